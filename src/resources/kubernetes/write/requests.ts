import type { Clock } from '../../../api/clock.ts';
import { isEqual } from '../../../api/json.ts';
import type { Ref, ResourceKind } from '../../../api/key.ts';
import type { Resource } from '../../../api/resource.ts';
import type { ReadResources } from '../../resources.ts';
import { KubeError } from '../kube-error.ts';
import type { KubeErrorReason } from '../kube-error.ts';
import { fieldsOf, textIn } from '../unstructured.ts';
import type { Fields } from '../unstructured.ts';
import type { TakeAnswers } from '../reflector/store-updates.ts';
import type { KubeRequest, KubeTransport } from '../transport/transport.ts';

/** What all writes work with. */
export type WriteDeps = {
  readonly ask: (request: KubeRequest) => Promise<unknown>;
  readonly read: Pick<ReadResources, 'get'>;
  readonly arrivals: TakeAnswers;
  readonly applied: Applied;
};

/** How often a write is retried after a conflict. */
export const MAX_ATTEMPTS = 8;

/** The field manager of all our processes. */
const FIELD_MANAGER = 'mesh-gateway';

/** One step of a JSON patch; a test that fails makes the whole patch fail. */
export type PatchStep =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** Changes an object in steps, all of them or none. */
export function patchRequest(path: string, steps: readonly PatchStep[]): KubeRequest {
  const query = { fieldManager: FIELD_MANAGER };
  return { verb: 'patch', path, query, body: { type: 'application/json-patch+json', value: steps } };
}

/** Deletes the object of a uid, and none of the same name that was created since. */
export function deleteRequest(path: string, uid: string): KubeRequest {
  const value = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } };
  return { verb: 'delete', path, body: { type: 'application/json', value } };
}

/**
 * Applies an object: other fields that were ours go, and those of others stay. An API server takes an object inside of a
 * kind of ours that loses all of its fields for null, and refuses it: such a one is left out first, and then applied anew.
 */
export async function apply({ ask }: WriteDeps, path: string, object: Fields): Promise<unknown> {
  try {
    return await ask(applyRequest(path, object));
  } catch (failure) {
    const fuller = withoutEmpty(object) as Fields;
    if (!failedFor(failure, 'Invalid') || isEqual(fuller, object)) throw failure;
    const { version } = seenIn(await ask(applyRequest(path, fuller)));
    return await ask(applyRequest(path, over(object, version)));
  }
}

function applyRequest(path: string, value: Fields): KubeRequest {
  const query = { fieldManager: FIELD_MANAGER, force: 'true' };
  return { verb: 'apply', path, query, body: { type: 'application/apply-patch+yaml', value } };
}

/** The same object over another version, if it is applied over one at all. */
function over(object: Fields, resourceVersion: string): Fields {
  const metadata = fieldsOf(object['metadata']);
  if (metadata?.['resourceVersion'] === undefined) return object;
  return { ...object, metadata: { ...metadata, resourceVersion } };
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  const fields = fieldsOf(value);
  if (!fields) return value;
  const entries = Object.entries(fields).map(([name, inner]) => [name, withoutEmpty(inner)] as const);
  return Object.fromEntries(entries.filter(([, inner]) => !isEmpty(inner)));
}

function isEmpty(value: unknown): boolean {
  const fields = fieldsOf(value);
  return fields !== undefined && Object.keys(fields).length === 0;
}

const MAX_TRIES = 4;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;

export type RetryDeps = {
  readonly transport: Pick<KubeTransport, 'ask'>;
  readonly clock: Pick<Clock, 'after'>;
  /** At least 0, less than 1. */
  readonly random: () => number;
};

/** Sends a request, and retries while the server is busy, up to three times, honouring Retry-After. */
export async function askRetrying(request: KubeRequest, deps: RetryDeps): Promise<unknown> {
  const { transport, clock, random } = deps;
  for (let tries = 1; ; tries++) {
    try {
      return await transport.ask(request);
    } catch (failure) {
      if (tries === MAX_TRIES || !(failure instanceof KubeError) || !isBusy(failure)) throw failure;
      const wanted = failure.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (tries - 1);
      await pause(Math.min(wanted, MAX_PAUSE_MS) * (1 + random() / 4), clock, request.signal);
    }
  }
}

/** 503 with Retry-After comes from a server, or a proxy before it, that did nothing. */
function isBusy({ reason, status, retryAfterMs }: KubeError): boolean {
  return reason === 'Busy' || (status === 503 && retryAfterMs !== undefined);
}

/** Fails as soon as the signal is aborted. */
function pause(ms: number, clock: Pick<Clock, 'after'>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      cancel();
      reject(signal?.reason as Error);
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', aborted);
      resolve();
    });
    signal?.addEventListener('abort', aborted, { once: true });
  });
}

/** What an answer shows of an object's identity and version. */
export type Seen = { readonly uid: string; readonly version: string; readonly metadata: Fields };

/** Reads those of an answer. */
export function seenIn(answer: unknown): Seen {
  const metadata = fieldsOf(fieldsOf(answer)?.['metadata']) ?? {};
  return { uid: textIn(metadata, 'uid'), version: textIn(metadata, 'resourceVersion'), metadata };
}

/** The finalizers of an object. */
export function finalizersIn({ metadata }: Pick<Seen, 'metadata'>): readonly string[] {
  const { finalizers } = metadata;
  return Array.isArray(finalizers) ? finalizers.filter(name => typeof name === 'string') : [];
}

/** Puts an answer into the store, unless it shows an object for the last time: no finalizer is left. */
export function takeAnswer({ arrivals }: Pick<WriteDeps, 'arrivals'>, answer: unknown): void {
  const seen = seenIn(answer);
  const isDeleted = seen.metadata['deletionTimestamp'] !== undefined;
  if (!isDeleted || finalizersIn(seen).length > 0) arrivals.take(answer);
}

/** Reads an object past the store, and puts it there; undefined where it does not exist. */
export async function getLive(deps: WriteDeps, path: string): Promise<Seen | undefined> {
  try {
    const answer = await deps.ask({ verb: 'get', path });
    takeAnswer(deps, answer);
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
 * What was last applied to objects, as long as they are as they were then. So what others add, and what we cannot see of
 * it, does not make us apply the same again and again.
 */
export class Applied {
  readonly #applied = new WeakMap<Resource, unknown>();
  readonly #read: Pick<ReadResources, 'get'>;

  constructor(read: Pick<ReadResources, 'get'>) {
    this.#read = read;
  }

  has(object: Resource, value: unknown): boolean {
    return this.#applied.has(object) && isEqual(this.#applied.get(object), value);
  }

  /** Notes what an answer was to, if the store has the object as it is in the answer. */
  note<K extends ResourceKind>(ref: Ref<K>, answer: unknown, value: unknown): void {
    const object = this.#read.get(ref);
    const { version } = seenIn(answer);
    if (object && version !== '' && object.metadata.resourceVersion === version)
      this.#applied.set(object, value);
  }
}
