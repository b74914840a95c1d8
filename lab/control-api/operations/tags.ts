import { Refusal } from '../answer.ts';
import type { Policy } from '../state.ts';

const TAG = /^tag:[a-zA-Z][a-zA-Z0-9-]{0,49}$/;

/**
 * Whether a credential may give these tags: its own ones, all of them together, or such as its own ones own by the
 * policy. A part of its own ones alone is refused, as the vendor does.
 */
export function arePermittedTags(tags: readonly string[], own: readonly string[], policy: Policy): boolean {
  if (!tags.every(tag => TAG.test(tag))) return false;
  const isWhole = tags.length === own.length && own.every(tag => tags.includes(tag));
  const isOwned = (tag: string) => (policy.tagOwners[tag] ?? []).some(owner => own.includes(owner));
  return isWhole || tags.every(isOwned);
}

/** Refuses tags that a credential may not give. */
export function expectPermittedTags(tags: readonly string[], own: readonly string[], policy: Policy): void {
  if (arePermittedTags(tags, own, policy)) return;
  throw new Refusal(400, `requested tags [${tags.join(' ')}] are invalid or not permitted`);
}

/** The first tag that the policy does not know, unless it is one of the credential's own. */
export function unknownTag(
  tags: readonly string[],
  own: readonly string[],
  policy: Policy,
): string | undefined {
  return tags.find(tag => !own.includes(tag) && policy.tagOwners[tag] === undefined);
}
