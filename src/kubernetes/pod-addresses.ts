import { isDeepStrictEqual } from 'node:util';
import { canonicalIP, containsAddress, familyOf, rangesOf } from '../api/ip.ts';
import type { Fields } from '../api/json.ts';
import type { PodAddresses } from '../store/callers.ts';
import { createCollectionWatch } from './reflector/collection-watch.ts';
import type { WatchDeps } from './reflector/collection-watch.ts';
import type { Reflector, Updates } from './reflector/reflector.ts';
import type { ReflectorState } from './reflector/state.ts';
import type { Collection } from './served-kinds.ts';
import type { KubeTransport } from './transport/transport.ts';
import { fieldsOf, textIn } from './unstructured.ts';

/** The pods with some labels in one namespace. */
export type PodAddressesOptions = WatchDeps & {
  /** The caller closes it, after the watch. */
  readonly transport: KubeTransport;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Called when they have been listed, and after each change, with all that may send. Without any, where they may not be listed. */
  readonly onChange: (pods: readonly PodAddresses[]) => void;
};

/** Watches the addresses of pods once it is started, with the verbs list and watch; it keeps nothing else of them. */
export function watchPodAddresses(options: PodAddressesOptions): Pick<Reflector, 'start' | 'close'> {
  const { namespace, labels } = options;
  const log = options.telemetry.log.child({ namespace });
  const telemetry = { ...options.telemetry, log };
  const pods = new SendingPods(options.onChange);
  const collection: Collection = {
    kind: 'Pod',
    served: { group: '', versions: ['v1'], plural: 'pods', isNamespaced: true },
    namespace,
    selection: {
      labelSelector: Object.entries(labels)
        .map(pair => pair.join('='))
        .join(),
    },
  };
  let isRefused = false;
  const onState = (state: ReflectorState) => {
    if (!isRefusedFor(state)) {
      if (state.is === 'watching') isRefused = false;
      return;
    }
    if (isRefused) return;
    isRefused = true;
    log.warn('the pods of a namespace count as none until they can be listed', { labels });
    pods.removeAll();
  };
  return createCollectionWatch({ ...options, telemetry, collection, updates: pods, onState });
}

/** An API server that has just started may refuse what it permits a moment later; these refusals take about 2 s. */
const REFUSALS = 5;

/** Whether lists are refused: the namespace may not exist, or the right may be missing, so addresses can be others' now. */
function isRefusedFor(state: ReflectorState): boolean {
  if (state.is !== 'waiting' || state.listFailures < REFUSALS) return false;
  return state.failure.reason === 'Forbidden' || state.failure.reason === 'NotFound';
}

/** The pods that may send, by uid. */
class SendingPods implements Updates {
  readonly #onChange: PodAddressesOptions['onChange'];
  #pods = new Map<string, PodAddresses>();
  #listed = new Map<string, PodAddresses>();
  #reported: readonly PodAddresses[] | undefined;

  constructor(onChange: PodAddressesOptions['onChange']) {
    this.#onChange = onChange;
  }

  beginList(): void {
    this.#listed = new Map();
  }

  addListed(object: unknown): void {
    put(this.#listed, object);
  }

  endList(): void {
    this.#pods = this.#listed;
    this.#listed = new Map();
    this.#report();
  }

  applyWatchEvent(object: unknown, change: 'put' | 'remove'): void {
    if (change === 'put') put(this.#pods, object);
    else this.#pods.delete(uidOf(object));
    this.#report();
  }

  noteVersion(): void {
    // The reflector knows where a watch continues.
  }

  removeAll(): void {
    this.#pods = new Map();
    this.#report();
  }

  #report(): void {
    const pods = [...this.#pods.values()].sort((a, b) => (a.uid < b.uid ? -1 : 1));
    if (isDeepStrictEqual(pods, this.#reported)) return;
    this.#reported = pods;
    this.#onChange(pods);
  }
}

function put(pods: Map<string, PodAddresses>, object: unknown): void {
  const pod = sendingPod(object);
  if (pod) pods.set(pod.uid, pod);
  else pods.delete(uidOf(object));
}

function uidOf(object: unknown): string {
  return textIn(fieldsOf(fieldsOf(object)?.['metadata']), 'uid');
}

/** Undefined where a pod has no address yet, or has ended, so that its address may be another pod's. */
function sendingPod(object: unknown): PodAddresses | undefined {
  const pod = fieldsOf(object);
  const status = fieldsOf(pod?.['status']);
  const uid = uidOf(object);
  const addresses = addressesIn(status, 'podIPs', 'podIP');
  if (uid === '' || addresses.length === 0 || hasEnded(pod, status)) return undefined;
  const isHostNetwork = fieldsOf(pod?.['spec'])?.['hostNetwork'] === true;
  return { uid, isHostNetwork, addresses, nodeAddresses: addressesIn(status, 'hostIPs', 'hostIP') };
}

/** A deleted pod sends until its last container has ended, as Envoys do that drain. */
function hasEnded(pod: Fields | undefined, status: Fields | undefined): boolean {
  if (['Succeeded', 'Failed'].includes(textIn(status, 'phase'))) return true;
  if (textIn(fieldsOf(pod?.['metadata']), 'deletionTimestamp') === '') return false;
  const containers = CONTAINERS.flatMap(name => listIn(status, name));
  return (
    containers.length > 0 &&
    containers.every(each => fieldsOf(fieldsOf(each)?.['state'])?.['terminated'] !== undefined)
  );
}

const CONTAINERS = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const;

/** The addresses in a list of `{ ip }`, or in the one field that older nodes set. */
function addressesIn(status: Fields | undefined, list: string, one: string): readonly string[] {
  const listed = listIn(status, list).map(each => textIn(fieldsOf(each), 'ip'));
  const texts = listed.length > 0 ? listed : [textIn(status, one)];
  return [...new Set(texts.filter(isOfPod).map(canonicalIP))];
}

function listIn(fields: Fields | undefined, name: string): readonly unknown[] {
  const value = fields?.[name];
  return Array.isArray(value) ? value : [];
}

/** Loopback is where a mesh pod gets what devices of the tailnet send; no pod of a network has these addresses. */
const NOT_OF_PODS = rangesOf(['0.0.0.0/8', '127.0.0.0/8', '224.0.0.0/3', '::/127', 'ff00::/8']);

function isOfPod(text: string): boolean {
  return familyOf(text) !== undefined && !containsAddress(NOT_OF_PODS, text);
}
