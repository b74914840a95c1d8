import { findCondition } from '../../../api/conditions.ts';
import type { EndpointStatus, Kinds } from '../../../api/generated/types.ts';
import { discoveredEntriesOf, discovers } from '../../../api/objects/endpoints.ts';
import { otherDomainOf } from '../../../control/control.ts';
import type { Device, Tailnets } from '../../../control/control.ts';
import { discover } from './discover.ts';
import type { Discovered } from './discover.ts';
import { select } from './selectors.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type MeshTailnet = Kinds['MeshTailnet'];

/** What discovery finds for an object. */
export type Discovery =
  /** It has no selectors. */
  | { readonly is: 'off' }
  /** Its namespace may not use the tailnet, so that it finds nothing. */
  | { readonly is: 'refused' }
  /** This process has no list of devices: the endpoints that were written stay. */
  | {
      readonly is: 'unlisted';
      readonly tailnet: string | undefined;
      /** Why the control API lists none. */
      readonly why: string | undefined;
    }
  | {
      readonly is: 'listed';
      readonly tailnet: string;
      readonly discovered: Discovered;
      /** Written entries of devices that are in no list of this process, and may still exist. */
      readonly kept: readonly EndpointStatus[];
      /** How many devices the tailnet has. */
      readonly devices: number;
      /** The last list has failed, so that devices are those of the one before. */
      readonly isStale: boolean;
      readonly lastSync: Date | undefined;
    };

/** The MeshTailnet of an object, and whether it allows its namespace. */
export type OwnTailnet = { readonly tailnet: MeshTailnet | undefined; readonly isAllowed: boolean };

/** The lists of devices, which the controller of MeshTailnets keeps. */
export type DeviceLists = Pick<Tailnets, 'lastView' | 'subscribe' | 'expect' | 'retain'>;

/** Reads what discovery finds for objects. */
export interface ReadDiscovery {
  /** To be called before `of`, which keeps the written devices that no list has until they were requested. */
  expect(object: MeshEndpoints, own: OwnTailnet, memory: { hasExpected: boolean }): void;
  of(object: MeshEndpoints, own: OwnTailnet): Discovery;
  /**
   * The devices of a MeshTailnet have changed: returns whether an object may find something else since the call before. It is
   * asked for each object of the tailnet before the next change.
   */
  noteChange(tailnet: string): (object: MeshEndpoints) => boolean;
}

/**
 * Reads from lists of devices; what is found in one is computed once for an object, and holds for the next list where no device
 * differs that its selectors match: in a large tailnet other devices change with each list.
 */
export function discoveryReader(lists: DeviceLists): ReadDiscovery {
  const computed = new WeakMap<MeshEndpoints['spec'], Computed>();
  const seen = new Map<string, Seen>();
  const isListed = ({ metadata, spec }: MeshTailnet): boolean => {
    const view = lists.lastView(metadata.name);
    // A list of another tailnet, by credentials of that, has none of these devices.
    return view?.devices !== undefined && otherDomainOf(view, spec.tailnet) === undefined;
  };
  const listing = (object: MeshEndpoints, { tailnet, isAllowed }: OwnTailnet): MeshTailnet | undefined =>
    discovers(object) && tailnet && isAllowed && isListed(tailnet) ? tailnet : undefined;
  const listed = (object: MeshEndpoints, { metadata, spec: { allowedTags } }: MeshTailnet): Discovery => {
    const { name } = metadata;
    const { devices = [], expected = NONE, isStale = false, lastSuccess } = lists.lastView(name) ?? {};
    const last = computed.get(object.spec);
    const isSame = last?.devices === devices && last.allowedTags === allowedTags;
    const discovered = isSame ? last.discovered : discover(object.spec, devices, allowedTags);
    const kept = expected.size === 0 ? [] : keptOf(object, expected, discovered);
    const isKeeping = kept.length > 0 || (isSame && last.isKeeping);
    computed.set(object.spec, { devices, allowedTags, discovered, isKeeping });
    const found = { is: 'listed', tailnet: name, discovered, kept } as const;
    return { ...found, devices: devices.length, isStale, lastSync: lastSuccess };
  };
  return {
    expect: (object, own, memory) => {
      const tailnet = listing(object, own);
      if (tailnet && !memory.hasExpected) {
        memory.hasExpected = true;
        const written = discoveredEntriesOf(object).flatMap(({ deviceID }) => deviceID ?? []);
        lists.expect(tailnet.metadata.name, written);
      }
      // A tailnet that is closed has forgotten what it expects.
      if (!own.tailnet || !lists.lastView(own.tailnet.metadata.name)?.devices) memory.hasExpected = false;
    },
    of: (object, own) => {
      const from = listing(object, own);
      if (from) return listed(object, from);
      const { tailnet, isAllowed } = own;
      computed.delete(object.spec);
      if (!discovers(object)) return { is: 'off' };
      if (!tailnet) return { is: 'unlisted', tailnet: undefined, why: undefined };
      if (!isAllowed) return { is: 'refused' };
      return { is: 'unlisted', tailnet: tailnet.metadata.name, why: problemOf(tailnet) };
    },
    noteChange: tailnet => {
      const { devices, isStale = false } = lists.lastView(tailnet) ?? {};
      const before = seen.get(tailnet);
      if (!devices) seen.delete(tailnet);
      else seen.set(tailnet, { devices, isStale });
      if (!before || !devices || before.isStale !== isStale) return () => true;
      const changed = differing(before.devices, devices);
      const unconcerned = new Set<MeshEndpoints['spec']>();
      return ({ spec }) => {
        if (unconcerned.has(spec)) return false;
        const last = computed.get(spec);
        if (last?.devices !== before.devices || last.isKeeping) return true;
        if (select(changed, spec.tagSelectors ?? [], undefined).devices.length > 0) return true;
        computed.set(spec, { ...last, devices });
        unconcerned.add(spec);
        return false;
      };
    },
  };
}

/** The devices of a tailnet that its objects select, and those that have a tag of mesh pods, also of other installations. */
export function devicesInUse(
  devices: readonly Device[],
  { spec: { tags, allowedTags } }: MeshTailnet,
  objects: readonly MeshEndpoints[],
): readonly Device[] {
  const selected = objects.flatMap(
    ({ spec }) => select(devices, spec.tagSelectors ?? [], allowedTags).devices,
  );
  return [...new Set(selected), ...devices.filter(device => device.tags.some(tag => tags.includes(tag)))];
}

const NONE: ReadonlySet<string> = new Set();

function problemOf({ metadata, status }: MeshTailnet): string | undefined {
  const condition = findCondition(status?.conditions, 'Authenticated');
  if (condition?.status !== 'False') return undefined;
  return `MeshTailnet ${metadata.name} is not authenticated: ${condition.reason}: ${condition.message}`;
}

/** What was computed last for a spec, which all objects have for which it is the same. */
type Computed = {
  readonly devices: readonly Device[];
  readonly allowedTags: readonly string[] | undefined;
  readonly discovered: Discovered;
  /** Endpoints of any of them were kept of devices that are in no list. */
  readonly isKeeping: boolean;
};

/** The devices of a tailnet at the last change of them. */
type Seen = { readonly devices: readonly Device[]; readonly isStale: boolean };

/** The devices of two lists that are not in both, as they were and as they are. */
function differing(before: readonly Device[], after: readonly Device[]): readonly Device[] {
  const [old, present] = [new Set(before), new Set(after)];
  return [...before.filter(device => !present.has(device)), ...after.filter(device => !old.has(device))];
}

/** A device that is back under another id has taken the name. */
function keptOf(
  object: MeshEndpoints,
  expected: ReadonlySet<string>,
  { endpoints }: Discovered,
): readonly EndpointStatus[] {
  const names = new Set(endpoints.map(({ endpoint }) => endpoint.name));
  return discoveredEntriesOf(object).filter(
    ({ name, deviceID = '' }) => expected.has(deviceID) && !names.has(name),
  );
}
