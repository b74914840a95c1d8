import { UNKNOWN_FRONT } from '../mesh-tailnet/relays/front.ts';
import { MESH_POD, RELAY, relayName } from '../../../../src/api/names.ts';
import { parseTargets, TARGETS_KEY, targetsVersion } from '../../../../src/api/relay-targets.ts';
import { endpointsController } from '../../../../src/controllers/mesh-endpoints/controller.ts';
import { externalTargetInputs } from '../../../../src/controllers/mesh-endpoints/inputs/external-target-inputs.ts';
import { createResolver } from '../../../../src/controllers/mesh-endpoints/inputs/external-targets.ts';
import { secretHeaders } from '../../../../src/controllers/mesh-endpoints/inputs/secret-headers.ts';
import { tailnetIndexes } from '../../../../src/controllers/mesh-tailnet/controller.ts';
import { relayPortsController } from '../../../../src/controllers/mesh-tailnet/relays/controller.ts';
import type { HttpGet } from '../../../../src/controllers/mesh-tailnet/relays/relay-status.ts';
import type { ProbeResult } from '../../../../src/health/check.ts';
import { createMonitor } from '../../../../src/health/monitor.ts';
import { sharedIndexes } from '../../../../src/store/indexes.ts';
import { trafficIndexes } from '../../../../src/store/traffic/resources.ts';
import { trafficValues } from '../../../../src/store/traffic/values.ts';
import { healthMetrics } from '../../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../../src/telemetry/registry.ts';
import type { Device } from '../../../../src/control/control.ts';
import type { Workload } from '../../../../src/store/own-namespace.ts';
import { GivenDevices } from '../mesh-endpoints/given-devices.ts';
import { GUARD, TRAFFIC } from '../mesh-endpoints/scene.ts';
import { MemoryNamespace } from '../mesh-tailnet/namespace.ts';
import { ClusterRun } from './cluster-run.ts';
import type { ProcessDeps } from './cluster-run.ts';
import type { EndState, Run } from './runs.ts';
import { createPublished } from '../../../../src/runtime/published.ts';
import type { PortsOfTailnet } from '../../../../src/controllers/mesh-endpoints/relay-ports.ts';

const { record } = createRegistry({ metrics: healthMetrics, version: 'test' });

/** Relays close a port that lost its target after this time; until then Envoys may send datagrams for that target to it. */
const DRAINED_MS = 5000;

/** The operator's namespace, which watches over the ports in the ConfigMap of the relays. */
class RelayNamespace extends MemoryNamespace {
  now: () => number = () => 0;
  /** Ports that were given to another target too soon. */
  readonly reused = new Set<number>();
  readonly #last = new Map<number, { readonly address: string; readonly at: number }>();

  targets(): string {
    const data = this.find('ConfigMap', relayName('example'))?.['data'] ?? {};
    return (data as Readonly<Record<string, string>>)[TARGETS_KEY] ?? '';
  }

  override async apply(object: Workload): Promise<void> {
    const at = this.now();
    for (const [port, { address }] of parseTargets(this.targets())) this.#last.set(port, { address, at });
    await super.apply(object);
    for (const [port, { address }] of parseTargets(this.targets())) {
      const last = this.#last.get(port);
      if (last && last.address !== address && at - last.at < DRAINED_MS) this.reused.add(port);
    }
  }
}

/** What MeshEndpoints and relay ports depend on beside objects. */
class Outside {
  readonly namespace = new RelayNamespace();
  /** Which ports relays may listen on. */
  relayPortRange = { first: 20_000, last: 29_999 };
  /** The data of Secrets of users, by namespace and name. */
  readonly secrets = new Map<string, Readonly<Record<string, string>>>();
  /** The addresses of hosts. */
  readonly hosts = new Map<string, readonly string[]>();
  /** Why checks of an address fail. */
  readonly broken = new Map<string, string>();
  /** The lists of devices of all processes. */
  readonly #lists = new Set<GivenDevices>();
  #devices: readonly Device[] = [];

  /** The devices of MeshTailnet `example` are listed. */
  list(devices: readonly Device[]): void {
    this.#devices = devices;
    for (const list of this.#lists) list.list('example', devices);
  }

  /** A process lists the devices; returns the function that ends that. */
  listIn(devices: GivenDevices): () => void {
    devices.list('example', this.#devices);
    this.#lists.add(devices);
    return () => this.#lists.delete(devices);
  }

  probe(address: string): ProbeResult {
    const error = this.broken.get(address);
    return error === undefined ? { is: 'success' } : { is: 'failure', error, code: error };
  }

  /** All relays have the current targets. */
  readonly httpGet: HttpGet = () => {
    const version = targetsVersion(this.namespace.targets());
    return Promise.resolve(JSON.stringify({ version, failed: {} }));
  };

  end(): EndState {
    const objects = this.namespace.list().map(({ kind, metadata, ...rest }) => {
      const { resourceVersion: _version, uid: _uid, ...kept } = metadata;
      return [`${kind} ${metadata.name}`, { metadata: kept, ...rest }] as const;
    });
    return { ...Object.fromEntries(objects), 'ports reused too soon': [...this.namespace.reused] };
  }
}

/** The controllers of MeshEndpoints and of the relay ports that they use. */
export class EndpointsRun extends ClusterRun {
  readonly outside: Outside;

  constructor(objects: readonly object[], run: Run, prepare: (outside: Outside) => void = () => undefined) {
    const outside = new Outside();
    prepare(outside);
    const indexes = [...trafficIndexes, ...sharedIndexes, ...tailnetIndexes];
    const process = (deps: ProcessDeps) => startProcess(deps, outside);
    super({ indexes, objects, process, outside: () => outside.end() }, run);
    this.outside = outside;
  }
}

function startProcess({ start, counted, ...deps }: ProcessDeps, outside: Outside): () => void {
  const { tracking, clock, write, events, now, log } = deps;
  const tailnets = new GivenDevices();
  const endLists = outside.listIn(tailnets);
  outside.namespace.now = () => clock.now();
  const values = trafficValues(tracking, TRAFFIC);
  const relayPorts = createPublished<PortsOfTailnet>();
  const health = createMonitor({
    probe: ({ target }) => Promise.resolve(outside.probe(target.addresses.join())),
    clock,
    now,
    random: () => 0.5,
    record,
    log,
    concurrency: 256,
  });
  const secrets = secretHeaders({
    referenced: counted({
      secret: (namespace: string, name: string) => {
        const data = outside.secrets.get(`${namespace}/${name}`);
        return Promise.resolve(data && { version: undefined, data });
      },
    }),
    podNamespace: 'mesh-system',
    clock,
    periodMs: 30_000,
  });
  const targets = createResolver({
    lookup: {
      find: host => {
        const addresses = outside.hosts.get(host);
        return Promise.resolve(
          addresses ? { is: 'found', addresses, ttlMs: 30_000 } : { is: 'failed', why: 'no such name' },
        );
      },
      close: () => undefined,
    },
    guard: GUARD,
    clock,
  });
  start(
    relayPortsController({
      ...UNKNOWN_FRONT,
      tracking,
      values,
      relayPorts,
      ...{ unserved: createPublished(), vipServices: createPublished() },
      clock,
      events,
      log,
      ownNamespace: counted(outside.namespace),
      relayPortRange: outside.relayPortRange,
      relayPortsPerNamespace: undefined,
      relayImage: 'mesh-gateway:test',
      httpGet: counted({ httpGet: outside.httpGet }).httpGet,
    }),
  );
  start(
    endpointsController({
      tracking,
      values,
      write,
      events,
      relayPorts,
      health,
      now,
      dataPath: 'Proxy',
      controlURL: undefined,
      anchorNamespace: 'mesh-system',
      tailnets,
      vipServices: undefined,
      inputs: [secrets, externalTargetInputs(targets)],
    }),
  );
  return () => {
    endLists();
    health.close();
    targets.close();
  };
}

/** A mesh pod with a relay, which is ready. */
export function relayPod(name: string, address: string): object {
  const labels = { ...MESH_POD.labels, [MESH_POD.tailnetLabel]: 'example', [RELAY.label]: 'true' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'mesh-system', labels },
    status: { conditions: [{ type: 'Ready', status: 'True' }], podIPs: [{ ip: address }] },
  };
}
