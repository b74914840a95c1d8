import { isEqual } from '../../api/equal.ts';
import type { Ref, ResourceKind } from '../../api/key.ts';
import type { Resource } from '../../api/resource.ts';
import type { ReadResources } from '../resources.ts';
import type { TakeAnswers } from './arrivals.ts';
import { KubeError } from './kube-error.ts';
import type { KubeErrorReason } from './kube-error.ts';
import { fieldsOf, textIn } from './raw-object.ts';
import type { Fields } from './raw-object.ts';
import type { KubeRequest } from './transport.ts';
import { getting } from './write-request.ts';

/** What all writes work with. */
export type WritePorts = {
  readonly ask: (request: KubeRequest) => Promise<unknown>;
  readonly read: Pick<ReadResources, 'get'>;
  readonly arrivals: TakeAnswers;
};

/** So often a write begins anew because somebody else was faster. */
export const MOST_ATTEMPTS = 8;

/** What an answer says of the life and the version of an object. */
export type Seen = { readonly uid: string; readonly version: string; readonly metadata: Fields };

/** Reads those of an answer. */
export function seenIn(answer: unknown): Seen {
  const metadata = fieldsOf(fieldsOf(answer)?.['metadata']) ?? {};
  return { uid: textIn(metadata, 'uid'), version: textIn(metadata, 'resourceVersion'), metadata };
}

/** The finalizers that hold an object. */
export function finalizersIn({ metadata }: Pick<Seen, 'metadata'>): readonly string[] {
  const { finalizers } = metadata;
  return Array.isArray(finalizers) ? finalizers.filter(name => typeof name === 'string') : [];
}

/** Hands an answer to the store, unless it shows an object for the last time: nothing holds it any more. */
export function takeAnswer({ arrivals }: Pick<WritePorts, 'arrivals'>, answer: unknown): void {
  const seen = seenIn(answer);
  const isDying = seen.metadata['deletionTimestamp'] !== undefined;
  if (!isDying || finalizersIn(seen).length > 0) arrivals.take(answer);
}

/** Looks at an object past the store, which then knows it too; nothing where there is none. */
export async function lookAt(ports: WritePorts, path: string): Promise<Seen | undefined> {
  try {
    const answer = await ports.ask(getting(path));
    takeAnswer(ports, answer);
    return seenIn(answer);
  } catch (failure) {
    if (failedFor(failure, 'NotFound')) return undefined;
    throw failure;
  }
}

/** Whether a request failed for one of these reasons. */
export function failedFor(failure: unknown, ...reasons: readonly KubeErrorReason[]): failure is KubeError {
  return failure instanceof KubeError && reasons.includes(failure.reason);
}

/**
 * What we last said of objects, as long as they are as they were then. So what others add, and what we cannot see of
 * it, does not make us say the same again and again.
 */
export class Said {
  readonly #said = new WeakMap<Resource, unknown>();
  readonly #read: Pick<ReadResources, 'get'>;

  constructor(read: Pick<ReadResources, 'get'>) {
    this.#read = read;
  }

  has(object: Resource, words: unknown): boolean {
    return this.#said.has(object) && isEqual(this.#said.get(object), words);
  }

  /** Notes that an object was answered after these words, if the store has it like that. */
  note<K extends ResourceKind>(ref: Ref<K>, answer: unknown, words: unknown): void {
    const object = this.#read.get(ref);
    const { version } = seenIn(answer);
    if (object && version !== '' && object.metadata.resourceVersion === version)
      this.#said.set(object, words);
  }
}
