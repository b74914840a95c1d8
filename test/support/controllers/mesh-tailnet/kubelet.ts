import type { ControlApi } from '../../../../lab/control-api/control-api.ts';
import type { Device } from '../../../../lab/control-api/state.ts';
import type { ResourceOf } from '../../../../src/api/objects/resource.ts';
import type { MemoryNamespace } from './namespace.ts';

type PodObject = ResourceOf<'Pod'>;

/** A pod to start. */
export type PodOptions = {
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** TS_HOSTNAME of its container. */
  readonly hostname: string;
};

/**
 * What the container does next. After it has joined, its process stores its identity, waits until it is authorized, removes
 * the key, and stores the id and the addresses of its device, each in a step of its own.
 */
type Stage =
  | 'pulls its image'
  | 'starts'
  | 'stores its identity'
  | 'waits for authorization'
  | 'removes the key'
  | 'stores the id'
  | 'stores the addresses'
  | 'runs'
  | 'waits to restart';

type Pod = PodOptions & {
  stage: Stage;
  /** The join key that was in its Secret when the container started. */
  key: string | undefined;
  /** The node ID of its device. */
  node: string | undefined;
  waits: number;
  restarts: number;
  error: string | undefined;
  /** Steps until a pod that is being deleted no longer exists. */
  ends: number | undefined;
};

export type KubeletDeps = {
  readonly api: ControlApi;
  readonly namespace: MemoryNamespace;
  readonly now: () => Date;
  readonly putPod: (pod: PodObject) => void;
  readonly removePod: (name: string) => void;
};

/** Where tailscaled stores its identity in the Secret; here this is the node ID of its device. */
const STATE = '_current-profile';

/** containerboot logs this at each start, also where it has found a key; the message of a container is the end of its log. */
const FIRST_LINE =
  'boot: No authkey found in state Secret and TS_AUTHKEY not provided, login will be interactive if needed.';

/** How many steps the restart of a container waits, and the end of a pod takes. */
const [BACKOFF_STEPS, GRACE_STEPS] = [3, 2];

/** Runs pods whose container is containerboot with TS_AUTH_ONCE; every step of each is taken by `step`. */
export class SimulatedKubelet {
  readonly #deps: KubeletDeps;
  readonly #pods = new Map<string, Pod>();
  #canPull = true;
  /** Whether pods that are deleted stay, as on a node that does not respond. */
  #keepsDeleted = false;
  /** Keys that the control server did not accept, with the reason. */
  readonly rejected: string[] = [];
  /** The addresses of each pod. */
  podIPs: readonly string[] = [];

  constructor(deps: KubeletDeps) {
    this.#deps = deps;
  }

  names(): readonly string[] {
    return [...this.#pods.keys()];
  }

  /** What each pod does, and why its container ended last. */
  describe(): readonly string[] {
    return [...this.#pods.values()].map(({ name, stage, error = '', ends }) =>
      [name, ends === undefined ? stage : 'is being deleted', error].join(': '),
    );
  }

  start(options: PodOptions): void {
    const state = { key: undefined, node: undefined, waits: 0, restarts: 0 } as const;
    const pod: Pod = { ...options, ...state, stage: 'pulls its image', error: undefined, ends: undefined };
    this.#pods.set(pod.name, pod);
    this.#report(pod);
  }

  /** Deletes a pod of this uid; it ends some steps later. */
  delete(name: string, uid?: string): void {
    const pod = this.#pods.get(name);
    if (!pod || (uid !== undefined && pod.uid !== uid) || pod.ends !== undefined) return;
    pod.ends = GRACE_STEPS;
    this.#report(pod);
  }

  /** Ends the container of a pod at once, whatever it is doing. */
  kill(name: string): void {
    const pod = this.#pods.get(name);
    if (pod) this.#exit(pod, 'killed');
    if (pod) this.#report(pod);
  }

  /** Lets pods wait for their image from now on. */
  holdImages(): void {
    this.#canPull = false;
  }

  releaseImages(): void {
    this.#canPull = true;
  }

  /** Lets pods that are deleted stay from now on, as on a node that does not respond. */
  keepDeleted(): void {
    this.#keepsDeleted = true;
  }

  /** Whether a pod is ready. */
  isReady(name: string): boolean {
    const pod = this.#pods.get(name);
    return pod?.stage === 'runs' && pod.ends === undefined;
  }

  step(): void {
    for (const pod of this.#pods.values()) {
      if (pod.ends === undefined) this.#advance(pod);
      else if (!this.#keepsDeleted && --pod.ends <= 0) this.#end(pod);
      if (this.#pods.has(pod.name)) this.#report(pod);
    }
  }

  #end(pod: Pod): void {
    this.#disconnect(pod);
    this.#pods.delete(pod.name);
    this.#deps.removePod(pod.name);
  }

  #advance(pod: Pod): void {
    const device = pod.node === undefined ? undefined : this.#deps.api.state.devices.current(pod.node);
    const isJoined = !['pulls its image', 'starts', 'waits to restart'].includes(pod.stage);
    if (isJoined && (device ? this.#isExpired(device) : this.#deps.api.state.dialect === 'vendor')) {
      this.#exit(pod, 'tailscaled left running state (now in state "NeedsLogin"), exiting');
      return;
    }
    switch (pod.stage) {
      case 'pulls its image':
        if (this.#canPull) pod.stage = 'starts';
        return;
      case 'starts':
        this.#boot(pod);
        return;
      case 'stores its identity':
        this.#patch(pod, { [STATE]: pod.node ?? null });
        pod.stage = 'waits for authorization';
        return;
      case 'waits for authorization':
        if (device?.authorized === true) pod.stage = 'removes the key';
        return;
      case 'removes the key':
        this.#patch(pod, { authkey: null });
        pod.stage = 'stores the id';
        return;
      case 'stores the id':
        this.#patch(pod, { device_id: pod.node ?? null });
        pod.stage = 'stores the addresses';
        return;
      case 'stores the addresses':
        this.#patch(pod, {
          device_fqdn: `${device?.name ?? ''}.`,
          device_ips: JSON.stringify(device?.addresses ?? []),
        });
        pod.stage = 'runs';
        return;
      case 'runs':
        return;
      case 'waits to restart':
        if (--pod.waits <= 0) pod.stage = 'starts';
        return;
    }
  }

  #boot(pod: Pod): void {
    const { api, namespace } = this.#deps;
    const secret = namespace.readSecret(pod.name);
    if (!secret) {
      this.#exit(
        pod,
        `tailscale state Secret ${pod.name} does not exist and we don't have permissions to create it`,
      );
      return;
    }
    this.#patch(pod, { pod_uid: pod.uid });
    pod.key = secret.data['authkey'];
    const device = api.state.devices.current(secret.data[STATE] ?? '');
    if (device && !this.#isExpired(device)) {
      api.changeDevice(device.nodeId, { lastSeenMs: undefined });
      pod.node = device.nodeId;
      pod.stage = 'waits for authorization';
    } else if (pod.key === undefined) {
      this.#exit(
        pod,
        'failed to auth tailscale: failed to auth tailscale: tailscale up failed: signal: killed',
      );
    } else {
      this.#join(pod, pod.key, device);
    }
  }

  /** With the machine key of an expired device, the same device gets a new node key; on headscale it stays expired. */
  #join(pod: Pod, key: string, expired: Device | undefined): void {
    const { api } = this.#deps;
    try {
      const identity = expired
        ? { id: expired.id, nodeId: expired.nodeId, addresses: expired.addresses }
        : {};
      const joined = api.join(key, { hostname: pod.hostname, ...identity });
      if (expired) {
        const { name, expiresMs, keyExpiryDisabled } = expired;
        const expiry = api.state.dialect === 'headscale' ? { expiresMs, keyExpiryDisabled } : {};
        api.changeDevice(joined.nodeId, { name, ...expiry });
      }
      pod.node = joined.nodeId;
      pod.stage = 'stores its identity';
    } catch (error) {
      const why = error instanceof Error ? error.message : '';
      this.rejected.push(`${pod.name}: ${why}`);
      this.#exit(pod, `failed to auth tailscale: tailscale up failed: exit status 1: backend error: ${why}`);
    }
  }

  #exit(pod: Pod, error: string): void {
    this.#disconnect(pod);
    pod.node = undefined;
    pod.restarts++;
    pod.error = error;
    pod.waits = BACKOFF_STEPS;
    pod.stage = 'waits to restart';
  }

  #disconnect({ node }: Pod): void {
    const { api, now } = this.#deps;
    if (node !== undefined && api.state.devices.current(node)) {
      api.changeDevice(node, { lastSeenMs: now().getTime() });
    }
  }

  #isExpired({ keyExpiryDisabled, expiresMs }: Device): boolean {
    return !keyExpiryDisabled && (expiresMs ?? Infinity) <= this.#deps.now().getTime();
  }

  #patch({ name }: Pod, data: Readonly<Record<string, string | null>>): void {
    this.#deps.namespace.patchSecret(name, { data });
  }

  #report(pod: Pod): void {
    const { name, uid, labels, stage, restarts, error, ends } = pod;
    const deletionTimestamp = ends === undefined ? {} : { deletionTimestamp: this.#deps.now().toISOString() };
    const waiting =
      stage === 'waits to restart'
        ? { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container' }
        : stage === 'pulls its image'
          ? { reason: 'ContainerCreating', message: '' }
          : undefined;
    const message = `${FIRST_LINE}\nboot: ${error}`;
    const terminated = error === undefined ? undefined : { reason: 'Error', message, exitCode: 1 };
    this.#deps.putPod({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'mesh-system', uid, labels, ...deletionTimestamp },
      status: {
        isReady: stage === 'runs',
        addresses: this.podIPs,
        unschedulable: undefined,
        container: { isReady: stage === 'runs', waiting, lastTerminated: terminated, restarts },
        relay: undefined,
      },
    });
  }
}
