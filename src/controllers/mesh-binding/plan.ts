import { isEqual } from '../../api/json.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import { API_VERSION } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { MANAGED_BY } from '../../api/names.ts';
import type { Ref } from '../../api/key.ts';
import type { OwnedResource } from '../../store/resources.ts';
import type { GatewaySettings } from '../../traffic/gateway-settings.ts';

/** The observed state of one Gateway and its MeshBinding. */
export type Input = {
  readonly gateway: Ref<'Gateway'>;
  /** The desired revision; undefined where the Gateway does not exist or has no mesh routes. */
  readonly revision: string | undefined;
  /** The settings of the Gateway. */
  readonly settings: GatewaySettings | undefined;
  readonly binding: Kinds['MeshBinding'] | undefined;
  /** How long this process has seen this binding, and that it has, or lacks, the desired revision. */
  readonly unchangedForMs: number;
  /** The delay of a revision that differs. */
  readonly applyAfterMs: number;
  /** Whether the revision has differed from that of the binding since it was written, and is the same again. */
  readonly hasDiffered: boolean;
};

/** The action that leads to the desired state. */
export type Action =
  | { readonly do: 'nothing' }
  | { readonly do: 'apply'; readonly object: OwnedResource }
  | { readonly do: 'remove'; readonly ref: Ref<'MeshBinding'> }
  /** A write is due after this time. */
  | { readonly do: 'wait'; readonly ms: number };

/**
 * The least delay of a new revision. Envoy Gateway translates at once for most changes, such as a new route, because it watches
 * them too. If the new revision caused another translation beside that one, traffic would wait for both.
 */
export const APPLY_AFTER_MS = 150;

/** The longest delay of a new revision, while it changes again and again. */
export const MAX_APPLY_AFTER_MS = 2000;

/**
 * The delay of attempt 1, a second translation after every change. It repairs a translation that an extension server
 * answered from a cache that was behind: only that server knows, and it has no right to write.
 */
export const REPEAT_AFTER_MS = 2000;

/** Attempt 0 is the change itself, and attempt 1 repeats the translation. */
const LAST_ATTEMPT = 1;

/*
 * The action, by the existing binding and the desired revision:
 *
 *   binding \ revision            none      differs                       same
 *   none                          nothing   apply, attempt 0              -
 *   attempt 0, for less than 2 s  remove    apply, attempt 0              wait for the rest
 *   attempt 0, for 2 s            remove    apply, attempt 0              apply, attempt 1
 *   attempt 1 or more             remove    apply, attempt 0              nothing; the next attempt, if it had differed
 *
 * A revision that had differed was not written, but what Envoy Gateway watches was translated twice: the later translation may be the
 * one that was answered from a cache that was behind.
 * A revision that differs is applied once it, or another, has differed for the delay.
 * A binding without our labels is never removed. Other changes to a binding are reverted, and its attempt is kept; labels
 * that others added stay.
 */

/** Plans the MeshBinding of a Gateway. */
export function plan(input: Input): Action {
  const { gateway, revision, settings, binding, unchangedForMs, applyAfterMs, hasDiffered } = input;
  const { namespace, name } = gateway;
  if (revision === undefined) {
    return binding && isOurs(binding)
      ? { do: 'remove', ref: { kind: 'MeshBinding', namespace, name } }
      : { do: 'nothing' };
  }
  const applyAfter = (delayMs: number, attempt: number): Action =>
    unchangedForMs < delayMs
      ? { do: 'wait', ms: delayMs - unchangedForMs }
      : { do: 'apply', object: bindingFor(gateway, revision, settings, attempt) };
  if (binding?.spec.revision !== revision) return applyAfter(applyAfterMs, 0);
  const { attempt } = binding.spec;
  const desired = bindingFor(gateway, revision, settings, attempt);
  if (!isAsDesired(binding, desired)) return { do: 'apply', object: desired };
  if (attempt >= LAST_ATTEMPT && !hasDiffered) return { do: 'nothing' };
  return applyAfter(REPEAT_AFTER_MS, attempt + 1);
}

function isOurs({ metadata: { labels = {} } }: Kinds['MeshBinding']): boolean {
  return Object.entries(MANAGED_BY).every(([name, value]) => labels[name] === value);
}

type Binding = OwnedResource & { readonly spec: Kinds['MeshBinding']['spec'] };

function bindingFor(
  { namespace, name }: Ref<'Gateway'>,
  revision: string,
  settings: GatewaySettings | undefined,
  attempt: number,
): Binding {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshBinding',
    metadata: { name, namespace, labels: MANAGED_BY },
    spec: {
      targetRefs: [{ group: GATEWAY_GROUP, kind: 'Gateway', name }],
      revision,
      attempt,
      ...(settings && { settings }),
    },
  };
}

function isAsDesired(binding: Kinds['MeshBinding'], desired: Binding): boolean {
  return isEqual(binding.spec, desired.spec) && isOurs(binding);
}
