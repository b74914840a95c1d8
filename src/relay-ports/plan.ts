import { createHash } from 'node:crypto';

/** A target (`address:port`) that an object wants a relay port for. */
export type WantedTarget = {
  readonly target: string;
  /** The creationTimestamp of the object. */
  readonly createdAt: string | undefined;
  /** The namespace and name of the object. */
  readonly object: string;
};

/** The first and the last of a range of ports. */
export type PortRange = { readonly first: number; readonly last: number };

/** The relay ports of a tailnet, by target. */
export type Assignment = {
  readonly ports: ReadonlyMap<string, number>;
  /** Why a target has no port, with the fix. */
  readonly missing: ReadonlyMap<string, string>;
};

/*
 * A target                                      its port
 * that had a port of the range                  the same; of several, the lowest
 * that had none, or one outside of the range    the first free one, searched from a hash of the target
 * while no port is free                         none; the targets of older objects go first
 *
 * A port that had a target is not free, even if the target is no longer wanted: datagrams for that target may be on their way.
 */
export function assignPorts(
  previous: ReadonlyMap<number, string>,
  wanted: readonly WantedTarget[],
  range: PortRange,
): Assignment {
  const targets = new Set(byAge(wanted));
  const taken = new Set<number>();
  const ports = new Map<string, number>();
  for (const [port, target] of [...previous].sort(([one], [other]) => one - other)) {
    if (port < range.first || port > range.last) continue;
    taken.add(port);
    if (targets.has(target) && !ports.has(target)) ports.set(target, port);
  }
  const missing = new Map<string, string>();
  for (const target of targets) {
    if (ports.has(target)) continue;
    const port = freePort(target, taken, range);
    if (port === undefined) missing.set(target, exhausted(range));
    else ports.set(target, port);
  }
  return { ports, missing };
}

/** The targets of older objects first; of equally old objects, by name. */
function byAge(wanted: readonly WantedTarget[]): readonly string[] {
  const ranked = wanted.map(each => ({ rank: rankOf(each), target: each.target }));
  return ranked.sort((one, other) => (one.rank < other.rank ? -1 : 1)).map(({ target }) => target);
}

/** An object without a creationTimestamp counts as the newest. */
function rankOf({ createdAt = '~', object, target }: WantedTarget): string {
  return [createdAt, object, target].join(' ');
}

/** Takes the first free port, by linear probing: with the same targets a lost assignment is nearly the same again. */
function freePort(target: string, taken: Set<number>, { first, last }: PortRange): number | undefined {
  const size = last - first + 1;
  if (taken.size >= size) return undefined;
  let offset = createHash('sha256').update(target).digest().readUInt32BE() % size;
  while (taken.has(first + offset)) offset = (offset + 1) % size;
  taken.add(first + offset);
  return first + offset;
}

function exhausted({ first, last }: PortRange): string {
  return `no relay port is left in ${first}-${last}: widen meshPods.relayPorts (RELAY_PORTS)`;
}
