import { Refusal } from '../answer.ts';
import type { Policy, State } from '../state.ts';

const TAG = /^tag:[a-zA-Z][a-zA-Z0-9-]{0,49}$/;

/**
 * Whether a credential may give these tags: its own ones, all of them together, or such as its own ones own by the
 * policy. A part of its own ones alone is refused, as the vendor does.
 */
export function arePermittedTags(tags: readonly string[], own: readonly string[], policy: Policy): boolean {
  if (!tags.every(tag => TAG.test(tag))) return false;
  const isWhole = tags.length === own.length && own.every(tag => tags.includes(tag));
  return isWhole || tags.every(tag => isOwnedTag(tag, own, policy));
}

/** Refuses tags that a credential may not give. */
export function expectPermittedTags(tags: readonly string[], own: readonly string[], policy: Policy): void {
  if (arePermittedTags(tags, own, policy)) return;
  throw new Refusal(400, `requested tags [${tags.join(' ')}] are invalid or not permitted`);
}

/** Refuses a tag that headscale does not let a credential assign: one that is neither its own nor owned by one of those. */
export function expectAssignableTag(tag: string, own: readonly string[], policy: Policy): void {
  if (own.includes(tag) || isOwnedTag(tag, own, policy)) return;
  throw new Refusal(403, `token may not assign tag ${tag}`);
}

/** Whether headscale knows a tag. Without a policy it knows none; here it knows those of its clients, so that tests need none. */
export function isDefinedTag(
  tag: string,
  own: readonly string[],
  { policy, isDefaultPolicy }: Pick<State, 'policy' | 'isDefaultPolicy'>,
): boolean {
  return policy.tagOwners[tag] !== undefined || (isDefaultPolicy && own.includes(tag));
}

function isOwnedTag(tag: string, own: readonly string[], { tagOwners }: Policy): boolean {
  return (tagOwners[tag] ?? []).some(owner => own.includes(owner));
}
