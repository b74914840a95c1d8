import type { Kinds } from '../generated/types.ts';
import type { Problem } from '../problem.ts';

type MeshTailnet = Pick<Kinds['MeshTailnet'], 'metadata' | 'spec'>;

/** The tags that VIP services of a MeshTailnet may not have. */
export function beyondTailnet(tags: readonly string[], { spec }: MeshTailnet): readonly string[] {
  return tags.filter(tag => !spec.tags.includes(tag) && spec.serviceTags?.includes(tag) !== true);
}

/** What makes a MeshTailnet admit these tags. */
export function lineFor(tags: readonly string[], { metadata }: MeshTailnet): string {
  return `add ${tags.join(', ')} to spec.serviceTags of MeshTailnet ${metadata.name}`;
}

/** That a VIP service has tags that it may not have. */
export function serviceTagNotAllowed(
  beyond: readonly string[],
  tailnet: MeshTailnet,
): Problem<'TagNotAllowed'> {
  const text = `MeshTailnet ${tailnet.metadata.name} has ${beyond.join(', ')} neither in spec.tags nor in spec.serviceTags`;
  return { reason: 'TagNotAllowed', text, fix: `use another tag, or ${lineFor(beyond, tailnet)}` };
}
