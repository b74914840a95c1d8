import type { TagSelector } from '../generated/types.ts';
import type { Problem } from '../problem.ts';

/** A tag without its prefix. */
export function bare(tag: string): string {
  return tag.startsWith('tag:') ? tag.slice('tag:'.length) : tag;
}

/** The value that a tag has for a key, both without the prefix: empty for the key alone, undefined for any other tag. */
export function valueIn(tag: string, key: string): string | undefined {
  if (tag === key) return '';
  const separator = tag.startsWith(key) ? tag[key.length] : undefined;
  return separator === '-' || separator === ':' ? tag.slice(key.length + 1) : undefined;
}

/** Whether a device must have what the selector names. */
export function isPositive({ operator }: TagSelector): boolean {
  return operator === 'In' || operator === 'Exists';
}

/** Whether a device with the tag has what the selector requires, or with NotIn and DoesNotExist refuses. */
export function fits({ key, operator, values = [] }: TagSelector, tag: string): boolean {
  const value = valueIn(tag, bare(key));
  if (value === undefined) return false;
  return operator === 'Exists' || operator === 'DoesNotExist' || values.includes(value);
}

/** The keys of selectors with In or Exists that none of the allowed tags could match. */
export function beyondAllowed(
  selectors: readonly TagSelector[],
  allowedTags: readonly string[] | undefined,
): readonly string[] {
  if (!allowedTags) return [];
  const allowed = allowedTags.map(bare);
  return selectors
    .filter(selector => isPositive(selector) && !allowed.some(tag => fits(selector, tag)))
    .map(({ key }) => key);
}

const MAX_LISTED = 3;

/** The first of many texts, and how many more there are. */
export function firstOf(texts: readonly string[]): string {
  const more = texts.length > MAX_LISTED ? ` and ${texts.length - MAX_LISTED} more` : '';
  return `${texts.slice(0, MAX_LISTED).join(', ')}${more}`;
}

/** That no device is found, because a MeshTailnet does not allow the tags of these keys. */
export function tagNotAllowed(tailnet: string, keys: readonly string[]): Problem<'TagNotAllowed'> {
  return {
    reason: 'TagNotAllowed',
    text: `spec.allowedTags of MeshTailnet ${tailnet} has no tag that ${firstOf(keys)} of spec.tagSelectors could match, so no device is found`,
    fix: 'correct the selectors, or add a tag there',
  };
}
