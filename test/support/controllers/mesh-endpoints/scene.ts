import type { Kinds } from '../../../../src/api/generated/types.ts';
import { refOf } from '../../../../src/api/key.ts';
import type { Key } from '../../../../src/api/key.ts';
import type { Verdict } from '../../../../src/health/health.ts';
import type {
  EndpointInputs,
  InputSource,
} from '../../../../src/controllers/mesh-endpoints/inputs/inputs.ts';
import { createGuard } from '../../../../src/traffic/address-guard.ts';
import type { Answer } from '../../../../src/controllers/mesh-endpoints/inputs/lookup.ts';
import { createResolver } from '../../../../src/controllers/mesh-endpoints/inputs/external-targets.ts';
import type { ExternalTargets } from '../../../../src/controllers/mesh-endpoints/inputs/external-targets.ts';
import { trafficIndexes } from '../../../../src/store/traffic/resources.ts';
import { trafficValues } from '../../../../src/store/traffic/values.ts';
import type { TrafficValues } from '../../../../src/store/traffic/values.ts';
import { endpointsController } from '../../../../src/controllers/mesh-endpoints/controller.ts';
import { externalTargetInputs } from '../../../../src/controllers/mesh-endpoints/inputs/external-target-inputs.ts';
import { meshAddressInputs } from '../../../../src/controllers/mesh-endpoints/inputs/inputs.ts';
import type { RelayPorts } from '../../../../src/controllers/mesh-endpoints/relay-ports.ts';
import { sharedIndexes } from '../../../../src/store/indexes.ts';
import type { ObjectEvent } from '../../../../src/store/resources.ts';
import type { RunningController } from '../../../../src/runtime/controller.ts';
import { Runtime } from '../../runtime/runtime.ts';
import { GivenDevices } from './given-devices.ts';
import { ScriptedHealth } from './scripted-health.ts';

type Status = NonNullable<Kinds['MeshEndpoints']['status']>;
type Ports = NonNullable<ReturnType<RelayPorts['of']>>;

/** Relay ports of tailnets, as a test publishes them. */
class PublishedPorts implements RelayPorts {
  readonly #ports = new Map<string, Ports>();
  readonly #listeners = new Set<(tailnet: string) => void>();

  of(tailnet: string): Ports | undefined {
    return this.#ports.get(tailnet);
  }

  subscribe(listener: (tailnet: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  publish(tailnet: string, ports: Ports): void {
    this.#ports.set(tailnet, ports);
    for (const listener of this.#listeners) listener(tailnet);
  }
}

/** Ports by target, such as `{ '100.64.0.1:53': 20000 }`, which all relays listen on. */
export function confirmed(ports: Readonly<Record<string, number>>): Ports {
  return portsOf(ports, true);
}

/** Ports that are assigned, and on which no relay is known to listen. */
export function assigned(ports: Readonly<Record<string, number>>): Ports {
  return portsOf(ports, false);
}

function portsOf(ports: Readonly<Record<string, number>>, isConfirmed: boolean): Ports {
  const entries = Object.entries(ports).map(([target, port]) => [target, { port, isConfirmed }] as const);
  return { ports: new Map(entries), missing: new Map() };
}

/** That of an operator which allows 10.1.0.0/16, where the API server is in the range of tailnets. */
export const GUARD = createGuard({
  allow: ['10.1.0.0/16'],
  refuse: ['100.88.0.0/16'],
  apiServer: ['100.64.0.99'],
});

/** An operator reads no Services, EndpointSlices and Backends. */
export const TRAFFIC = {
  dataPath: 'Proxy',
  clusterEncoding: '',
  settingsFrom: 'MeshGateway',
  readsBackends: false,
  guard: GUARD,
} as const;

/** Inputs of the endpoints of default/web, as a test gives them. */
class GivenInputs implements InputSource {
  readonly #listeners = new Set<(object: Key) => void>();
  #inputs: Readonly<Record<string, EndpointInputs>> = {};

  read(): Promise<ReadonlyMap<string, EndpointInputs>> {
    return Promise.resolve(new Map(Object.entries(this.#inputs)));
  }

  subscribe(listener: (object: Key) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  replace(inputs: Readonly<Record<string, EndpointInputs>>): void {
    this.#inputs = inputs;
    for (const listener of this.#listeners) listener('MeshEndpoints/default/web');
  }
}

/** The controller on resources in memory. */
export class EndpointsScene {
  readonly runtime: Runtime;
  ports = new PublishedPorts();
  health = new ScriptedHealth();
  /** The lists of devices of tailnets. */
  devices = new GivenDevices();
  readonly inputs = new GivenInputs();
  readonly values: TrafficValues;
  /** The answers of DNS; other names do not exist. */
  readonly answers = new Map<string, Answer>();
  readonly events: ObjectEvent[] = [];
  writes = 0;
  #running: RunningController | undefined;

  private constructor(first: readonly object[]) {
    this.runtime = new Runtime(first, [...trafficIndexes, ...sharedIndexes]);
    this.values = trafficValues(this.runtime.tracking, TRAFFIC);
  }

  static start(...first: readonly object[]): Promise<EndpointsScene> {
    return EndpointsScene.startWith({}, ...first);
  }

  /** Starts with these addresses of hosts. */
  static async startWith(
    hosts: Readonly<Record<string, readonly string[]>>,
    ...first: readonly object[]
  ): Promise<EndpointsScene> {
    const scene = new EndpointsScene(first);
    for (const [host, addresses] of Object.entries(hosts)) scene.resolve(host, ...addresses);
    scene.#startController();
    await scene.runtime.memory.start();
    await scene.runtime.clock.settle();
    return scene;
  }

  #startController(): void {
    const { memory } = this.runtime;
    const { write } = memory;
    const { tracking } = this.runtime;
    const replaceStatus: typeof write.replaceStatus = async (object, status) => {
      this.writes++;
      await write.replaceStatus(object, status);
    };
    const controller = endpointsController({
      tracking,
      values: this.values,
      write: { replaceStatus },
      events: { record: event => void this.events.push(event) },
      dataPath: 'Proxy',
      relayPorts: this.ports,
      vipServices: undefined,
      tailnets: this.devices,
      health: this.health,
      inputs: [this.inputs, meshAddressInputs(GUARD), externalTargetInputs(this.#targets())],
      controlURL: undefined,
      anchorNamespace: 'mesh-system',
      now: () => this.now(),
    });
    this.#running = this.runtime.start({ ...controller, name: 'test' }, { syncPeriodMs: 30_000 });
  }

  #targets(): ExternalTargets {
    const find = (host: string) =>
      Promise.resolve(this.answers.get(host) ?? ({ is: 'failed', why: 'no such name' } as const));
    return createResolver({
      clock: this.runtime.clock,
      guard: GUARD,
      lookup: { find, close: () => undefined },
    });
  }

  /** How many reconciles have succeeded. */
  reconciles(): Promise<number | undefined> {
    return this.runtime.metric('controller_runtime_reconcile_total', { result: 'success' });
  }

  now(): Date {
    return new Date(Date.parse('2026-01-15T12:00:00Z') + this.runtime.clock.now());
  }

  /** Another process becomes the leader, which has published no relay ports, listed no devices and checked nothing yet; it finds `written`, if given. */
  async restart(written?: Status): Promise<void> {
    await this.#running?.drain({ graceMs: 0, abortMs: 0 });
    if (written) await this.write(written);
    this.ports = new PublishedPorts();
    this.health = new ScriptedHealth();
    this.devices = new GivenDevices();
    this.#startController();
    await this.runtime.clock.settle();
  }

  async put(...objects: readonly object[]): Promise<void> {
    for (const object of objects) await this.runtime.memory.author.put(object);
    await this.runtime.clock.settle();
  }

  /** Objects are as an API server returned them: with the status that others have written. */
  async observe(...objects: readonly object[]): Promise<void> {
    for (const object of objects) this.runtime.memory.observe(object);
    await this.runtime.clock.settle();
  }

  async remove(key: Key): Promise<void> {
    await this.runtime.memory.author.remove(refOf(key));
    await this.runtime.clock.settle();
  }

  /** The devices of MeshTailnet `example` are listed. */
  async list(
    devices: Parameters<GivenDevices['list']>[1],
    fields: Parameters<GivenDevices['list']>[2] = {},
  ): Promise<void> {
    this.devices.list('example', devices, { lastSuccess: this.now(), ...fields });
    await this.runtime.clock.settle();
  }

  async publish(tailnet: string, ports: Ports): Promise<void> {
    this.ports.publish(tailnet, ports);
    await this.runtime.clock.settle();
  }

  /** Decides that an endpoint is healthy, or unhealthy with an error. */
  async decide(endpoint: string, error?: string, name = 'web'): Promise<void> {
    const at = this.now();
    const verdict: Verdict =
      error === undefined
        ? { is: 'healthy', lastChecked: at }
        : { is: 'unhealthy', error, code: undefined, lastChecked: at };
    this.health.decide(`MeshEndpoints/default/${name}`, endpoint, verdict);
    await this.runtime.clock.settle();
  }

  /** The addresses of a host, for a minute; none: the DNS server fails. */
  resolve(host: string, ...addresses: readonly string[]): void {
    const failed = { is: 'failed', why: 'the DNS server reports a failure (SERVFAIL)' } as const;
    this.answers.set(host, addresses.length > 0 ? { is: 'found', addresses, ttlMs: 60_000 } : failed);
  }

  /** The inputs of endpoints are others. */
  async give(inputs: Readonly<Record<string, EndpointInputs>>): Promise<void> {
    this.inputs.replace(inputs);
    await this.runtime.clock.settle();
  }

  /** Writes a status as another writer would. */
  async write(status: Status, name = 'web'): Promise<void> {
    const { read, write } = this.runtime.memory;
    const object = read.get({ kind: 'MeshEndpoints', namespace: 'default', name });
    if (!object) throw new Error(`MeshEndpoints default/${name} does not exist`);
    await write.replaceStatus(object, status);
    await this.runtime.clock.settle();
  }

  /** Writes the status of MeshTailnet `example`. */
  async writeTailnet(status: NonNullable<Kinds['MeshTailnet']['status']>): Promise<void> {
    const { read, write } = this.runtime.memory;
    const tailnet = read.get({ kind: 'MeshTailnet', namespace: '', name: 'example' });
    if (!tailnet) throw new Error('MeshTailnet example does not exist');
    await write.replaceStatus(tailnet, status);
    await this.runtime.clock.settle();
  }

  status(name = 'web'): Status | undefined {
    return this.runtime.memory.read.get({ kind: 'MeshEndpoints', namespace: 'default', name })?.status;
  }
}
