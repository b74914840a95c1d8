import { inSeconds } from '../../../api/clock.ts';
import { findCondition } from '../../../api/conditions.ts';
import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { firstOf, tagNotAllowed } from '../../../api/objects/tag-selectors.ts';
import { conditionOf, formatProblem, within } from '../../../api/problem.ts';
import type { ProblemAt, Why } from '../../../api/problem.ts';
import type { Discovered } from './discover.ts';
import type { Discovery } from './discovery.ts';

type Problem = ProblemAt<'MeshEndpoints Discovered'>;

type MeshEndpoints = Kinds['MeshEndpoints'];
type DiscoveryStatus = NonNullable<NonNullable<MeshEndpoints['status']>['discovery']>;

/** status.discovery; undefined where nothing is known of the present tailnet. */
export function discoveryStatusOf(
  { spec, status }: MeshEndpoints,
  discovery: Discovery,
): DiscoveryStatus | undefined {
  if (discovery.is === 'off' || discovery.is === 'refused') return undefined;
  const { tailnet } = spec;
  if (discovery.is === 'unlisted') {
    const written = status?.discovery?.tailnet === tailnet ? status.discovery : undefined;
    return written && discovery.why !== undefined ? { ...written, stale: true } : written;
  }
  const { lastSync, devices, discovered, isStale } = discovery;
  return {
    tailnet,
    ...(lastSync && { lastSync: inSeconds(lastSync) }),
    devices,
    matched: discovered.matched,
    stale: isStale,
  };
}

/** The condition Discovered; undefined for an object without selectors. */
export function discoveredConditionOf(
  { status }: MeshEndpoints,
  discovery: Discovery,
): ConditionUpdate | undefined {
  switch (discovery.is) {
    case 'off':
      return undefined;
    case 'refused':
      return discoveredUnless({ reason: 'NamespaceNotAllowed', ...NO_DEVICES });
    case 'unlisted': {
      const { tailnet, why } = discovery;
      if (tailnet === undefined)
        return discoveredUnless({ reason: 'TailnetNotFound', ...KEPT_WITHOUT_TAILNET });
      if (why !== undefined)
        return discoveredUnless({ reason: 'Unreachable', ...within(NO_LIST, { text: why }) });
      // A new leader lists devices soon; until then the condition of the one before holds.
      const before = findCondition(status?.conditions, TYPE);
      if (before && before.status !== 'Unknown') return before;
      const text = `the devices of MeshTailnet ${tailnet} are not listed yet`;
      return discoveredUnless({ reason: 'NotListed', text });
    }
    case 'listed': {
      const { discovered, tailnet, isStale, lastSync } = discovery;
      const problems = problemsOf(discovered, tailnet);
      const [first, ...others] = isStale ? [staleSince(tailnet, lastSync), ...problems] : problems;
      const text = [first, ...others].flatMap(each => (each ? formatProblem(each) : [])).join('; ');
      return discoveredUnless(first && { reason: first.reason, text }, discovered.matched);
    }
  }
}

const TYPE = 'Discovered';

function discoveredUnless(problem: Problem | undefined, matched = 0): ConditionUpdate {
  const found =
    matched === 0 ? 'no device matches' : matched === 1 ? '1 device matches' : `${matched} devices match`;
  const message = `${found} all of spec.tagSelectors`;
  return conditionOf('MeshEndpoints Discovered', [problem], { reason: 'DevicesDiscovered', message });
}

const NO_DEVICES: Why = { text: 'no devices are looked for', fix: 'see the condition Ready' };
const KEPT_WITHOUT_TAILNET: Why = {
  text: 'the endpoints that were discovered are kept, and no devices are listed',
  fix: 'see the condition Ready',
};
const NO_LIST = 'no list of devices was read, and the endpoints that were discovered before are kept';

function staleSince(tailnet: string, lastSync: Date | undefined): Problem {
  const since = lastSync ? inSeconds(lastSync) : 'an earlier time';
  return {
    reason: 'Stale',
    text: `the list of devices of ${since} is used, because none was read since`,
    fix: `see the condition Authenticated of MeshTailnet ${tailnet}`,
  };
}

function problemsOf(
  { beyondAllowed, away, misfits, withoutPort, truncated }: Discovered,
  tailnet: string,
): readonly Problem[] {
  const problems: Problem[] = [];
  if (beyondAllowed.length > 0) problems.push(tagNotAllowed(tailnet, beyondAllowed));
  if (away.length > 0)
    problems.push({
      reason: 'DevicesAway',
      text: `every device that matches is offline or expired: ${firstOf(away)}`,
      fix: 'start them or renew their keys, or set spec.endpointTemplate.include',
    });
  if (misfits.length > 0)
    problems.push({
      reason: 'ProtocolMismatch',
      text: `spec.endpointTemplate does not fit devices, which are left out: ${firstOf(misfits)}`,
      fix: 'correct the template, or the tags protocol-x of the devices',
    });
  if (withoutPort.length > 0)
    problems.push({
      reason: 'PortUnknown',
      text: `devices without a port are left out: ${firstOf(withoutPort)}`,
      fix: 'give them a tag port-N, or set spec.endpointTemplate.port',
    });
  if (truncated > 0)
    problems.push({
      reason: 'Truncated',
      text: `${truncated} endpoints are left out, because an object has 1000 at most, the first ones by name`,
      fix: 'narrow the selectors, or divide the object',
    });
  return problems;
}
