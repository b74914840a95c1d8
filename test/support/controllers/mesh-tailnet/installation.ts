import { createPublished } from '../../../../src/runtime/published.ts';
import type { ControlApi } from '../../../../lab/control-api/control-api.ts';
import type { Fault } from '../../../../lab/control-api/faults.ts';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { openTailnets } from '../../../../src/control/tailnets.ts';
import { tailnetController, tailnetIndexes } from '../../../../src/controllers/mesh-tailnet/controller.ts';
import { lostDevices } from '../../../../src/controllers/mesh-tailnet/pool/lost-devices.ts';
import type { ConfirmMembers } from '../../../../src/health/check.ts';
import { sharedIndexes } from '../../../../src/store/indexes.ts';
import { trafficIndexes } from '../../../../src/store/traffic/resources.ts';
import { admit, ObjectLifecycle, promised } from '../../../../src/store/lifecycle.ts';
import type { ObjectEvent, WriteResources } from '../../../../src/store/resources.ts';
import { ResourceStore } from '../../../../src/store/store.ts';
import { Tracking } from '../../../../src/store/tracking.ts';
import { startController } from '../../../../src/runtime/controller.ts';
import type { RunningController } from '../../../../src/runtime/controller.ts';
import { createActivities } from '../../../../src/telemetry/activity.ts';
import { createLog } from '../../../../src/telemetry/log.ts';
import { controllerMetrics, controlMetrics, queueMetrics } from '../../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../../src/telemetry/registry.ts';
import { named } from '../../declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../objects.ts';
import type { VirtualClock } from '../../virtual-clock.ts';
import { Calls } from '../faults/calls.ts';
import type { Disturbance } from '../faults/calls.ts';
import { LaggingCache, UP_TO_DATE } from '../faults/lagging-cache.ts';
import type { Lag } from '../faults/lagging-cache.ts';
import { SimulatedKubelet } from './kubelet.ts';
import { MemoryNamespace } from './namespace.ts';
import { stepStatefulSets } from './stateful-set.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type Status = NonNullable<MeshTailnet['status']>;

/** An operator and its cluster. */
export type InstallationOptions = {
  readonly api: ControlApi;
  readonly clock: VirtualClock;
  readonly now: () => Date;
  /** The installation id. */
  readonly id: string;
  /** Whether the simulator is the control API of MeshTailnets that name none. */
  readonly isDefault?: boolean;
  /** How far the watches of the process are behind. */
  readonly lag?: Lag | undefined;
};

type Process = {
  readonly calls: Calls;
  readonly controller: RunningController;
  readonly confirmMembers: ConfirmMembers;
  readonly close: () => void;
  /** How many reconciles run. */
  inProgress: number;
};

const metrics = createRegistry({
  metrics: { ...controllerMetrics, ...queueMetrics, ...controlMetrics },
  version: 'test',
});

/** The controller of MeshTailnets in a cluster that is simulated: objects, pods and one process, which may crash. */
export class Installation {
  readonly namespace = new MemoryNamespace();
  readonly kubelet: SimulatedKubelet;
  readonly events: ObjectEvent[] = [];
  readonly lines: string[] = [];
  readonly withoutDevice = createPublished<readonly string[]>();
  /** Called when the process has crashed. */
  beforeRestart: () => void = () => undefined;
  readonly id: string;
  readonly #options: InstallationOptions;
  readonly #store: ResourceStore;
  readonly #cache: LaggingCache;
  readonly #objects: ObjectLifecycle;
  /** How many reconciles of all processes have begun. */
  reconciles = 0;
  #process: Process;
  #uids = 0;

  constructor(options: InstallationOptions) {
    const { api, now, id, lag } = options;
    this.id = id;
    this.#options = options;
    const store = new ResourceStore(INDEXES, rethrow);
    this.#store = store;
    this.#cache = new LaggingCache(store, INDEXES, rethrow);
    if (lag) this.#cache.fallBehind(lag);
    this.#objects = new ObjectLifecycle(store, { now, newUid: () => this.#newUid() });
    this.kubelet = new SimulatedKubelet({
      api,
      namespace: this.namespace,
      now,
      putPod: pod => void store.put(pod),
      removePod: name => void store.remove({ kind: 'Pod', namespace: 'mesh-system', name }),
    });
    this.namespace.deletePod = (name, uid) => this.kubelet.delete(name, uid);
    this.storeCredentials();
    this.#process = this.#start();
  }

  /** Stores the credentials of a new OAuth client. */
  storeCredentials(scopes: readonly string[] = ['devices:core', 'auth_keys']): void {
    const { id, secret } = this.#options.api.addClient(scopes);
    const data = { 'client-id': id, 'client-secret': secret };
    void this.namespace.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'mesh-oauth' }, data });
  }

  /** Creates or updates a MeshTailnet. */
  put(spec: object = {}, { name = 'example', annotations = {} } = {}): void {
    const object = meshTailnet({ controlURL: this.#options.api.url, syncInterval: '5s', ...LIMITS, ...spec });
    this.#objects.put(admit(named(object, name, { annotations })));
  }

  /** Creates MeshEndpoints with one endpoint, with more of its spec. */
  putEndpoints(name: string, protocol: 'TCP' | 'UDP', spec: object = {}): void {
    const object = meshEndpoints({ endpoints: [endpoint({ protocol })], ...spec });
    this.#objects.put(admit(named(object, `default/${name}`)));
  }

  removeEndpoints(name: string): void {
    this.#objects.remove({ kind: 'MeshEndpoints', namespace: 'default', name });
  }

  /** Deletes a MeshTailnet. */
  remove(name = 'example'): void {
    this.#objects.remove({ kind: 'MeshTailnet', namespace: '', name });
  }

  get(name = 'example'): MeshTailnet | undefined {
    return this.#store.get({ kind: 'MeshTailnet', namespace: '', name });
  }

  status(name = 'example'): Status {
    return this.get(name)?.status ?? {};
  }

  condition(type: string, name = 'example') {
    return this.status(name).conditions?.find(condition => condition.type === type);
  }

  /** The pods that exist. */
  pods() {
    return this.#store.list('Pod');
  }

  /** The names of the Secrets of members. */
  secrets(): readonly string[] {
    const names = this.namespace
      .list()
      .flatMap(({ kind, metadata }) => (kind === 'Secret' ? [metadata.name] : []));
    return names.filter(name => name !== 'mesh-oauth').sort();
  }

  /** The namespace is deleted with all pods, and the operator is installed again. */
  async reinstall(): Promise<void> {
    this.namespace.clear();
    for (const pod of this.kubelet.names()) this.kubelet.delete(pod);
    this.storeCredentials();
    await this.restart();
  }

  /** Disturbs a call of the process that runs. */
  disturb(disturbance: Disturbance): void {
    this.#process.calls.disturb(disturbance);
  }

  /** The calls of the process that runs. */
  calls(): readonly string[] {
    return this.#process.calls.names;
  }

  /** Pods and the controllers of Kubernetes take one step. */
  stepCluster(): void {
    const owners = () => this.#store.list('MeshTailnet').flatMap(({ metadata }) => metadata.uid ?? []);
    stepStatefulSets({ namespace: this.namespace, kubelet: this.kubelet, owners }, () => this.#newUid());
    this.kubelet.step();
  }

  /** The fault of the next request to the control API. */
  request(route: string): Fault | undefined {
    return this.#process.calls.request(route);
  }

  /** Watches show further changes at once. */
  keepUp(): void {
    this.#cache.fallBehind(UP_TO_DATE);
  }

  /** Watches show the oldest change that they have not shown yet; returns whether there was one. */
  takeChange(): boolean {
    return this.#cache.takeChange();
  }

  /** All objects of MeshTailnets and MeshEndpoints. */
  objects() {
    return [...this.#store.list('MeshTailnet'), ...this.#store.list('MeshEndpoints')];
  }

  /** Waits until no reconcile runs; a process that has crashed is replaced. */
  async settle(): Promise<void> {
    const { clock } = this.#options;
    for (let turns = 0; turns === 0 || this.#process.inProgress > 0; turns++)
      await clock.advance(turns < MAX_TURNS ? 0 : WAITING_MS);
    if (!this.#process.calls.isOver) return;
    this.beforeRestart();
    await this.restart();
    await this.settle();
  }

  /** No check reaches an endpoint through the pool of a MeshTailnet. */
  confirmMembers(name = 'example'): Promise<void> {
    return this.#process.confirmMembers(name);
  }

  /** Replaces the process by a new one. */
  async restart(): Promise<void> {
    await this.close();
    this.#process = this.#start();
  }

  async close(): Promise<void> {
    this.#process.calls.isOver = true;
    this.#process.close();
    await this.#process.controller.drain({ graceMs: 0, abortMs: 0 });
  }

  #newUid(): string {
    return `${this.id}-${++this.#uids}`;
  }

  #start(): Process {
    const { api, clock, now, isDefault = false } = this.#options;
    const calls = new Calls({ clock, stepPods: () => this.stepCluster() });
    const tailnets = openTailnets({ clock, now, random: () => 0, userAgent: 'mesh-gateway/test', metrics });
    const log = createLog({ level: 'info', to: { write: line => void this.lines.push(line) } });
    const namespace = calls.counted(this.namespace);
    const tracking = new Tracking(this.#cache.read);
    const controller = tailnetController({
      tracking,
      write: calls.counted<WriteResources>({
        ...this.#objects.writes,
        apply: object => promised(() => this.#objects.put(admit(object))),
        remove: ref => promised(() => this.#objects.remove(ref)),
      }),
      ownNamespace: namespace,
      pools: {
        ownNamespace: namespace,
        installation: this.id,
        meshPods: {},
        relayImage: 'mesh-gateway:test',
        orphanAgeMs: ORPHAN_AGE_MS,
        withoutDevice: this.withoutDevice,
        readMeshd: () => Promise.resolve(undefined),
        fronts: createPublished(),
      },
      enforcement: undefined,
      tailnets,
      controlURL: isDefault ? api.url : undefined,
      events: { record: event => void this.events.push(event) },
      log,
      now,
    });
    const process: Process = {
      calls,
      close: tailnets.close,
      confirmMembers: lostDevices({ read: this.#store, tailnets, withoutDevice: this.withoutDevice, clock }),
      inProgress: 0,
      controller: startController(
        {
          ...controller,
          reconcile: async (...given) => {
            process.inProgress++;
            this.reconciles++;
            try {
              return await controller.reconcile(...given);
            } finally {
              process.inProgress--;
              calls.reconciled();
            }
          },
        },
        { tracking, clock, telemetry: { log, metrics, activities: createActivities() } },
        { concurrency: 10, syncPeriodMs: 1e12 },
      ),
    };
    return process;
  }
}

const INDEXES = [...trafficIndexes, ...sharedIndexes, ...tailnetIndexes];

function rethrow(failure: unknown): void {
  queueMicrotask(() => {
    throw failure;
  });
}

/** A reconcile that has not ended after this number of turns of the event loop waits for time, which then goes by in such steps. */
const [MAX_TURNS, WAITING_MS] = [3000, 50];

/** Short, so that tests take few steps. */
const ORPHAN_AGE_MS = 60_000;

/** As fast as a simulator allows. */
const LIMITS = { rateLimit: { requestsPerSecond: 1000, burst: 1000 } };
