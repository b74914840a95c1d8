import type { Clock } from '../../api/clock.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import { keyOf } from '../../api/key.ts';
import type { Key, Ref } from '../../api/key.ts';
import { isRecord } from '../../api/json.ts';
import {
  ExtensionResourceSchema,
  PostTranslateExtensionContextSchema as ContextSchema,
  PostTranslateModifyRequestSchema as RequestSchema,
} from '../proto/envoygateway/extension_pb.ts';
import { bytesOf, valuesOf } from '../wire.ts';

/** The revision of a Gateway that the operator had seen when it asked for a translation. */
export type Binding = { readonly gateway: Ref<'Gateway'>; readonly revision: string };

/** What our caches give. */
export interface Revisions {
  /** The revision of a Gateway as of now; undefined where none of its clusters is ours. */
  revisionOf(gateway: Ref<'Gateway'>): string | undefined;
  /** Calls after each change of the caches; returns the function that ends it. */
  onChange(listener: () => void): () => void;
}

/** How a wait ended: the caches had the revision, or the time was over. */
export type WaitEnd = 'reached' | 'timeout';

const LIMITS = {
  waitMs: 250,
  /** Many changes come together: they are inspected once. */
  settleMs: 5,
  waiters: 16,
  revisionsOfGateway: 8,
  gateways: 1024,
  objects: 64,
  objectBytes: 64 * 1024,
  bindingLength: 1024,
} as const;

/**
 * Returns the function by which a translation waits for caches that are behind the MeshBinding that came with it, or
 * undefined where nothing has to be waited for:
 *
 *   revision of the MeshBinding               the caches are         the translation
 *   the one that the caches have              level                  is answered at once
 *   one that they had before                  ahead                  is answered at once: it will not come back
 *   one that they never had                   behind, or restarted   waits for it, 250 ms at most
 *   one that was waited for in vain           of another version     is answered at once
 *
 * While one waits, all Gateways do: so none is added when many wait already.
 */
export function waitForRevisions(
  revisions: Revisions,
  clock: Clock,
  ended: (end: WaitEnd) => void,
): (request: Uint8Array) => Promise<void> | undefined {
  const known = new KnownRevisions();
  let waiters = 0;
  const isKnown = ({ gateway, revision }: Binding) => {
    const key = keyOf(gateway);
    const current = revisions.revisionOf(gateway);
    if (current !== undefined) known.add(key, current);
    return known.has(key, revision);
  };
  return request => {
    const awaited = bindingsIn(request).filter(binding => !isKnown(binding));
    if (awaited.length === 0 || waiters >= LIMITS.waiters) return undefined;
    waiters++;
    return until(() => awaited.every(isKnown), revisions, clock).then(end => {
      waiters--;
      for (const { gateway, revision } of awaited) known.add(keyOf(gateway), revision);
      ended(end);
    });
  };
}

/** The last revisions of each Gateway. */
class KnownRevisions {
  readonly #byGateway = new Map<Key, readonly string[]>();

  has(gateway: Key, revision: string): boolean {
    return this.#byGateway.get(gateway)?.includes(revision) ?? false;
  }

  add(gateway: Key, revision: string): void {
    const others = (this.#byGateway.get(gateway) ?? []).filter(each => each !== revision);
    this.#byGateway.delete(gateway);
    this.#byGateway.set(gateway, [revision, ...others].slice(0, LIMITS.revisionsOfGateway));
    const [oldest = gateway] = this.#byGateway.keys();
    if (this.#byGateway.size > LIMITS.gateways) this.#byGateway.delete(oldest);
  }
}

function until(isReached: () => boolean, revisions: Revisions, clock: Clock): Promise<WaitEnd> {
  return new Promise(resolve => {
    let endSettling: (() => void) | undefined;
    const end = (how: WaitEnd) => {
      endWait();
      endListening();
      endSettling?.();
      resolve(how);
    };
    const inspect = () => {
      endSettling = undefined;
      if (isReached()) end('reached');
    };
    const endWait = clock.after(LIMITS.waitMs, () => end('timeout'));
    const endListening = revisions.onChange(() => (endSettling ??= clock.after(LIMITS.settleMs, inspect)));
  });
}

/** The MeshBindings that Envoy Gateway sends along with a translation. */
export function bindingsIn(request: Uint8Array): readonly Binding[] {
  return valuesOf(request, RequestSchema.field.postTranslateContext.number, LIMITS.objects)
    .flatMap(context => valuesOf(context, ContextSchema.field.extensionResources.number, LIMITS.objects))
    .slice(0, LIMITS.objects)
    .flatMap(resource => {
      const json = bytesOf(resource, ExtensionResourceSchema.field.unstructuredBytes.number);
      const binding = json && json.length <= LIMITS.objectBytes ? bindingOf(parsed(json)) : undefined;
      return binding ? [binding] : [];
    });
}

function parsed(json: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.length).toString());
  } catch {
    return undefined;
  }
}

/** A MeshBinding has the name of its Gateway. */
function bindingOf(object: unknown): Binding | undefined {
  if (!isRecord(object) || object['kind'] !== 'MeshBinding') return undefined;
  const { apiVersion, metadata, spec } = object;
  if (typeof apiVersion !== 'string' || !apiVersion.startsWith(`${GROUP}/`)) return undefined;
  if (!isRecord(metadata) || !isRecord(spec)) return undefined;
  const { namespace, name } = metadata;
  const { revision } = spec;
  if (typeof namespace !== 'string' || typeof name !== 'string' || typeof revision !== 'string')
    return undefined;
  if (namespace.length + name.length + revision.length > LIMITS.bindingLength) return undefined;
  return { gateway: { kind: 'Gateway', namespace, name }, revision };
}
