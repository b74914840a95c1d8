import type { Clock } from '../../api/clock.ts';
import { isEqual } from '../../api/json.ts';
import type { Ref, ResourceKind } from '../../api/key.ts';
import type { Resource, ResourceOf } from '../../api/objects/resource.ts';
import type { ReadResources } from '../../store/resources.ts';
import { KubeError } from '../transport/transport.ts';
import type { KubeErrorReason, KubeRequest, KubeTransport } from '../transport/transport.ts';
import { fieldsOf, textIn } from '../unstructured.ts';
import type { Fields } from '../../api/json.ts';

import type { PutResponses } from '../reflector/store-updates.ts';

/** Sends a request and returns the JSON of its response. */
export type Send = (request: KubeRequest) => Promise<unknown>;

export type WriteDeps = {
  readonly send: Send;
  readonly read: Pick<ReadResources, 'get'>;
  readonly updates: PutResponses;
  readonly applied: Applied;
};

/** How often a write is tried while it conflicts with others. */
export const MAX_ATTEMPTS = 8;

/** The query of writes: an API server keeps which manager set which field. */
export const FIELD_MANAGER = { fieldManager: 'mesh-gateway' };

/** An operation of a JSON patch; a failed test fails the whole patch. */
export type PatchStep =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

export function patchRequest(path: string, steps: readonly PatchStep[]): KubeRequest {
  return {
    verb: 'patch',
    path,
    query: FIELD_MANAGER,
    body: { type: 'application/json-patch+json', value: steps },
  };
}

/** With a uid, deletes the object that has it, and not one that was created later under its name. */
export function deleteRequest(path: string, uid?: string): KubeRequest {
  const preconditions = uid === undefined ? {} : { preconditions: { uid } };
  const value = { apiVersion: 'v1', kind: 'DeleteOptions', ...preconditions };
  return { verb: 'delete', path, body: { type: 'application/json', value } };
}

/** Server-side apply, which takes over fields that other managers have set; returns the stored object. */
export async function apply(send: Send, path: string, value: Fields): Promise<unknown> {
  const query = { ...FIELD_MANAGER, force: 'true' };
  return await send({
    verb: 'apply',
    path,
    query,
    body: { type: 'application/apply-patch+yaml', value },
  });
}

/**
 * Applies a custom resource. Where a nested object of it loses its last field, an API server sees null and refuses it. Then
 * the resource is applied without its empty parts first, which removes the fields, and then with them.
 */
export async function applyCustomResource(send: Send, path: string, object: Fields): Promise<unknown> {
  try {
    return await apply(send, path, object);
  } catch (failure) {
    const nonEmpty = withoutEmpty(object) as Fields;
    if (!failedWith(failure, 'Invalid') || isEqual(nonEmpty, object)) throw failure;
    const { version } = seenIn(await apply(send, path, nonEmpty));
    return await apply(send, path, withVersion(object, version));
  }
}

/** Replaces the resourceVersion, if the object has one. */
function withVersion(object: Fields, resourceVersion: string): Fields {
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
  readonly transport: Pick<KubeTransport, 'send'>;
  readonly clock: Pick<Clock, 'after'>;
  /** At least 0, less than 1. */
  readonly random: () => number;
};

/** Sends a request; busy responses are retried up to three times, honouring Retry-After. */
export async function sendWithRetries(request: KubeRequest, deps: RetryDeps): Promise<unknown> {
  const { transport, clock, random } = deps;
  for (let tries = 1; ; tries++) {
    try {
      return await transport.send(request);
    } catch (failure) {
      if (tries === MAX_TRIES || !(failure instanceof KubeError) || !isBusy(failure)) throw failure;
      const wanted = failure.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (tries - 1);
      await pause(Math.min(wanted, MAX_PAUSE_MS) * (1 + random() / 4), clock, request.signal);
    }
  }
}

/** A server or proxy that sends 503 with Retry-After did nothing. */
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

/** The metadata of the object in a response. */
export type Seen = { readonly uid: string; readonly version: string; readonly metadata: Fields };

export function seenIn(response: unknown): Seen {
  const metadata = fieldsOf(fieldsOf(response)?.['metadata']) ?? {};
  return { uid: textIn(metadata, 'uid'), version: textIn(metadata, 'resourceVersion'), metadata };
}

export function finalizersIn({ metadata }: Pick<Seen, 'metadata'>): readonly string[] {
  const { finalizers } = metadata;
  return Array.isArray(finalizers) ? finalizers.filter(name => typeof name === 'string') : [];
}

/** Stores the object in a response, unless it has just been deleted: it has a deletionTimestamp and no finalizers. */
export function putResponse({ updates }: Pick<WriteDeps, 'updates'>, response: unknown): void {
  const seen = seenIn(response);
  const isDeleted = seen.metadata['deletionTimestamp'] !== undefined;
  if (!isDeleted || finalizersIn(seen).length > 0) updates.put(response);
}

/** Reads an object from the server and stores it; undefined where it does not exist. */
export async function getLive(deps: WriteDeps, path: string): Promise<Seen | undefined> {
  const response = await getExisting(deps.send, path);
  if (response === undefined) return undefined;
  putResponse(deps, response);
  return seenIn(response);
}

/** Reads an object; undefined where it does not exist. */
export async function getExisting(send: Send, path: string): Promise<unknown> {
  try {
    return await send({ verb: 'get', path });
  } catch (failure) {
    if (failedWith(failure, 'NotFound')) return undefined;
    throw failure;
  }
}

/** Whether a request failed for one of these reasons. */
export function failedWith(failure: unknown, ...reasons: readonly KubeErrorReason[]): failure is KubeError {
  return failure instanceof KubeError && reasons.includes(failure.reason);
}

/**
 * What was last applied to stored objects that do not equal it: because others add fields, or because fields are not read.
 * Such an object would be applied again at each reconcile.
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

  /** Records what was applied, if the store has the object of the response and that does not equal it. */
  note<K extends ResourceKind>(
    ref: Ref<K>,
    response: unknown,
    value: unknown,
    equals: (object: ResourceOf<K>) => boolean,
  ): void {
    const object = this.#read.get(ref);
    const { version } = seenIn(response);
    if (!object || version === '' || object.metadata.resourceVersion !== version) return;
    if (!equals(object)) this.#applied.set(object, value);
  }
}
