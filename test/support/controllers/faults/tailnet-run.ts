import type { Device } from '../../../../lab/control-api/state.ts';
import { authKeyFault } from '../../../../lab/control-api/operations/keys.ts';
import { keyOf } from '../../../../src/api/key.ts';
import { POOL_ANNOTATIONS } from '../../../../src/controllers/mesh-tailnet/pool/objects.ts';
import { refTo } from '../../../../src/api/objects/references.ts';
import type { Installation } from '../mesh-tailnet/installation.ts';
import { startPoolScene } from '../mesh-tailnet/scene.ts';
import type { PoolScene } from '../mesh-tailnet/scene.ts';
import { isRead } from './calls.ts';
import type { EndState, Run, World } from './runs.ts';

/** After this number of steps of a second without any change, the next change of a scenario may come. */
const QUIET_STEPS = 4;

/** The last steps, none of which is as long as a timeout of a request. */
const LAST_STEP_MS = 4000;

/** How many of them change nothing in the end; with leftovers, until orphans are deleted and late lists have been waited for. */
const [LAST_QUIET_STEPS, LEFTOVER_STEPS] = [5, 20];

const MAX_STEPS = 200;

/** The controller of MeshTailnets with its pools, a simulated cluster and a simulated control API. */
export class TailnetRun implements World {
  /** Not compared: what fails at the control API for a moment is reported. */
  readonly events: ReadonlySet<string> = new Set();
  readonly scene: PoolScene;
  readonly installation: Installation;
  #changes = '';

  private constructor(scene: PoolScene, installation: Installation) {
    this.scene = scene;
    this.installation = installation;
  }

  /** `prepare` makes what exists at the start. */
  static async start(
    { disturbance, lag }: Run,
    prepare: (run: Pick<TailnetRun, 'scene' | 'installation'>) => void,
  ): Promise<TailnetRun> {
    const scene = await startPoolScene();
    const installation = scene.install(undefined, { isDefault: true, lag });
    if (disturbance) installation.disturb(disturbance);
    const run = new TailnetRun(scene, installation);
    prepare(run);
    return run;
  }

  get calls(): readonly string[] {
    return this.installation.calls();
  }

  get lines(): readonly string[] {
    return this.installation.lines;
  }

  get reconciles(): number {
    return this.installation.reconciles;
  }

  /** What is retried later than after a few seconds is left to `catchUp`, so that changes also come before it. */
  async settle(): Promise<void> {
    await this.#untilQuiet(() => QUIET_STEPS, 1000);
  }

  async catchUp(): Promise<void> {
    await this.settle();
    this.installation.keepUp();
    while (this.installation.takeChange()) await this.scene.step();
    await this.#untilQuiet(() => (this.#hasLeftovers() ? LEFTOVER_STEPS : LAST_QUIET_STEPS), LAST_STEP_MS);
  }

  /** What exists in the cluster and in the tailnet, with names in place of identifiers and times. */
  end(): EndState {
    const { installation, scene } = this;
    const { state } = scene.api;
    const objects = installation.objects();
    const texts = [
      [scene.api.url, 'the control API'] as const,
      ...objects.map(({ metadata }) => [metadata.uid ?? 'none', `uid of ${metadata.name}`] as const),
      ...state.keys.all().map(({ id }) => [id, 'id of a key'] as const),
      ...scene.joined().flatMap(textsOf),
    ];
    const end = {
      ...Object.fromEntries(objects.map(object => [keyOf(refTo(object)), object])),
      ...Object.fromEntries(
        installation.namespace.list().map(object => [`${object.kind} ${object.metadata.name}`, object]),
      ),
      pods: installation.kubelet.describe().toSorted(),
      'rejected keys': installation.kubelet.rejected,
      devices: scene.joined().map(({ hostname, tags, authorized }) => ({ hostname, tags, authorized })),
      'unused keys': this.#unusedKeys(),
    };
    return normalized(end, texts) as EndState;
  }

  async close(): Promise<void> {
    await this.scene.close();
  }

  #unusedKeys(): readonly string[] {
    const { state } = this.scene.api;
    return state.keys.all().flatMap(key => {
      const isUsable = key.keyType === 'auth' && authKeyFault(state, key) === undefined;
      return isUsable ? [key.description] : [];
    });
  }

  /** Whether the tailnet has a key or a device that is not of a pod which runs, or a pod does not run. */
  #hasLeftovers(): boolean {
    const { kubelet } = this.installation;
    const pods = kubelet.names();
    const areReady = pods.every(pod => kubelet.isReady(pod));
    return !areReady || pods.length !== this.scene.joined().length || this.#unusedKeys().length > 0;
  }

  /** Takes steps until this number of them has changed nothing. */
  async #untilQuiet(count: () => number, ms: number): Promise<void> {
    let quiet = 0;
    for (let taken = 0; quiet < count(); taken++) {
      if (taken === MAX_STEPS) throw new Error(`there are changes after ${MAX_STEPS} steps`);
      await this.scene.step(ms);
      const changes = this.#describe();
      quiet = changes === this.#changes ? quiet + 1 : 0;
      this.#changes = changes;
    }
  }

  /** Differs after each change of anything but the times in a status. */
  #describe(): string {
    const { kubelet, namespace } = this.installation;
    const versions = namespace.list().map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`);
    const writes = this.calls.filter(call => !isRead(call)).length;
    return [...kubelet.describe(), ...versions, writes, this.scene.joined().length].join();
  }
}

/** What identifies a device, with what stands for it. */
function textsOf({ hostname, nodeId, name, addresses }: Device): readonly (readonly [string, string])[] {
  return [
    [nodeId, `id of ${hostname}`],
    // A device that joins beside an older one of its hostname gets another name.
    [name, `${hostname}.example.ts.net`],
    ...addresses.map(address => [address, `address of ${hostname}`] as const),
  ];
}

/** Fields that count writes, identify a pod, or are hashes of an object with the port of the control API. */
const OMITTED = new Set([
  ...['resourceVersion', 'generation', 'observedGeneration', 'pod_uid', 'updateRevision'],
  POOL_ANNOTATIONS.specHash,
]);

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function normalized(value: unknown, texts: readonly (readonly [string, string])[]): unknown {
  if (typeof value === 'string') {
    if (TIME.test(value)) return 'a time';
    return texts.reduce((text, [from, to]) => text.replaceAll(from, to), value);
  }
  if (Array.isArray(value)) return value.map(each => normalized(each, texts));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, each]) => {
    const normal = normalized(each, texts);
    // Owners are those that exist; the uids of other objects are not compared.
    const isOmitted = OMITTED.has(name) || (name === 'uid' && !String(normal).startsWith('uid of '));
    return isOmitted ? [] : [[name, normal] as const];
  });
  return Object.fromEntries(entries);
}
