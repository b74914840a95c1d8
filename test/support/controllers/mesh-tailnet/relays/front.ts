import type { FrontState } from '../../../../../src/controllers/mesh-tailnet/pool/front-condition.ts';
import type { TailnetDestinations } from '../../../../../src/controllers/mesh-tailnet/relays/destinations.ts';
import type { FrontInput } from '../../../../../src/controllers/mesh-tailnet/relays/front.ts';
import { createPublished } from '../../../../../src/runtime/published.ts';
import { gatherCallers } from '../../../../../src/store/callers.ts';
import { named } from '../../../declared.ts';
import { meshTailnet } from '../../../objects.ts';
import { resourceOf } from '../../../store/resources.ts';

/** What the relays controller reads for the front of mesh pods, where a test is about something else: nothing is known. */
export const UNKNOWN_FRONT = {
  callers: gatherCallers(),
  fronts: createPublished<FrontState>(),
  enforcement: { current: () => 'unknown' as const, subscribe: () => () => undefined },
} as const;

/** Destinations of the namespace `default`, which all fit. */
export function declaredBy(lines: readonly string[]): TailnetDestinations {
  return {
    text: lines.map(line => `${line}\n`).join(''),
    cut: [],
    declared: new Map([['default', lines]]),
  };
}

/** What decides the lists of a front that is on: no callers are known unless they are given. */
export function frontInput(fields: Partial<FrontInput> = {}, pool: object = {}): FrontInput {
  const tailnet = resourceOf(named(meshTailnet({ pool }), 'example'));
  if (tailnet.kind !== 'MeshTailnet') throw new Error(`is a ${tailnet.kind}`);
  return { tailnet, enforcement: 'unknown', callers: undefined, destinations: declaredBy([]), ...fields };
}
