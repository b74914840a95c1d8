import type { TagSelector } from '../../../api/generated/types.ts';
import { bare, beyondAllowed, fits, isPositive } from '../../../api/objects/tag-selectors.ts';
import type { Device } from '../../../control/control.ts';

/*
 * A selector and a tag of a device, which is tag:KEY, tag:KEY-VALUE or tag:KEY:VALUE:
 *
 *   Exists, DoesNotExist     any of the three
 *   In, NotIn                the latter two, with one of the values
 *
 * A device matches Exists and In by any of its tags. It matches DoesNotExist and NotIn unless it matches the opposite, so also
 * without the key. allowedTags are whole tags: without one of them a device matches nothing, and a selector that none of them
 * could match is beyond them, so all selectors together match nothing.
 */

/** The devices that match all selectors. */
export type Selected = {
  /** In no particular order. */
  readonly devices: readonly Device[];
  /** The keys of selectors with In or Exists that none of the allowed tags could match. */
  readonly beyondAllowed: readonly string[];
};

/** Selects devices; selectors without In and Exists select none. */
export function select(
  devices: readonly Device[],
  selectors: readonly TagSelector[],
  allowedTags: readonly string[] | undefined,
): Selected {
  const allowed = allowedTags && new Set(allowedTags.map(bare));
  const positive = selectors.filter(isPositive);
  const beyond = beyondAllowed(selectors, allowedTags);
  if (beyond.length > 0 || positive.length === 0) return { devices: [], beyondAllowed: beyond };
  const snapshot = snapshotOf(devices);
  const having = positive.map(selector => snapshot.having(textOf(selector), tag => fits(selector, tag)));
  // No key of a selector begins with this sign.
  if (allowed) having.push(snapshot.having(`=${[...allowed].join(' ')}`, tag => allowed.has(tag)));
  const lacking = selectors
    .filter(selector => !isPositive(selector))
    .map(selector => snapshot.having(textOf(selector), tag => fits(selector, tag)));
  const [smallest, ...others] = having.sort((one, other) => one.size - other.size);
  const matches = [...(smallest ?? [])].filter(
    device => others.every(set => set.has(device)) && !lacking.some(set => set.has(device)),
  );
  return { devices: matches, beyondAllowed: [] };
}

/** Equal for selectors that the same tags fit. */
function textOf({ key, values = [] }: TagSelector): string {
  return [bare(key), ...values].join(' ');
}

/** Devices that are kept for the conditions of all objects, which take 10 MB: anyone can write any number of selectors. */
const MAX_KEPT = 300_000;

/** The devices of one list by their tags, so that their texts are compared once for all objects. */
class Snapshot {
  readonly #byTag = new Map<string, Device[]>();
  readonly #found = new Map<string, ReadonlySet<Device>>();
  /** How many devices `#found` has in all. */
  #kept = 0;

  constructor(devices: readonly Device[]) {
    for (const device of devices)
      for (const text of device.tags) {
        const tag = bare(text);
        const list = this.#byTag.get(tag);
        if (list) list.push(device);
        else this.#byTag.set(tag, [device]);
      }
  }

  /** The devices with a tag for which a condition holds, of which equal ones have the same name. */
  having(condition: string, holds: (tag: string) => boolean): ReadonlySet<Device> {
    const known = this.#found.get(condition);
    if (known) return known;
    const found = new Set<Device>();
    for (const [tag, devices] of this.#byTag) if (holds(tag)) for (const device of devices) found.add(device);
    if (this.#kept + found.size > MAX_KEPT) {
      this.#found.clear();
      this.#kept = 0;
    }
    this.#found.set(condition, found);
    this.#kept += found.size;
    return found;
  }
}

/** They live as long as their list of devices. */
const SNAPSHOTS = new WeakMap<readonly Device[], Snapshot>();

function snapshotOf(devices: readonly Device[]): Snapshot {
  const snapshot = SNAPSHOTS.get(devices) ?? new Snapshot(devices);
  SNAPSHOTS.set(devices, snapshot);
  return snapshot;
}
