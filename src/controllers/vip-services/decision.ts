import { isEqual } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import type { ProblemAt } from '../../api/problem.ts';
import type { VipService } from '../../control/control.ts';
import type { VipServiceState } from '../mesh-endpoints/vip-services.ts';
import { MAX_OWNERS, mayHave, ownersOf, ownershipOf, shareLine, sharesWith, withOwners } from './owners.ts';
import type { Owner, Ownership, Strategy } from './owners.ts';
import type { SeenOwner } from './seen-owners.ts';

/** A VIP service that a MeshEndpoints of this installation lists. */
export type Claim = {
  /** With `svc:` before it. */
  readonly name: string;
  /** The MeshEndpoints, as in `default/web`. */
  readonly object: string;
  readonly port: number;
  readonly tags: readonly string[];
  /** Whether a service that does not exist is created; otherwise one of someone else is adopted. */
  readonly mayCreate: boolean;
  /** What the MeshTailnet lacks for a service of someone else to be adopted; undefined where it may be. */
  readonly notAdoptable: string | undefined;
  /** Who may join, as in an owner. */
  readonly shareWith: readonly string[];
  /** Why nothing is changed: a registration that exists is kept as it is, and none is made. */
  readonly kept: string | undefined;
  readonly strategy: Strategy;
  /** The name of the cluster, for people. */
  readonly cluster: string;
  /** How often it is renewed. */
  readonly heartbeatMs: number;
  /** After which time without a renewal other owners count as stale. */
  readonly staleMs: number;
};

/** What claims have by default; the second for services without a claim, too. */
export const [HEARTBEAT_MS, STALE_MS] = [300_000, 1_800_000];

/** The longest time that can be configured, which an isolated owner has in any case: its service is replaced no earlier. */
const MAX_STALE_MS = 86_400_000;

/** What decisions about VIP services depend on, beside the service and the claim. */
export type Context = {
  /** The id of this installation. */
  readonly installation: string;
  readonly now: Date;
  /** Whether a mesh pod of an installation is online; true where that is not known. */
  readonly isOnline: (installation: string) => boolean;
  /** The owners that it had a short time ago. */
  readonly seen: readonly SeenOwner[];
  /** How long this process has known that all owners of the service are removing it. */
  readonly leavingForMs: number;
};

/** What is done about a VIP service, as the metric counts it. */
export type Result =
  'created' | 'joined' | 'adopted' | 'updated' | 'renewed' | 'released' | 'deleted' | 'failed';

export type Action =
  | { readonly do: 'nothing'; readonly afterMs?: number }
  | { readonly do: 'put'; readonly result: Result; readonly fields: Fields }
  | { readonly do: 'delete' };

/** What is done about a VIP service, and what its claim is shown as; undefined without a claim. */
export type Decision = { readonly action: Action; readonly state: VipServiceState | undefined };

/**
 * An owner that removes a service marks itself, and deletes the service after this time if it is still alone. Others do not join
 * a service that is being removed. So one that read the service before the mark, and writes after it, is seen before the
 * deletion, if that takes it less time than this; a request to the control API takes 15 s at most.
 */
const LEAVING_MS = 60_000;

/** An owner that has crashed while it removed a service holds up others for this time. */
const TAKEOVER_MS = 300_000;

/*
 * A service with a claim of this installation:
 *
 *   does not exist, may be created                        create it
 *   does not exist otherwise                              Pending
 *   has lost the entry of another, with or without it     Pending, for 10 minutes
 *   has lost the entry of this object                     write it again, whoever shares it
 *   of someone else, and not to be adopted, by the
 *   object or by the MeshTailnet                          Conflict
 *   of someone else, and to be adopted                    add the owner, change nothing else
 *   not owned; others own it, and one is isolated         Conflict
 *   not owned; the first of the others does not share it  Conflict
 *   not owned; all others are removing it                 Pending, for 5 minutes
 *   not owned otherwise                                   add the owner
 *   owned for another object, and not as the first        the same: add this object, or remove the owner
 *   owned, as it should be                                Registered; Conflict for isolated ones beside others
 *   owned otherwise, or the heartbeat is due              write it
 *
 * A service without a claim:
 *
 *   not owned                                             nothing
 *   owned with others, or adopted                         remove the owner
 *   owned alone                                           mark the owner as leaving
 *   owned alone, and marked for 60 s                      delete it
 *
 * A conflict only refuses to join: it never takes a registration away.
 */

/** Decides what is done about a VIP service as it was read. */
export function decide(
  service: VipService | undefined,
  claim: Claim | undefined,
  context: Context,
): Decision {
  if (!claim) return { action: service ? release(service, context) : NOTHING, state: undefined };
  if (!service) return absent(claim, context);
  const ownership = ownershipOf(service);
  if (ownership.is === 'foreign') return foreign(service, ownership, claim, context);
  return owned(service, ownership, claim, context);
}

const NOTHING: Action = { do: 'nothing' };

function absent(claim: Claim, context: Context): Decision {
  const { name, port, tags } = claim;
  if (claim.kept !== undefined) return { action: NOTHING, state: notRegistered(claim.kept) };
  if (!claim.mayCreate) {
    const fix = 'create it, or set serviceDiscovery.autoRegister to true';
    return { action: NOTHING, state: pending('NotFound', `the tailnet has no service ${name}`, fix) };
  }
  const awaited = awaitedOf([], claim, context);
  if (awaited) return { action: NOTHING, state: awaited };
  const fields = {
    name,
    ports: [portOf(port)],
    tags,
    annotations: withOwners({}, [ownerOf(claim, context)], false),
  };
  return { action: { do: 'put', result: 'created', fields }, state: REGISTERING };
}

function foreign(
  service: VipService,
  { why }: Extract<Ownership, { is: 'foreign' }>,
  claim: Claim,
  context: Context,
): Decision {
  const { name } = service;
  if (why !== undefined || claim.mayCreate || claim.kept !== undefined) {
    const adopt =
      'to use it nevertheless, set serviceDiscovery.autoRegister to false in an object that lists it';
    const fix = why ?? [adopt, claim.notAdoptable].filter(each => each !== undefined).join(', and ');
    const text = `the tailnet has a service ${name} that mesh-gateway did not create`;
    return { action: NOTHING, state: conflict(service, { reason: 'NotOwned', text, fix }) };
  }
  const refusal = adoptionRefusal(service, claim) ?? missingPort(service, claim);
  if (refusal) return { action: NOTHING, state: refusal };
  const annotations = withOwners(service.annotations, [ownerOf(claim, context)], true);
  const fields = { ...service.fields, annotations };
  return { action: { do: 'put', result: 'adopted', fields }, state: REGISTERING };
}

function adoptionRefusal(service: VipService, { notAdoptable: fix }: Claim): VipServiceState | undefined {
  if (fix === undefined) return undefined;
  const text = `someone else has made service ${service.name}`;
  return conflict(service, { reason: 'NotAdoptable', text, fix });
}

function conflict(
  service: VipService,
  problem: ProblemAt<'MeshEndpoints status.vipServices'>,
): VipServiceState {
  return { status: 'Conflict', ...problem, ...addressOf(service) };
}

/** The ports of an adopted service are those that its creator gave it. */
function missingPort(service: VipService, { port }: Claim): VipServiceState | undefined {
  if (service.ports.some(each => each === portOf(port) || each === 'do-not-validate')) return undefined;
  const text = `service ${service.name} was created without port ${portOf(port)}`;
  return { status: 'Failed', reason: 'PortMissing', text, fix: 'add it there', ...addressOf(service) };
}

type Owned = Extract<Ownership, { is: 'owned' }>;

function owned(service: VipService, { owners, isAdopted }: Owned, claim: Claim, context: Context): Decision {
  const own = owners.find(({ installation }) => installation === context.installation);
  const others = owners.filter(owner => owner !== own && !isStale(owner, context, claim.staleMs));
  const active = others.filter(({ leaving }) => !leaving);
  const hasLeft = own?.leaving !== undefined && active.length > 0;
  if (own?.object !== claim.object || hasLeft) {
    const [first] = owners.filter(owner => (owner === own && !hasLeft) || active.includes(owner));
    const refusal = own && first === own ? undefined : refusalOf({ service, active, others, claim, context });
    const state = refusal ?? (isAdopted ? adoptionRefusal(service, claim) : undefined);
    if (state)
      return { action: own ? put('released', withOnly(service, others, isAdopted)) : NOTHING, state };
  }
  const missing = isAdopted && missingPort(service, claim);
  if (missing && !own) return { action: NOTHING, state: missing };
  const written = own && isCurrent(own, claim, context) ? own : ownerOf(claim, context, own);
  // One that takes over leaves no owner that would delete the service later.
  const kept = own || active.length > 0 ? others : [];
  const list = own
    ? owners.flatMap(owner => (owner === own ? [written] : kept.includes(owner) ? [owner] : []))
    : lostEntry(claim, context)?.isFirst
      ? [written, ...kept]
      : [...kept, written];
  const wanted = list.filter(({ leaving }) => !leaving);
  const ports = isAdopted ? union([service.ports]) : union(wanted.map(owner => owner.ports));
  const tags = isAdopted ? union([service.tags]) : union(wanted.map(owner => owner.tags));
  const isSame = isEqual(ports, union([service.ports])) && isEqual(tags, union([service.tags]));
  const isSettled = own !== undefined && !own.leaving && isSame && isSameOwner(own, claim);
  const state = missing || stateOf(service, { claim, active, isSettled, isAdopted });
  if (written === own && isSame && list.length === owners.length) return { action: NOTHING, state };
  const result = !own ? 'joined' : isSettled && list.length === owners.length ? 'renewed' : 'updated';
  const annotations = withOwners(service.annotations, list, isAdopted);
  if (!mayHave(annotations)) return { action: NOTHING, state: tooManyOwners(service) };
  const fields = { ...service.fields, ports, tags, annotations };
  return { action: { do: 'put', result, fields }, state };
}

function tooManyOwners(service: VipService): VipServiceState {
  const text = `service ${service.name} would have more than ${MAX_OWNERS} owners, or 16 KB of them`;
  return conflict(service, { reason: 'TooManyOwners', text, fix: 'use another name, or remove others' });
}

type Joining = {
  readonly service: VipService;
  /** Those that are not stale. */
  readonly others: readonly Owner[];
  /** Those of them that do not leave. */
  readonly active: readonly Owner[];
  readonly claim: Claim;
  readonly context: Context;
};

/** Why an installation may not join; undefined where it may. */
function refusalOf({ service, active, others, claim, context }: Joining): VipServiceState | undefined {
  if (claim.kept) return notRegistered(claim.kept);
  const isolated = active.find(({ strategy }) => strategy === 'isolated');
  const other = claim.strategy === 'isolated' ? active[0] : isolated;
  if (other) {
    const why = isolated ? 'which does not share it' : 'and strategy isolated shares no service';
    const text = `${placeOf(other)} has service ${service.name}, ${why}`;
    return conflict(service, { reason: 'OwnedByOther', text, fix: 'use another name' });
  }
  const [first] = active;
  const place = { installation: context.installation, object: claim.object };
  if (first && !sharesWith(first, place) && !lostEntry(claim, context)) {
    const text = `${placeOf(first)} has service ${service.name}, and does not share it`;
    const fix = `add ${shareLine(place)} to its entry there, or use another name`;
    return conflict(service, { reason: 'NotShared', text, fix });
  }
  if (others.length === 0) return awaitedOf(ownersOf(service), claim, context);
  if (active.length > 0 || context.leavingForMs >= TAKEOVER_MS) return undefined;
  const names = others.map(placeOf).join(', ');
  return pending('BeingRemoved', `${names} is removing service ${service.name}: it is registered afterwards`);
}

/** The entry of this object, which it had a short time ago, and did not remove: another process has overwritten it. */
function lostEntry({ object }: Claim, { installation, seen }: Context): SeenOwner | undefined {
  return seen.find(({ owner }) => owner.installation === installation && owner.object === object);
}

/** An owner whose entry is missing, and was not marked as leaving, is given the time to write it again. */
function awaitedOf(owners: readonly Owner[], claim: Claim, context: Context): VipServiceState | undefined {
  if (lostEntry(claim, context)) return undefined;
  const isMissing = ({ installation }: Owner) =>
    installation !== context.installation && !owners.some(owner => owner.installation === installation);
  const missing = context.seen.find(
    ({ owner }) => isMissing(owner) && !isStale(owner, context, claim.staleMs),
  );
  if (!missing) return undefined;
  const text = `${placeOf(missing.owner)} had service ${claim.name} a short time ago: it is registered in 10 minutes`;
  return pending('BeingRemoved', text, 'wait, or use another name');
}

function stateOf(
  service: VipService,
  {
    claim,
    active,
    isSettled,
    isAdopted,
  }: Pick<Joining, 'claim' | 'active'> & { readonly isSettled: boolean; readonly isAdopted: boolean },
): VipServiceState {
  if (!isSettled) return { ...REGISTERING, ...addressOf(service) };
  if (claim.strategy === 'isolated' && active.length > 0) {
    const text = `${active.map(placeOf).join(', ')} has service ${service.name} too, and strategy isolated shares none`;
    return conflict(service, { reason: 'OwnedByOther', text });
  }
  const text = 'it is registered, and no device is known to serve it';
  const state = { status: 'Registered', reason: 'NotServed', text, ...addressOf(service) } as const;
  if (!isAdopted || claim.notAdoptable === undefined) return state;
  const warning = { text: 'a later version ends this', fix: claim.notAdoptable };
  return { ...state, warnings: [{ reason: 'NotAdoptable', ...warning }] };
}

const REGISTERING = pending('Registering', 'it is being registered');

function pending(reason: VipServiceState['reason'], text: string, fix?: string): VipServiceState {
  return { status: 'Pending', reason, text, ...(fix !== undefined && { fix }) };
}

function notRegistered(kept: string): VipServiceState {
  return pending('NotRegistered', `it is not registered: ${kept}`);
}

/** An owner, for people. */
export function placeOf({ cluster, object }: Owner): string {
  return `MeshEndpoints ${object} of cluster ${cluster}`;
}

/** As in the schema. */
const MAX_ADDRESS_LENGTH = 45;

function addressOf({ addrs: [address] }: VipService): { readonly vipAddress?: string } {
  return address === undefined || address.length > MAX_ADDRESS_LENGTH ? {} : { vipAddress: address };
}

function portOf(port: number): string {
  return `tcp:${port}`;
}

function ownerOf(claim: Claim, { installation, now }: Context, before?: Owner): Owner {
  const { cluster, object, strategy, port, tags, shareWith, kept } = claim;
  const more = before?.more && { more: before.more };
  if (kept !== undefined && before) {
    const { leaving: _leaving, ...rest } = before;
    return { ...rest, heartbeat: now };
  }
  const wanted = { ports: [portOf(port)], tags, shareWith };
  return { installation, cluster, object, strategy, ...wanted, heartbeat: now, ...more };
}

function isSameOwner(own: Owner, claim: Claim): boolean {
  if (claim.kept !== undefined) return true;
  const { cluster, object, strategy, port, tags, shareWith } = claim;
  const written = [own.cluster, own.object, own.strategy, own.ports, own.tags, own.shareWith ?? null];
  return isEqual(written, [cluster, object, strategy, [portOf(port)], tags, shareWith]);
}

function isCurrent(own: Owner, claim: Claim, { now }: Context): boolean {
  const ageMs = now.getTime() - own.heartbeat.getTime();
  return !own.leaving && isSameOwner(own, claim) && Math.abs(ageMs) < claim.heartbeatMs;
}

/** The clocks of clusters may differ by less than this. */
const AHEAD_MS = 600_000;

/** Whether an owner has written nothing for long, or in the future, and has no mesh pod that could serve. */
export function isStale(
  { installation, heartbeat, strategy }: Owner,
  { now, isOnline }: Pick<Context, 'now' | 'isOnline'>,
  staleMs: number,
): boolean {
  const ageMs = now.getTime() - heartbeat.getTime();
  const maxMs = strategy === 'isolated' ? MAX_STALE_MS : staleMs;
  return (ageMs > maxMs || ageMs < -AHEAD_MS) && !isOnline(installation);
}

function union(lists: readonly (readonly string[])[]): readonly string[] {
  return [...new Set(lists.flat())].sort();
}

function release(service: VipService, context: Context): Action {
  const ownership = ownershipOf(service);
  if (ownership.is === 'foreign') return NOTHING;
  const { owners, isAdopted } = ownership;
  const own = owners.find(({ installation }) => installation === context.installation);
  if (!own) return NOTHING;
  const others = owners.filter(owner => owner !== own && !isStale(owner, context, STALE_MS));
  if (others.length > 0 || isAdopted) return put('released', withOnly(service, others, isAdopted));
  const leftMs = own.leaving ? LEAVING_MS - (context.now.getTime() - own.leaving.getTime()) : undefined;
  // By a clock that was set back, the mark is far in the future.
  if (leftMs === undefined || leftMs > 2 * LEAVING_MS) {
    const marked = [{ ...own, leaving: context.now }];
    return put('updated', { ...service.fields, annotations: withOwners(service.annotations, marked, false) });
  }
  return leftMs > 0 ? { do: 'nothing', afterMs: leftMs } : { do: 'delete' };
}

function put(result: Result, fields: Fields): Action {
  return { do: 'put', result, fields };
}

/** A service with these owners alone, and with what they want; without any of them, what it has stays. */
export function withOnly(service: VipService, others: readonly Owner[], isAdopted: boolean): Fields {
  const annotations = withOwners(service.annotations, others, isAdopted);
  const wanted = others.filter(({ leaving }) => !leaving);
  if (isAdopted || wanted.length === 0) return { ...service.fields, annotations };
  const ports = union(wanted.map(owner => owner.ports));
  const tags = union(wanted.map(owner => owner.tags));
  return { ...service.fields, ports, tags, annotations };
}

/** A service without any owner, which a host of another installation still serves: its operator joins once it runs again. */
export function abandoned(service: VipService): Fields {
  return { ...service.fields, annotations: withOwners(service.annotations, [], false) };
}
