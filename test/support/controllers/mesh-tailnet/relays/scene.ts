import { isRecord } from '../../../../../src/api/json.ts';
import { MESH_POD, RELAY, relayName } from '../../../../../src/api/names.ts';
import { formatProblem } from '../../../../../src/api/problem.ts';
import type { Why } from '../../../../../src/api/problem.ts';
import { targetsVersion } from '../../../../../src/api/relay-targets.ts';
import { derivedFrom } from '../../../store/traffic.ts';
import { trafficIndexes } from '../../../../../src/store/traffic/resources.ts';
import { createGuard } from '../../../../../src/traffic/address-guard.ts';
import { tailnetIndexes } from '../../../../../src/controllers/mesh-tailnet/controller.ts';
import { relayPortsController } from '../../../../../src/controllers/mesh-tailnet/relays/controller.ts';
import type { RelayPortsDeps } from '../../../../../src/controllers/mesh-tailnet/relays/controller.ts';
import type { HttpGet } from '../../../../../src/controllers/mesh-tailnet/relays/relay-status.ts';
import type { Enforcement } from '../../../../../src/controllers/mesh-tailnet/enforcement/verdict.ts';
import { frontTextsIn } from '../../../../../src/controllers/mesh-tailnet/relays/front.ts';
import type { FrontTexts } from '../../../../../src/controllers/mesh-tailnet/relays/front.ts';
import { sharedIndexes } from '../../../../../src/store/indexes.ts';
import type { Callers } from '../../../../../src/store/callers.ts';
import { admit, ObjectLifecycle } from '../../../../../src/store/lifecycle.ts';
import type { ObjectEvent } from '../../../../../src/store/resources.ts';
import { ResourceStore } from '../../../../../src/store/store.ts';
import { startController } from '../../../../../src/runtime/controller.ts';
import { createActivities } from '../../../../../src/telemetry/activity.ts';
import { createLog } from '../../../../../src/telemetry/log.ts';
import { controllerMetrics, queueMetrics } from '../../../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../../../src/telemetry/registry.ts';
import { named } from '../../../declared.ts';
import { Calls } from '../../faults/calls.ts';
import type { Disturbance } from '../../faults/calls.ts';
import { MemoryNamespace } from '../namespace.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../../objects.ts';
import { VirtualClock } from '../../../virtual-clock.ts';
import { createPublished } from '../../../../../src/runtime/published.ts';
import type { FrontState } from '../../../../../src/controllers/mesh-tailnet/pool/front-condition.ts';
import type { PortsOfTailnet } from '../../../../../src/controllers/mesh-endpoints/relay-ports.ts';

/** What a relay responds: the version that it has read (the newest if not given), or a text. */
type Behaviour =
  | { readonly version?: string; readonly failed?: Readonly<Record<number, string>> }
  | { readonly text: string }
  | 'hangs'
  | 'is away';

/** That of an operator which refuses 100.88.0.0/16. */
const GUARD = createGuard({ allow: [], refuse: ['100.88.0.0/16'], apiServer: [] });

/** As in the operator. */
const LEADERSHIP_LOST = { graceMs: 0, abortMs: 500 };

const START = Date.UTC(2026, 0, 15, 12);

const metrics = createRegistry({ metrics: { ...controllerMetrics, ...queueMetrics }, version: 'test' });

/** The controller of relay ports on objects and a namespace in memory, with relays that a test may disturb. */
export class RelayScene {
  readonly clock = new VirtualClock();
  readonly namespace = new MemoryNamespace();
  readonly events: ObjectEvent[] = [];
  readonly lines: string[] = [];
  readonly urls: string[] = [];
  /** Who calls the proxy: unknown until they are set. */
  readonly callers = settable<Callers | undefined>(undefined);
  readonly fronts = createPublished<FrontState>();
  readonly enforcement = settable<Enforcement | undefined>('unknown');
  /** How long relays take to read a change of the ConfigMap. */
  lagMs = 0;
  readonly #relays = new Map<string, { readonly tailnet: string; behaviour: Behaviour }>();
  readonly #versions = new Map<string, { readonly at: number; readonly text: string }[]>();
  readonly #store: ResourceStore;
  readonly #objects: ObjectLifecycle;
  readonly #options: Partial<RelayPortsDeps>;
  #process: ReturnType<RelayScene['start']>;
  #uids = 0;

  constructor(options: Partial<RelayPortsDeps> = {}) {
    this.#options = options;
    const indexes = [...trafficIndexes, ...sharedIndexes, ...tailnetIndexes];
    this.#store = new ResourceStore(indexes, failure =>
      queueMicrotask(() => {
        throw failure;
      }),
    );
    this.#objects = new ObjectLifecycle(this.#store, {
      now: () => new Date(START + this.clock.now()),
      newUid: () => `uid-${++this.#uids}`,
    });
    this.#store.markSynced();
    this.#process = this.start();
  }

  /** Creates or updates a MeshTailnet. */
  putTailnet(spec: object = {}, name = 'example'): void {
    this.#objects.put(admit(named(meshTailnet({ ...spec }), name)));
  }

  /** Creates or updates a MeshEndpoints with these targets. */
  putTargets(targets: readonly string[], name = 'default/dns', fields: object = {}): void {
    const endpoints = targets.map((target, index) => {
      const [, meshIP = '', port] = /^\[?(.*?)\]?:(\d+)$/.exec(target) ?? [];
      return endpoint({ name: `udp-${index}`, meshIP, port: Number(port), protocol: 'UDP' });
    });
    this.put(named(meshEndpoints({ endpoints, ...fields }), name));
  }

  put(object: object): void {
    this.#objects.put(admit(object));
  }

  /** Stores an object with its status. */
  observe(object: object): void {
    this.#store.put(admit(object));
  }

  remove(kind: 'MeshTailnet' | 'MeshEndpoints', name: string): void {
    const [last = '', namespace = ''] = name.split('/').reverse();
    this.#objects.remove({ kind, namespace, name: last });
  }

  /** Puts a mesh pod with a relay, which is ready. */
  putPod(
    name: string,
    address: string,
    {
      tailnet = 'example',
      behaviour = {},
      isReady = true,
      hasRelay = true,
      uid = `uid-${name}`,
    }: PodOptions = {},
  ): void {
    const relayLabel = hasRelay ? { [RELAY.label]: 'true' } : {};
    const labels = { ...MESH_POD.labels, [MESH_POD.tailnetLabel]: tailnet, ...relayLabel };
    const ready = { type: 'Ready', status: isReady ? 'True' : 'False' };
    const pod = admit({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'mesh-system', uid, labels },
      status: { conditions: [ready], podIPs: [{ ip: address }] },
    });
    this.#store.put(pod);
    this.#relays.set(address, { tailnet, behaviour });
  }

  /** The targets that the relays of a tailnet have read. */
  #readBy(tailnet: string): string {
    const newest = this.stored(tailnet) ?? '';
    const versions = this.#versions.get(tailnet) ?? [];
    if (versions.at(-1)?.text !== newest) versions.push({ at: this.clock.now(), text: newest });
    this.#versions.set(tailnet, versions);
    return versions.findLast(({ at }) => at <= this.clock.now() - this.lagMs)?.text ?? '';
  }

  removePod(name: string): void {
    this.#store.remove({ kind: 'Pod', namespace: 'mesh-system', name });
  }

  /** Changes what the relay at an address responds. */
  setRelay(address: string, behaviour: Behaviour): void {
    const relay = this.#relays.get(address);
    if (relay) relay.behaviour = behaviour;
  }

  /** The text of the targets in the ConfigMap of a tailnet. */
  stored(tailnet = 'example'): string | undefined {
    const data = this.namespace.find('ConfigMap', relayName(tailnet))?.['data'];
    return (data as { readonly targets?: string } | undefined)?.targets;
  }

  /** The lists of the front in the ConfigMap of a tailnet; undefined where it lacks one. */
  storedFront(tailnet = 'example'): FrontTexts | undefined {
    const data = this.namespace.find('ConfigMap', relayName(tailnet))?.['data'];
    return frontTextsIn(isRecord(data) ? data : {});
  }

  /** Replaces the text of the targets, and what else the ConfigMap has, as a person may do. */
  async edit(targets: string | undefined, more: Readonly<Record<string, string>> = {}): Promise<void> {
    const data = { ...(targets === undefined ? {} : { targets }), ...more };
    const metadata = { name: relayName('example') };
    await this.namespace.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
  }

  /** What is published of a tailnet: each target with its port, `?` while it is not confirmed, or with the reason. */
  published(tailnet = 'example'): Readonly<Record<string, string>> | undefined {
    const published = this.#process.relayPorts.of(tailnet);
    if (!published) return undefined;
    const ports = [...published.ports].map(
      ([target, { port, isConfirmed }]) => [target, `${port}${isConfirmed ? '' : '?'}`] as const,
    );
    const missing = Object.entries(this.missing(tailnet)).filter(([target]) => !published.ports.has(target));
    return Object.fromEntries([...ports, ...missing].sort(([one], [other]) => (one < other ? -1 : 1)));
  }

  /** Why ports of a tailnet are missing or not confirmed. */
  missing(tailnet = 'example'): Readonly<Record<string, string>> {
    const missing = this.#process.relayPorts.of(tailnet)?.missing ?? new Map<string, Why>();
    return Object.fromEntries([...missing].map(([target, why]) => [target, formatProblem(why)]));
  }

  /** The tailnets that were notified of since the process has started. */
  notified(): readonly string[] {
    return this.#process.notified;
  }

  /** The calls of the process that runs. */
  calls(): readonly string[] {
    return this.#process.calls.names;
  }

  /** The writes among them. */
  writes(): readonly string[] {
    return this.calls().filter(call => !call.startsWith('get '));
  }

  /** Disturbs a call of the process that runs. */
  disturb(disturbance: Disturbance): void {
    this.#process.calls.disturb(disturbance);
  }

  /** Advances the time; a process that has crashed is replaced. */
  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    if (!this.#process.calls.isOver) return;
    await this.restart();
    await this.clock.advance(0);
  }

  /** Replaces the process by a new one. */
  async restart(options: Partial<RelayPortsDeps> = {}): Promise<void> {
    await this.close();
    Object.assign(this.#options, options);
    this.#process = this.start();
  }

  /** Ends the process; returns the keys whose reconciles do not end. */
  async close(): Promise<readonly string[]> {
    this.#process.calls.isOver = true;
    const drained = this.#process.controller.drain(LEADERSHIP_LOST);
    await this.clock.advance(LEADERSHIP_LOST.abortMs);
    return drained;
  }

  private start() {
    const calls = new Calls({ clock: this.clock, stepPods: () => undefined });
    const log = createLog({ level: 'info', to: { write: line => void this.lines.push(line) } });
    const telemetry = { log, metrics, activities: createActivities() };
    const relayPorts = createPublished<PortsOfTailnet>();
    const notified: string[] = [];
    relayPorts.subscribe(tailnet => void notified.push(tailnet));
    const { tracking, traffic } = derivedFrom(this.#store, { guard: GUARD });
    const controller = relayPortsController({
      tracking,
      values: traffic,
      callers: this.callers,
      enforcement: this.enforcement,
      ownNamespace: calls.counted(this.namespace),
      relayPorts,
      fronts: this.fronts,
      unserved: createPublished(),
      vipServices: createPublished(),
      relayPortRange: { first: 20_000, last: 29_999 },
      relayPortsPerNamespace: undefined,
      relayImage: 'mesh-gateway:test',
      httpGet: this.#respond,
      clock: this.clock,
      events: { record: event => void this.events.push(event) },
      log,
      ...this.#options,
    });
    const running = startController(
      {
        ...controller,
        reconcile: (...given) => controller.reconcile(...given).finally(() => calls.reconciled()),
      },
      { tracking, clock: this.clock, telemetry },
      { concurrency: 10, syncPeriodMs: 30_000 },
    );
    return { calls, controller: running, relayPorts, notified };
  }

  readonly #respond: HttpGet = (url, { signal }) => {
    this.urls.push(url);
    const [, address = ''] = /^http:\/\/\[?(.*?)\]?:9003\/relay$/.exec(url) ?? [];
    const { tailnet, behaviour } = this.#relays.get(address) ?? { tailnet: '', behaviour: 'is away' };
    if (behaviour === 'is away') return Promise.reject(new Error(`connect ECONNREFUSED ${address}:9003`));
    if (behaviour === 'hangs') {
      return new Promise((_resolve, reject) => {
        signal.throwIfAborted();
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    }
    if ('text' in behaviour) return Promise.resolve(behaviour.text);
    const { version = targetsVersion(this.#readBy(tailnet)), failed = {} } = behaviour;
    return Promise.resolve(JSON.stringify({ version, failed }));
  };
}

/** A value that a test sets, and that others observe. */
function settable<T>(initial: T) {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    current: () => value,
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    set: (next: T) => {
      value = next;
      for (const listener of [...listeners]) listener();
    },
  };
}

type PodOptions = {
  readonly tailnet?: string;
  readonly behaviour?: Behaviour;
  readonly isReady?: boolean;
  readonly hasRelay?: boolean;
  readonly uid?: string;
};
