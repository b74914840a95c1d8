import { inSeconds } from '../../../api/clock.ts';
import { findCondition } from '../../../api/conditions.ts';
import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { cutText } from '../../../api/text.ts';
import type { Discovered } from './discover.ts';
import type { Discovery } from './discovery.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type DiscoveryStatus = NonNullable<NonNullable<MeshEndpoints['status']>['discovery']>;
type Listed = Extract<Discovery, { readonly is: 'listed' }>;

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

/** The closed list of reasons why discovery does not find all that it should. */
export type NotDiscoveredReason =
  /** The last list has failed, and the one before is used. */
  | 'Stale'
  /** No list has succeeded. */
  | 'Unreachable'
  /** A selector lies beyond spec.allowedTags of the MeshTailnet. */
  | 'TagNotAllowed'
  /** endpointTemplate does not fit the protocol of a device. */
  | 'ProtocolMismatch'
  | 'PortUnknown'
  | 'Truncated';

const TYPE = 'Discovered';
const MAX_MESSAGE_LENGTH = 2048;

/** The condition Discovered; undefined for an object without selectors. */
export function discoveredConditionOf(
  { status }: MeshEndpoints,
  discovery: Discovery,
): ConditionUpdate | undefined {
  switch (discovery.is) {
    case 'off':
      return undefined;
    case 'refused':
      return unknown('NamespaceNotAllowed', 'no devices are looked for: see the condition Ready');
    case 'unlisted': {
      const { tailnet, why } = discovery;
      if (tailnet === undefined) return unknown('TailnetNotFound', KEPT_WITHOUT_TAILNET);
      if (why !== undefined) return notDiscovered('Unreachable', `${NO_LIST}: ${why}`);
      // A new leader lists devices soon; until then the condition of the one before holds.
      const before = findCondition(status?.conditions, TYPE);
      if (before && before.status !== 'Unknown') return before;
      return unknown('NotListed', `the devices of MeshTailnet ${tailnet} are not listed yet`);
    }
    case 'listed':
      return ofList(discovery);
  }
}

const KEPT_WITHOUT_TAILNET =
  'the endpoints that were discovered are kept, and no devices are listed: see the condition Ready';
const NO_LIST = 'no list of devices was read, and the endpoints that were discovered before are kept';

function ofList({ discovered, tailnet, isStale, lastSync }: Listed): ConditionUpdate {
  const problems = [
    ...(isStale ? [['Stale', staleSince(tailnet, lastSync)] as const] : []),
    ...problemsOf(discovered, tailnet),
  ];
  const [first] = problems;
  if (first) return notDiscovered(first[0], problems.map(([, message]) => message).join('; '));
  const { matched } = discovered;
  const found =
    matched === 0 ? 'no device matches' : matched === 1 ? '1 device matches' : `${matched} devices match`;
  const message = `${found} all of spec.tagSelectors`;
  return { type: TYPE, status: 'True', reason: 'DevicesDiscovered', message };
}

function staleSince(tailnet: string, lastSync: Date | undefined): string {
  const since = lastSync ? inSeconds(lastSync) : 'an earlier time';
  return `the list of devices of ${since} is used, because none was read since: see the condition Authenticated of MeshTailnet ${tailnet}`;
}

function problemsOf(
  { beyondAllowed, misfits, withoutPort, truncated }: Discovered,
  tailnet: string,
): readonly (readonly [NotDiscoveredReason, string])[] {
  const problems: (readonly [NotDiscoveredReason, string])[] = [];
  if (beyondAllowed.length > 0)
    problems.push([
      'TagNotAllowed',
      `spec.allowedTags of MeshTailnet ${tailnet} has no tag that ${firstOf(beyondAllowed)} of spec.tagSelectors could match, so no device is found: correct the selectors, or add a tag there`,
    ]);
  if (misfits.length > 0)
    problems.push([
      'ProtocolMismatch',
      `spec.endpointTemplate does not fit devices, which are left out: ${firstOf(misfits)}: correct the template, or the tags protocol-x of the devices`,
    ]);
  if (withoutPort.length > 0)
    problems.push([
      'PortUnknown',
      `devices without a port are left out: ${firstOf(withoutPort)}: give them a tag port-N, or set spec.endpointTemplate.port`,
    ]);
  if (truncated > 0)
    problems.push([
      'Truncated',
      `${truncated} endpoints are left out, because an object has 1000 at most, the first ones by name: narrow the selectors, or divide the object`,
    ]);
  return problems;
}

const MAX_LISTED = 3;

function firstOf(texts: readonly string[]): string {
  const more = texts.length - MAX_LISTED;
  return `${texts.slice(0, MAX_LISTED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function notDiscovered(reason: NotDiscoveredReason, message: string): ConditionUpdate {
  return { type: TYPE, status: 'False', reason, message: cutText(message, MAX_MESSAGE_LENGTH) };
}

function unknown(reason: string, message: string): ConditionUpdate {
  return { type: TYPE, status: 'Unknown', reason, message };
}
