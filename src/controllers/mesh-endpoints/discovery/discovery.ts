import { findCondition } from '../../../api/conditions.ts';
import type { EndpointStatus, Kinds } from '../../../api/generated/types.ts';
import { keyOf } from '../../../api/key.ts';
import type { Key } from '../../../api/key.ts';
import { discoveredEntriesOf, discovers } from '../../../api/objects/endpoints.ts';
import { refTo } from '../../../api/objects/references.ts';
import { otherDomainOf } from '../../../control/control.ts';
import type { Device, Tailnets } from '../../../control/control.ts';
import { discover } from './discover.ts';
import type { Discovered } from './discover.ts';

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

/** The lists of devices, which the controller of MeshTailnets keeps. */
export type DeviceLists = Pick<Tailnets, 'lastView' | 'subscribe' | 'expect'>;

/** Reads what discovery finds for objects. */
export interface ReadDiscovery {
  of(object: MeshEndpoints, tailnet: MeshTailnet | undefined, isAllowed: boolean): Discovery;
  /** The object is deleted. */
  forget(object: Key): void;
}

/** Reads from lists of devices; what is found in one is computed once for an object. */
export function discoveryReader(lists: DeviceLists): ReadDiscovery {
  const expecting = new Set<Key>();
  const computed = new WeakMap<MeshEndpoints['spec'], Computed>();
  const expectOnce = (object: MeshEndpoints, tailnet: string) => {
    const key = keyOf(refTo(object));
    if (expecting.has(key)) return;
    expecting.add(key);
    lists.expect(
      tailnet,
      discoveredEntriesOf(object).flatMap(({ deviceID }) => deviceID ?? []),
    );
  };
  const discoveredIn = (
    { spec }: MeshEndpoints,
    devices: readonly Device[],
    allowedTags: readonly string[] | undefined,
  ): Discovered => {
    const last = computed.get(spec);
    if (last?.devices === devices && last.allowedTags === allowedTags) return last.discovered;
    const discovered = discover(spec, devices, allowedTags);
    computed.set(spec, { devices, allowedTags, discovered });
    return discovered;
  };
  return {
    of: (object, tailnet, isAllowed) => {
      if (!discovers(object)) return { is: 'off' };
      if (!tailnet) return { is: 'unlisted', tailnet: undefined, why: undefined };
      if (!isAllowed) return { is: 'refused' };
      const { name } = tailnet.metadata;
      const view = lists.lastView(name);
      // A list of another tailnet, by credentials of that, has none of these devices.
      if (!view?.devices || otherDomainOf(view, tailnet.spec.tailnet) !== undefined)
        return { is: 'unlisted', tailnet: name, why: problemOf(tailnet) };
      expectOnce(object, name);
      const { devices = [], expected = NONE, isStale = false, lastSuccess } = lists.lastView(name) ?? {};
      const discovered = discoveredIn(object, devices, tailnet.spec.allowedTags);
      const kept = expected.size === 0 ? [] : keptOf(object, expected, discovered);
      const found = { is: 'listed', tailnet: name, discovered, kept } as const;
      return { ...found, devices: devices.length, isStale, lastSync: lastSuccess };
    },
    forget: object => void expecting.delete(object),
  };
}

const NONE: ReadonlySet<string> = new Set();

function problemOf({ metadata, status }: MeshTailnet): string | undefined {
  const condition = findCondition(status?.conditions, 'Authenticated');
  if (condition?.status !== 'False') return undefined;
  return `MeshTailnet ${metadata.name} is not authenticated: ${condition.reason}: ${condition.message}`;
}

/** What was computed last for a spec. */
type Computed = {
  readonly devices: readonly Device[];
  readonly allowedTags: readonly string[] | undefined;
  readonly discovered: Discovered;
};

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
