import { ANY, formatCallers, FRONT_KEYS } from '../../../api/front.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import type { Callers } from '../../../store/callers.ts';
import type { Enforcement } from '../enforcement/verdict.ts';
import type { TailnetDestinations } from './destinations.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** The lists of the front of the mesh pods of a tailnet, as its ConfigMap has them. */
export type FrontTexts = Readonly<Record<keyof typeof FRONT_KEYS, string>>;

/** The most callers, so that all lists fit into a ConfigMap. */
export const MAX_CALLERS = 10_000;

/**
 * Whether the front serves listed callers and destinations alone: unless NetworkPolicies are known to do so. Until an operator that
 * has just started knows, it is as before: Envoys that arrive with the address of their node are on no list.
 */
export function isFrontOn(
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

/** The lists of a front; the stored ones until its callers are known. */
export function frontTextsOf(input: FrontInput, stored: FrontTexts | undefined): FrontTexts | undefined {
  const { tailnet, callers, destinations } = input;
  if (!isFrontOn(input, stored)) return OPEN;
  if (!callers) return stored;
  const { allowedCallers = [] } = tailnet.spec.pool;
  const listed = [...allowedCallers, ...callers.addresses].slice(0, MAX_CALLERS);
  return { callers: formatCallers(listed), destinations: destinations.text };
}

/** The lists in the data of a ConfigMap; undefined where it lacks one. */
export function frontTextsIn(data: Readonly<Record<string, unknown>>): FrontTexts | undefined {
  const { [FRONT_KEYS.callers]: callers, [FRONT_KEYS.destinations]: destinations } = data;
  return typeof callers === 'string' && typeof destinations === 'string'
    ? { callers, destinations }
    : undefined;
}
