import { createHash } from 'node:crypto';
import { isEqual } from '../../../api/json.ts';
import { relayName } from '../../../api/names.ts';
import type { Why } from '../../../api/problem.ts';
import { formatTargets, parseTargets, TARGETS_KEY } from '../../../api/relay-targets.ts';
import { SERVICES_KEY } from '../../../api/served-services.ts';
import { MAX_RELAY_TARGETS, RELAY_DATA_LENGTH, RELAY_PORT_SHARES } from '../../../api/shares.ts';
import { addressText } from '../../../api/socket-address.ts';
import type { Workload } from '../../../store/own-namespace.ts';
import type { FrontState } from '../pool/front-condition.ts';
import { metadataOf } from '../pool/objects.ts';
import { frontListsOf } from './front.ts';
import type { FrontTexts } from './front.ts';
import type { Input } from './gather.ts';

/** A target (`address:port`) that an object wants a relay port for. */
export type WantedTarget = {
  readonly target: string;
  /** The creationTimestamp of the object. */
  readonly createdAt: string | undefined;
  readonly namespace: string;
  readonly name: string;
};

/** The first and the last of a range of ports. */
export type PortRange = { readonly first: number; readonly last: number };

export type AssignOptions = {
  readonly range: PortRange;
  /** How many ports a namespace may have and still get another one. */
  readonly perNamespace: number;
  /** The namespaces to which ports counted before, by target. */
  readonly owners: ReadonlyMap<string, string>;
};

/** The relay ports of a tailnet, by target. */
export type Assignment = {
  readonly ports: ReadonlyMap<string, number>;
  /** Why a target has no port. */
  readonly missing: ReadonlyMap<string, Why>;
  /** The namespace to which a port counts, by target, also of those that are no longer wanted and not free yet. */
  readonly owners: ReadonlyMap<string, string>;
};

/** Ports that lost their target a short time ago, which are not given to another one. */
type FreedPorts = ReadonlyMap<number, { readonly target: string; readonly at: number }>;

/** The relay ports of a tailnet, and the write that gives them to its relays. */
export type Plan = Assignment & {
  readonly freed: FreedPorts;
  /** When a port becomes free that a target could get, or a write may follow the last one; else Infinity. */
  readonly retryAt: number;
  /** The targets, as the ConfigMap has them. */
  readonly text: string;
  /** What the condition of the front is made from. */
  readonly front: FrontState;
  readonly action: Action;
  /** When the ConfigMap was last applied. */
  readonly appliedAt: number;
};

/** The action that leads to the desired state. */
type Action =
  { readonly do: 'nothing' } | { readonly do: 'wait' } | { readonly do: 'apply'; readonly object: Workload };

/** What is kept of a plan for the next one; without it nothing but time is lost. */
export type PreviousPlan = Pick<Plan, 'owners' | 'freed' | 'appliedAt'>;

export const NO_PLAN: PreviousPlan = { owners: new Map(), freed: new Map(), appliedAt: -Infinity };

export type PlanOptions = {
  readonly range: PortRange;
  /** How many ports new endpoints of a namespace may take; its share of the range if undefined. */
  readonly perNamespace: number | undefined;
};

/** The ConfigMap is applied again after this time, in case others have changed its metadata. */
const REAPPLY_MS = 600_000;

/** The least time between two writes for the front alone, whose lists may be long; the front waits for them for longer. */
const INTERVAL_MS = 500;

/** Relays close a port that lost its target after 5 s; by then Envoys no longer send to it. */
const FREED_MS = 10_000;

/** Plans the relay ports of a tailnet: assigns ports, and keeps those that have just lost their target. */
export function plan(
  input: Input,
  before: PreviousPlan,
  { range, perNamespace = shareOf(range) }: PlanOptions,
): Plan {
  const { wanted, stored = '', now } = input;
  const targets = targetsIn(stored);
  const held = new Map([...before.freed].filter(([, { at }]) => now - at < FREED_MS));
  const heldTargets = [...held].map(([port, { target }]) => [port, target] as const);
  const previous = new Map([...heldTargets, ...targets]);
  const assignment = assignPorts(previous, wanted, { range, perNamespace, owners: before.owners });
  const assigned = new Set(assignment.ports.values());
  const lost = [...previous].filter(([port]) => !assigned.has(port));
  const freed = lost.map(([port, target]) => {
    // A write that failed has not freed a port that is in the ConfigMap still.
    const at = targets.has(port) ? now : (held.get(port)?.at ?? now);
    return [port, { target, at }] as const;
  });
  const ends = assignment.missing.size === 0 ? [] : freed.map(([, { at }]) => at + FREED_MS);
  const text = formatTargets(new Map([...assignment.ports].map(([target, port]) => [port, target])));
  const room = RELAY_DATA_LENGTH - text.length - input.services.length;
  const front = frontListsOf(input.front, input.storedFront, room);
  const action = actionFor({ text, front: front.texts }, input, before);
  return {
    ...assignment,
    front: front.state,
    freed: new Map(freed),
    retryAt: Math.min(...ends, action.do === 'wait' ? before.appliedAt + INTERVAL_MS : Infinity),
    text,
    action,
    appliedAt: action.do === 'apply' ? now : before.appliedAt,
  };
}

/** The relay ports of a namespace where no setting has their number. */
function shareOf(range: PortRange): number {
  return Math.max(1, Math.floor(sizeOf(range) / RELAY_PORT_SHARES));
}

/** How many ports of a range may be in use. */
function sizeOf({ first, last }: PortRange): number {
  return Math.min(last - first + 1, MAX_RELAY_TARGETS);
}

/** The targets in the text of a ConfigMap, by port. */
function targetsIn(text: string): ReadonlyMap<number, string> {
  const targets = [...parseTargets(text)];
  return new Map(targets.map(([port, target]) => [port, addressText({ ...target, meshIP: target.address })]));
}

type Desired = { readonly text: string; readonly front: FrontTexts | undefined };

function actionFor(
  { text, front }: Desired,
  { tailnet, stored, services, storedServices, storedFront, now }: Input,
  { appliedAt }: PreviousPlan,
): Action {
  const hasServices = services !== '' || storedServices !== undefined;
  const isSameButFront = stored === text && (storedServices ?? '') === services;
  const isSame = isSameButFront && isEqual(front, storedFront);
  if (isSame && now - appliedAt < REAPPLY_MS) return { do: 'nothing' };
  if (isSameButFront && now - appliedAt < INTERVAL_MS) return { do: 'wait' };
  const metadata = metadataOf({ tailnet }, relayName(tailnet.metadata.name));
  const data = { [TARGETS_KEY]: text, ...(hasServices ? { [SERVICES_KEY]: services } : {}), ...front };
  return { do: 'apply', object: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data } };
}

/*
 * A target                                      its port
 * that had a port of the range                  the same; of several, the lowest
 * that had none, or one outside of the range    the first free one, searched from a hash of the target
 * while no port is free                         none; the targets of older objects go first
 * while its namespaces have all of their ports  none; likewise
 *
 * A port that had a target is not free, even if the target is no longer wanted: datagrams for that target may be on their way.
 *
 * A port counts to one namespace, its owner
 *
 *   as before                                   while that wants the target, however small its share has become
 *   of a target that the owner does not want    one that wants it and has room: the one with the oldest object; else as before
 *   of a new target                             likewise
 *   of a target that none wants                 as before, until the port is free
 *   where the owner is not known                the one with the oldest object, even without room
 *
 * So no port of a wanted target is taken away, and no namespace gets more ports by passing them on to another one, or by
 * replacing its targets quickly.
 */
export function assignPorts(
  previous: ReadonlyMap<number, string>,
  wanted: readonly WantedTarget[],
  { range, perNamespace, owners: before }: AssignOptions,
): Assignment {
  const namespacesOf = namespacesByTarget(wanted);
  const inRange = [...previous].filter(([port]) => port >= range.first && port <= range.last);
  const ports = keptPorts(inRange, namespacesOf);
  const shares = new Shares(perNamespace);
  const orphans: (readonly [target: string, namespaces: readonly string[]])[] = [];
  for (const [target, namespaces] of namespacesOf) {
    if (!ports.has(target)) continue;
    const owner = before.get(target);
    if (owner === undefined) shares.count(target, namespaces);
    else if (namespaces.includes(owner)) shares.count(target, [owner]);
    else {
      shares.count(target, [owner]);
      orphans.push([target, namespaces]);
    }
  }
  for (const [target, namespaces] of orphans)
    if (shares.haveRoom(namespaces)) shares.pass(target, namespaces);
  for (const [, target] of inRange) {
    const owner = before.get(target);
    if (owner !== undefined && !ports.has(target)) shares.count(target, [owner]);
  }
  const taken = new Set(inRange.map(([port]) => port));
  const missing = new Map<string, Why>();
  for (const [target, namespaces] of namespacesOf) {
    if (ports.has(target)) continue;
    if (!shares.haveRoom(namespaces)) {
      missing.set(target, shareUsedUp(perNamespace));
      continue;
    }
    const port = freePort(target, taken, range);
    if (port === undefined) missing.set(target, exhausted(range));
    else {
      ports.set(target, port);
      shares.count(target, namespaces);
    }
  }
  return { ports, missing, owners: shares.owners };
}

/** The ports of wanted targets, each the lowest that it had. */
function keptPorts(
  previous: readonly (readonly [number, string])[],
  wanted: ReadonlyMap<string, unknown>,
): Map<string, number> {
  const ports = new Map<string, number>();
  for (const [port, target] of [...previous].sort(([one], [other]) => one - other))
    if (wanted.has(target) && !ports.has(target)) ports.set(target, port);
  return ports;
}

/** The ports of each namespace. */
class Shares {
  readonly owners = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  haveRoom(namespaces: readonly string[]): boolean {
    return namespaces.some(namespace => this.#countOf(namespace) < this.#max);
  }

  /** Counts the port of a target to the first of these namespaces that has room, or else to the first one. */
  count(target: string, namespaces: readonly string[]): void {
    const owner = namespaces.find(namespace => this.#countOf(namespace) < this.#max) ?? namespaces[0];
    if (owner === undefined) return;
    this.owners.set(target, owner);
    this.#counts.set(owner, this.#countOf(owner) + 1);
  }

  /** Counts the port of a target to one of these namespaces, no longer to its owner. */
  pass(target: string, namespaces: readonly string[]): void {
    const owner = this.owners.get(target) ?? '';
    this.#counts.set(owner, this.#countOf(owner) - 1);
    this.count(target, namespaces);
  }

  #countOf(namespace: string): number {
    return this.#counts.get(namespace) ?? 0;
  }
}

/** The targets of older objects first; of equally old objects, by name. Their namespaces likewise. */
function namespacesByTarget(wanted: readonly WantedTarget[]): ReadonlyMap<string, readonly string[]> {
  const ranked = wanted.map(each => ({ rank: rankOf(each), ...each }));
  ranked.sort((one, other) => (one.rank < other.rank ? -1 : 1));
  const namespaces = new Map<string, string[]>();
  for (const { target, namespace } of ranked) {
    const known = namespaces.get(target);
    if (known?.includes(namespace)) continue;
    if (known) known.push(namespace);
    else namespaces.set(target, [namespace]);
  }
  return namespaces;
}

/** An object without a creationTimestamp counts as the newest. */
function rankOf({ createdAt = '~', namespace, name, target }: WantedTarget): string {
  return [createdAt, `${namespace}/${name}`, target].join(' ');
}

/** Takes the first free port, by linear probing: with the same targets a lost assignment is nearly the same again. */
function freePort(target: string, taken: Set<number>, range: PortRange): number | undefined {
  const { first, last } = range;
  const size = last - first + 1;
  if (taken.size >= sizeOf(range)) return undefined;
  let offset = createHash('sha256').update(target).digest().readUInt32BE() % size;
  while (taken.has(first + offset)) offset = (offset + 1) % size;
  taken.add(first + offset);
  return first + offset;
}

function exhausted(range: PortRange): Why {
  const [text, size] = [`no relay port is left in ${range.first}-${range.last}`, sizeOf(range)];
  if (size < MAX_RELAY_TARGETS) return { text, fix: 'widen meshPods.relayPorts (RELAY_PORTS)' };
  return { text: `${text}, of which ${size} may be in use`, fix: 'divide UDP endpoints among MeshTailnets' };
}

function shareUsedUp(perNamespace: number): Why {
  return {
    text: `the namespace has all of its ${perNamespace} relay ports`,
    fix: 'remove UDP endpoints, or raise meshPods.relayPortsPerNamespace (RELAY_PORTS_PER_NAMESPACE)',
  };
}
