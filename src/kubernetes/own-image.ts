import type { Clock } from '../api/clock.ts';
import type { Log } from '../telemetry/log.ts';
import { pathOfAll } from './served-kinds.ts';
import type { KubeTransport } from './transport/transport.ts';
import { fieldsOf, textIn } from './unstructured.ts';
import { requestError } from './write/errors.ts';

/** The image of a container of this process's own pod. */
export interface OwnImage {
  /** Undefined as long as the API server has not answered. */
  current(): { readonly image: string | undefined } | undefined;
  /** Stops looking for it. */
  stop(): void;
}

/** What the image is read with; it needs the verb list on pods in the namespace. */
export type OwnImageDeps = {
  readonly transport: Pick<KubeTransport, 'send'>;
  readonly namespace: string;
  readonly podName: string;
  readonly container: string;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
};

const FIRST_RETRY_MS = 1000;

/** A right that is granted later is noticed within this time. */
const MAX_RETRY_MS = 30_000;

/**
 * Reads the image until the API server answers, ever more slowly: that of a pod never changes without another pod. Each other
 * failure is logged once.
 */
export function readOwnImage({ clock, log, ...place }: OwnImageDeps): OwnImage {
  let current: { readonly image: string | undefined } | undefined;
  let cancel = () => {};
  let isStopped = false;
  let logged = '';
  const read = async (retryMs: number) => {
    try {
      current = { image: await imageIn(place) };
    } catch (error) {
      if (isStopped) return;
      const message = String(error);
      if (message !== logged) log.warn('the image of the own pod cannot be read', { error });
      logged = message;
      cancel = clock.after(retryMs, () => void read(Math.min(2 * retryMs, MAX_RETRY_MS)));
    }
  };
  void read(FIRST_RETRY_MS);
  return {
    current: () => current,
    stop: () => {
      isStopped = true;
      cancel();
    },
  };
}

/** Undefined where there is no such pod, as for an operator outside of the cluster. */
async function imageIn({
  transport,
  namespace,
  podName,
  container,
}: Omit<OwnImageDeps, 'clock' | 'log'>): Promise<string | undefined> {
  const path = pathOfAll({ group: '', plural: 'pods', isNamespaced: true }, 'v1', namespace);
  const query = { fieldSelector: `metadata.name=${podName}` };
  try {
    const [pod] = listIn(await transport.send({ verb: 'list', path, query }), 'items');
    const found = listIn(fieldsOf(pod)?.['spec'], 'containers')
      .map(fieldsOf)
      .find(each => textIn(each, 'name') === container);
    return textIn(found, 'image') || undefined;
  } catch (failure) {
    throw requestError(`pod ${namespace}/${podName}`, failure);
  }
}

function listIn(object: unknown, field: string): readonly unknown[] {
  const value = fieldsOf(object)?.[field];
  return Array.isArray(value) ? value : [];
}
