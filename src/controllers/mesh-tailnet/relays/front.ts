import { ANY, formatCallers, FRONT_KEYS } from '../../../api/front.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { canonicalIP, containsAddress, familyOf, rangesOf } from '../../../api/ip.ts';
import { DESTINATIONS_LENGTH, MAX_CALLERS } from '../../../api/shares.ts';
import type { Callers } from '../../../store/callers.ts';
import type { Enforcement } from '../enforcement/verdict.ts';
import type { FrontState } from '../pool/front-condition.ts';
import { destinationsWithin, within } from './destinations.ts';
import type { TailnetDestinations } from './destinations.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** The lists of the front of the mesh pods of a tailnet, as its ConfigMap has them. */
export type FrontTexts = Readonly<Record<keyof typeof FRONT_KEYS, string>>;

/**
 * Whether the front serves listed callers and destinations alone: unless NetworkPolicies are known to do so. Until an operator that
 * has just started knows, it is as before: Envoys that arrive with the address of their node are on no list.
 */
function isFrontOn(
  { tailnet, enforcement }: Pick<FrontInput, 'tailnet' | 'enforcement'>,
  stored: FrontTexts | undefined,
): boolean {
  const { front } = tailnet.spec.pool;
  if (front === 'Auto' && enforcement === undefined && stored) return stored.callers !== OPEN.callers;
  return front === 'On' || (front === 'Auto' && enforcement !== 'enforced');
}

export type FrontInput = {
  readonly tailnet: MeshTailnet;
  readonly enforcement: Enforcement | undefined;
  readonly callers: Callers | undefined;
  readonly destinations: TailnetDestinations;
};

const OPEN: FrontTexts = { callers: `${ANY}\n`, destinations: `${ANY}\n` };

/** The lists of a front, and what its condition is made from. */
export type FrontLists = {
  /** Undefined while its callers are not known, and never were. */
  readonly texts: FrontTexts | undefined;
  readonly state: FrontState;
};

/** The lists of a front, which have this many characters at most; the stored ones until its callers are known. */
export function frontListsOf(input: FrontInput, stored: FrontTexts | undefined, room: number): FrontLists {
  const { tailnet, callers, destinations } = input;
  const isOn = isFrontOn(input, stored);
  const complete = { isOn, areCallersKnown: callers !== undefined, cut: [], omittedCallers: 0 };
  const state = { ...complete, nodeAddresses: callers?.nodeAddresses ?? [] };
  if (!isOn) return { texts: OPEN, state };
  if (!callers) return { texts: stored, state };
  const { allowedCallers = [] } = tailnet.spec.pool;
  const wanted = withoutRanges(allowedCallers, callers.addresses);
  const listed = within(wanted, room - DESTINATIONS_LENGTH.least).slice(0, MAX_CALLERS);
  const text = formatCallers(listed);
  const { text: declared, cut } = destinationsWithin(destinations, room - text.length);
  return {
    texts: { callers: text, destinations: declared },
    state: { ...state, cut, omittedCallers: wanted.length - listed.length },
  };
}

/** The allowed callers, and the addresses that are in none of their ranges. */
function withoutRanges(allowed: readonly string[], addresses: readonly string[]): readonly string[] {
  const texts = allowed.filter(each => familyOf(each) === undefined);
  const ranges = texts.length === 0 ? undefined : rangesOf(texts);
  const others = ranges ? addresses.filter(address => !containsAddress(ranges, address)) : addresses;
  return [...new Set([...allowed.map(canonicalIP), ...others])];
}

/** The lists in the data of a ConfigMap; undefined where it lacks one. */
export function frontTextsIn(data: Readonly<Record<string, unknown>>): FrontTexts | undefined {
  const { [FRONT_KEYS.callers]: callers, [FRONT_KEYS.destinations]: destinations } = data;
  return typeof callers === 'string' && typeof destinations === 'string'
    ? { callers, destinations }
    : undefined;
}
