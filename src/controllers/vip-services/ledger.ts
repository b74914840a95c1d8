import { inSeconds } from '../../api/clock.ts';
import { placeOf, refAt, timeMs } from '../../api/objects/oldest.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { MAX_SERVED } from '../../api/served-services.ts';
import { shareOfNames } from '../../api/shares.ts';
import { keptLast } from '../../runtime/kept.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

/** The MeshEndpoints that has the name of a VIP service. */
export type Holder = {
  /** As in `default/web`. */
  readonly object: string;
  readonly uid: string;
  readonly since: Date;
  /** Since when it lists the name no more, or may not have it. */
  readonly leftAt?: Date;
};

/** Who has the name of which VIP service of a tailnet in this installation, by the name with `svc:` before it. */
export type Ledger = ReadonlyMap<string, Holder>;

/**
 * For how long a holder keeps its name that was deleted, or may not use the tailnet: tools delete and create objects to replace them,
 * also MeshTailnets and the labels of namespaces.
 */
export const HELD_MS = 600_000;

/** A MeshEndpoints that lists names. */
export type Lister = {
  /** As in `default/web`. */
  readonly place: string;
  readonly namespace: string;
  readonly uid: string;
  /** Infinity where that is not known. */
  readonly createdMs: number;
};

/** By the name with `svc:` before it; the oldest first. */
export type Listers = ReadonlyMap<string, readonly Lister[]>;

/** Of an object. */
export function listerOf(object: MeshEndpoints): Lister {
  const { namespace = '', uid = '', creationTimestamp } = object.metadata;
  return { place: placeOf(object), namespace, uid, createdMs: timeMs(creationTimestamp) };
}

export type LedgerInput = {
  readonly before: Ledger;
  /** The objects that list a name and may use the tailnet, by the name. */
  readonly listers: Listers;
  /** The names whose listers have changed since the ledger before was made; undefined where any may have. */
  readonly changed?: ReadonlySet<string> | undefined;
  /** Whether an object such as `default/web` exists, is not being deleted, and lists a name no more. */
  readonly hasDropped: (object: string, name: string) => boolean;
  /** Whether no mesh pod serves a name that its holder has left. */
  readonly isUnserved: (name: string, holder: Holder) => boolean;
  /** The objects that have registered a service before there was a ledger, by its name. */
  readonly registrants: ReadonlyMap<string, string>;
  /** How many names the tailnet may have: those that it has already stay. */
  readonly maxNames: number;
  readonly now: Date;
};

/*
 * A name belongs to
 *
 *   its holder                        while that lists it, and the tailnet allows its namespace
 *   its holder, which lists it not    until no mesh pod serves it
 *   its holder, which was deleted     the same, and for 10 minutes: for an object with its namespace and name
 *   or is not allowed
 *   where it has no holder            the object that registered it, before there was a ledger; else
 *                                     the oldest that lists it, of a namespace that has fewer names than its share
 */

/**
 * Who has which name next: the same ledger if nothing changes. The status of an object and the tailnet do not decide about a name
 * that is held.
 */
export function* nextLedger({
  before,
  listers,
  changed,
  hasDropped,
  isUnserved,
  registrants,
  maxNames,
  now,
}: LedgerInput): Generator<undefined, Ledger> {
  const reviewed = changed ? new Set([...leftIn(before), ...changed]) : before.keys();
  const held = new Map<string, Holder | undefined>();
  let size = before.size;
  for (const name of reviewed) {
    const holder = before.get(name);
    if (!holder) continue;
    const next = nextOf(name, holder);
    if (next !== holder) held.set(name, next);
    if (!next) size--;
  }
  const isHeld = (name: string) => (held.has(name) ? held.get(name) : before.get(name)) !== undefined;
  // Where no name is let go, others than these have no more room than before.
  const unheld = changed && size === before.size ? listed(changed) : listers;
  let counts: Map<string, number> | undefined;
  for (const [name, all] of inOrder(unheld)) {
    yield;
    // There may be any number of names; those of registrants come first.
    if (size >= (registrants.has(name) ? MAX_SERVED : maxNames)) break;
    const place = registrants.get(name);
    const registrant = all.find(each => each.place === place);
    const lister = registrant ?? (size < maxNames ? all.find(hasRoom) : undefined);
    if (!lister) continue;
    held.set(name, { object: lister.place, uid: lister.uid, since: now });
    size++;
    counts?.set(lister.namespace, (counts.get(lister.namespace) ?? 0) + 1);
  }
  return held.size === 0 ? before : withHolders(before, held);

  function nextOf(name: string, holder: Holder): Holder | undefined {
    const lister = listerAt(holder, listers.get(name) ?? NONE);
    if (lister?.uid === holder.uid && !holder.leftAt) return holder;
    const { leftAt, ...rest } = holder;
    if (lister) return { ...rest, uid: lister.uid };
    // By a clock that was set back, it left in the future.
    const left = { ...rest, leftAt: leftAt && leftAt < now ? leftAt : now };
    if (isFree(name, left)) return undefined;
    return leftAt && leftAt <= now ? holder : left;
  }

  function* listed(names: Iterable<string>): Iterable<readonly [string, readonly Lister[]]> {
    for (const name of names) {
      const all = listers.get(name);
      if (all) yield [name, all];
    }
  }

  /** Names that existed before the ledger come first, so that new ones do not take their room. */
  function* inOrder(entries: typeof listers | ReturnType<typeof listed>): ReturnType<typeof listed> {
    for (const entry of listed(registrants.keys())) if (!isHeld(entry[0])) yield entry;
    for (const entry of entries) if (!isHeld(entry[0]) && !registrants.has(entry[0])) yield entry;
  }

  function isFree(name: string, holder: Holder & { readonly leftAt: Date }): boolean {
    const isOver = hasDropped(holder.object, name) || now.getTime() - holder.leftAt.getTime() >= HELD_MS;
    return isOver && isUnserved(name, holder);
  }

  function hasRoom({ namespace }: Lister): boolean {
    counts ??= countsIn(withHolders(before, held));
    return (counts.get(namespace) ?? 0) < shareOfNames(maxNames);
  }
}

/** A ledger with other holders of some names, where undefined is none. */
function withHolders(before: Ledger, held: ReadonlyMap<string, Holder | undefined>): Ledger {
  const after = new Map(before);
  for (const [name, holder] of held) {
    if (holder) after.set(name, holder);
    else after.delete(name);
  }
  return after;
}

const leftNames = keptLast<readonly string[]>();

/** The names that their holders have left. */
function leftIn(ledger: Ledger): readonly string[] {
  return leftNames(ledger, [], () => [...ledger].flatMap(([name, { leftAt }]) => (leftAt ? [name] : [])));
}

const NONE: readonly Lister[] = [];

/** Where holders were among the listers of their names: hundreds may be older. */
const indexes = new WeakMap<Holder, number>();

function listerAt(holder: Holder, all: readonly Lister[]): Lister | undefined {
  const known = all[indexes.get(holder) ?? 0];
  if (known?.place === holder.object) return known;
  const index = all.findIndex(({ place }) => place === holder.object);
  indexes.set(holder, index);
  return all[index];
}

/** The namespaces that can have no more names. */
export function fullIn(ledger: Ledger, maxNames: number): ReadonlySet<string> | 'all' {
  if (ledger.size >= maxNames) return 'all';
  const full = [...countsIn(ledger)].filter(([, count]) => count >= shareOfNames(maxNames));
  return new Set(full.map(([namespace]) => namespace));
}

/** How many names each namespace has. */
function countsIn(ledger: Ledger): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { object } of ledger.values()) {
    const { namespace } = refAt('MeshEndpoints', object);
    counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
  }
  return counts;
}

/** Identifies that a holder has left a name, also for other controllers. */
export function departureOf({ object, leftAt }: Holder): string | undefined {
  return leftAt && `${object} ${inSeconds(leftAt)}`;
}

/** The key of the ConfigMap of a ledger that has the holders. */
export const HOLDERS_KEY = 'holders';

const TIME = String.raw`(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)`;
const LINE = new RegExp(
  String.raw`^(svc:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?) ([a-z0-9-]{1,63}/[a-z0-9.-]{1,253}) ([\w-]{1,64}) ${TIME}(?: ${TIME})?$`,
);

/** Parses a ledger, one `<name> <namespace>/<name> <uid> <since> [<left at>]` per line; what is not valid is reported. */
export function parseLedger(text: string, report: (line: number) => void): Ledger {
  const ledger = new Map<string, Holder>();
  for (const [index, line] of text.split('\n', 2 * MAX_SERVED).entries()) {
    if (line === '') continue;
    const [, name = '', object = '', uid = '', sinceText = '', leftText] = LINE.exec(line) ?? [];
    const since = new Date(sinceText);
    const leftAt = leftText === undefined ? undefined : new Date(leftText);
    const isValid = [since, leftAt].every(date => !date || !Number.isNaN(date.getTime()));
    if (!isValid || ledger.has(name) || ledger.size === MAX_SERVED) report(index + 1);
    else ledger.set(name, { object, uid: uid === '-' ? '' : uid, since, ...(leftAt && { leftAt }) });
  }
  return ledger;
}

/** The text of a ledger, sorted by name: equal for equal ones. */
export function formatLedger(ledger: Ledger): string {
  const lines = [...ledger].map(([name, { object, uid, since, leftAt }]) =>
    [name, object, uid || '-', inSeconds(since), ...(leftAt ? [inSeconds(leftAt)] : [])].join(' '),
  );
  return lines
    .sort()
    .map(line => `${line}\n`)
    .join('');
}
