import type { MeshEndpoint } from '../generated/types.ts';
import { cutText } from '../text.ts';

/** The longest key or value that is shown; the rest is cut off. */
const MAX_SHOWN = 60;

/** Metadata as people read it, such as region=eu and tier=prod; a text that could be taken for something else is in quotes. */
export function metadataText(
  metadata: NonNullable<MeshEndpoint['metadata']>,
  separator: ', ' | ' and ',
): string {
  return Object.entries(metadata)
    .map(([key, value]) => `${shown(key)}=${shown(value)}`)
    .join(separator);
}

/** The longest summary; what is beyond is left out. */
const MAX_SUMMARY = 256;

/** The values of each key among endpoints, sorted, such as `region=eu-west,us-east tier=prod`; empty without metadata. */
export function metadataSummary(endpoints: readonly Pick<MeshEndpoint, 'metadata'>[]): string {
  const valuesOf = new Map<string, Set<string>>();
  for (const { metadata = {} } of endpoints)
    for (const [key, value] of Object.entries(metadata)) {
      const values = valuesOf.get(key);
      if (values) values.add(value);
      else valuesOf.set(key, new Set([value]));
    }
  const texts = [...valuesOf]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, values]) => `${shown(key)}=${[...values].sort().map(shown).join(',')}`);
  return cutText(texts.join(' '), MAX_SUMMARY, '...');
}

function shown(text: string): string {
  const cut = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text;
  return /^[\w./:@+-]*$/.test(cut) ? cut : JSON.stringify(cut);
}
