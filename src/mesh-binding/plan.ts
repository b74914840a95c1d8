import { isEqual } from '../api/json.ts';
import { GATEWAY_GROUP } from '../api/gateway-api.ts';
import { API_VERSION } from '../api/generated/kinds.ts';
import type { Kinds } from '../api/generated/types.ts';
import { MANAGED_BY } from '../api/names.ts';
import type { Ref } from '../api/key.ts';
import type { OwnedResource } from '../resources/resources.ts';

/** Everything that decides what is to be done for one Gateway. */
export type Situation = {
  readonly gateway: Ref<'Gateway'>;
  /** What its clusters are made from, as a hash; nothing where it is not there or carries no mesh route. */
  readonly revision: string | undefined;
  /** What is there now. */
  readonly binding: Kinds['MeshBinding'] | undefined;
  /** For how long the binding has been as it is, as far as is known. */
  readonly sameForMs: number;
};

/** What is to be done. */
export type Action =
  | { readonly do: 'nothing' }
  | { readonly do: 'apply'; readonly object: OwnedResource }
  | { readonly do: 'remove'; readonly ref: Ref<'MeshBinding'> }
  /** Everything is there, and once more Envoy Gateway is to be asked when this time is over. */
  | { readonly do: 'wait'; readonly ms: number };

/**
 * A translation whose answer came from caches that were late is made good by one more, after this time. Only an extension
 * server knows that it was late, and it may write nothing: so one more follows whatever was the last change.
 */
export const ONCE_MORE_MS = 2000;

/** Attempt 0 is the change itself, and 1 is the one that follows it. */
const LAST_ATTEMPT = 1;

/*
 * What is done, by what is there and what should be there:
 *
 *   binding \ revision            none      another than the binding's    the binding's
 *   not there                     nothing   apply, attempt 0              -
 *   attempt 0, for less than 2 s  remove    apply, attempt 0              wait for the rest
 *   attempt 0, for 2 s            remove    apply, attempt 0              apply, attempt 1
 *   attempt 1 or more             remove    apply, attempt 0              nothing
 *
 * One without our label is never removed.
 *
 * What others changed in it is put back, with the attempt that it has; labels that they added stay.
 */

/** Decides what is to be done about the MeshBinding of a Gateway. */
export function plan({ gateway, revision, binding, sameForMs }: Situation): Action {
  const { namespace, name } = gateway;
  if (revision === undefined) {
    return binding && isOurs(binding)
      ? { do: 'remove', ref: { kind: 'MeshBinding', namespace, name } }
      : { do: 'nothing' };
  }
  const isSame = binding?.spec.revision === revision;
  const attempt = isSame ? binding.spec.attempt : 0;
  const wanted = bindingFor(gateway, revision, attempt);
  if (!binding || !isAsWanted(binding, wanted)) return { do: 'apply', object: wanted };
  if (attempt >= LAST_ATTEMPT) return { do: 'nothing' };
  if (sameForMs < ONCE_MORE_MS) return { do: 'wait', ms: ONCE_MORE_MS - sameForMs };
  return { do: 'apply', object: bindingFor(gateway, revision, LAST_ATTEMPT) };
}

function isOurs({ metadata: { labels = {} } }: Kinds['MeshBinding']): boolean {
  return Object.entries(MANAGED_BY).every(([name, value]) => labels[name] === value);
}

type Binding = OwnedResource & { readonly spec: Kinds['MeshBinding']['spec'] };

function bindingFor({ namespace, name }: Ref<'Gateway'>, revision: string, attempt: number): Binding {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshBinding',
    metadata: { name, namespace, labels: MANAGED_BY },
    spec: { targetRefs: [{ group: GATEWAY_GROUP, kind: 'Gateway', name }], revision, attempt },
  };
}

function isAsWanted(binding: Kinds['MeshBinding'], wanted: Binding): boolean {
  return isEqual(binding.spec, wanted.spec) && isOurs(binding);
}
