import type { Kinds } from '../api/generated/types.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** The one of several MeshTailnets with the same domain that counts: the oldest, and of equally old ones the first by name. */
export function chosenTailnet(tailnets: readonly MeshTailnet[]): MeshTailnet | undefined {
  return tailnets.reduce<MeshTailnet | undefined>(
    (best, each) => (best && !isBefore(each, best) ? best : each),
    undefined,
  );
}

function isBefore(a: MeshTailnet, b: MeshTailnet): boolean {
  const [madeA, madeB] = [madeAt(a), madeAt(b)];
  return madeA === madeB ? a.metadata.name < b.metadata.name : madeA < madeB;
}

/** What has no time, or none that can be read, has yet to be made. */
function madeAt({ metadata: { creationTimestamp } }: MeshTailnet): number {
  const time = creationTimestamp === undefined ? NaN : Date.parse(creationTimestamp);
  return Number.isNaN(time) ? Infinity : time;
}
