import type { MeshEndpoint } from '../generated/types.ts';

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

function shown(text: string): string {
  const cut = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text;
  return /^[\w./:@+-]*$/.test(cut) ? cut : JSON.stringify(cut);
}
