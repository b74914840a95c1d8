import type { Device } from '../../../control/control.ts';

const MAX_LENGTH = 63;

/** The DNS label that is most like a text; empty where no character of it may be in one. */
export function labelOf(text: string): string {
  const allowed = text.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  return allowed
    .slice(0, MAX_LENGTH + 1)
    .replace(/^-/, '')
    .slice(0, MAX_LENGTH)
    .replace(/-$/, '');
}

/** Orders ids: decimal ones, which headscale counts up, by their number. */
function compareIds(one: string, other: string): number {
  const byLength = /^\d+$/.test(one) && /^\d+$/.test(other) ? one.length - other.length : 0;
  if (byLength !== 0) return byLength;
  return one < other ? -1 : Number(one > other);
}

/**
 * The names of endpoints. Of devices with the same label the first one, by id, has it as its name; the others, and those whose
 * label is taken, have a part of their id behind it.
 */
export function namesOf(
  devices: readonly Device[],
  labelFor: (device: Device) => string,
  taken: ReadonlySet<string>,
): ReadonlyMap<Device, string> {
  const first = new Map<string, Device>();
  const later: Device[] = [];
  for (const device of devices) {
    const label = labelFor(device);
    const known = first.get(label);
    if (label === '' || taken.has(label)) later.push(device);
    else if (!known) first.set(label, device);
    else if (compareIds(known.id, device.id) <= 0) later.push(device);
    else {
      first.set(label, device);
      later.push(known);
    }
  }
  const names = new Map<Device, string>();
  for (const [label, device] of first) names.set(device, label);
  if (later.length === 0) return names;
  const used = new Set([...taken, ...first.keys()]);
  for (const device of later.sort((a, b) => compareIds(a.id, b.id))) {
    const name = suffixed(labelFor(device), device.id, used);
    used.add(name);
    names.set(device, name);
  }
  return names;
}

const SHORT_ID = 8;

/** With the first characters of the id; with all of it, and then with a number, where that is taken too. */
function suffixed(label: string, id: string, used: ReadonlySet<string>): string {
  const whole = labelOf(id) || 'device';
  const short = labelOf(whole.slice(0, SHORT_ID));
  for (let count = 0; ; count++) {
    const suffix = count === 0 ? short : count === 1 ? whole : `${short}-${count}`;
    const room = Math.max(0, MAX_LENGTH - 1 - suffix.length);
    const name = labelOf(`${label.slice(0, room)}-${suffix}`);
    if (!used.has(name)) return name;
  }
}
