import { durationMs } from '../../api/duration.ts';
import { canonicalIP } from '../../api/ip.ts';
import type { Kinds, MeshEndpoint } from '../../api/generated/types.ts';
import { endpointsOf, vipServicesIn } from '../../api/objects/endpoints.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import { formatProblem } from '../../api/problem.ts';
import type { ProblemAt } from '../../api/problem.ts';
import { oldestOf, placeOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import { beyondTailnet } from '../../api/objects/service-tags.ts';
import { fullServiceName } from '../../api/served-services.ts';
import { tailnetsByDomain } from '../../store/traffic/resources.ts';
import type { ReadObjects } from '../../store/resources.ts';
import { keptLast, keptLastWork } from '../../runtime/kept.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import type { ServiceNames, ServicesOfTailnet, VipServiceState } from '../mesh-endpoints/vip-services.ts';
import type { VipService } from '../../control/control.ts';
import type { Connection } from './connection.ts';
import { departureOf, fullIn } from './ledger.ts';
import type { Ledger } from './ledger.ts';
import type { Offering } from './offering.ts';
import { ownersOf } from './owners.ts';
import type { Owner } from './owners.ts';
import { HEARTBEAT_MS, STALE_MS } from './decision.ts';
import type { Claim } from './decision.ts';
import { tagProblem, tagWarnings } from './tags.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type MeshTailnet = Kinds['MeshTailnet'];
type VipServiceSpec = ReturnType<typeof vipServicesIn>[number];

/** A VIP service as the MeshEndpoints lists it that has its name. */
type Listing = {
  /** The MeshEndpoints, as in `default/web`. */
  readonly object: string;
  /** The name in its spec. */
  readonly listed: string;
  /** The name in the tailnet, with `svc:` before it. */
  readonly name: string;
  /** Why it is not registered as it is listed; undefined where it is. */
  readonly problem: VipServiceState | undefined;
  /** What it has in this version only. */
  readonly warnings?: VipServiceState['warnings'];
};

export type Claims = {
  readonly listings: readonly Listing[];
  readonly claims: ReadonlyMap<string, Claim>;
  /** The endpoint of each claimed service. */
  readonly targets: ReadonlyMap<string, Target>;
};

type Target = { readonly object: Ref<'MeshEndpoints'>; readonly endpoint: string };

/** How often the services of a tailnet are listed. */
export function intervalMsOf({ spec }: MeshTailnet): number {
  return durationMs(spec.syncInterval) ?? 30_000;
}

/**
 * The MeshTailnet of the domain that registers the services in place of another one: an older one, or where that is being deleted
 * the next one.
 */
export function heirOf(tailnet: MeshTailnet, read: TrackedRead): MeshTailnet | undefined {
  const all = read.exceptStatus.find(tailnetsByDomain, tailnet.spec.tailnet);
  const oldest = oldestOf(all);
  if (oldest?.metadata.name !== tailnet.metadata.name) return oldest;
  return isBeingDeleted(tailnet) ? oldestOf(all.filter(each => !isBeingDeleted(each))) : undefined;
}

/** The objects of this installation that registered a service before there was a ledger, as in `default/web`, by its name. */
export function registrantsOf(
  services: readonly VipService[],
  installation: string,
): ReadonlyMap<string, string> {
  return new Map(
    services.flatMap(service => {
      const own = ownersOf(service).find(owner => owner.installation === installation && !owner.leaving);
      return own ? [[service.name, own.object] as const] : [];
    }),
  );
}

const entriesIn = keptLast<ReadonlyMap<string, Owner>>();

const NO_ENTRIES: ReadonlyMap<string, Owner> = new Map();

/**
 * What this installation has registered with tags that the tailnet no longer has, by the name of the service: only operators
 * write it.
 */
function entriesBeyond(tailnet: MeshTailnet, connection: Connection | undefined): ReadonlyMap<string, Owner> {
  if (connection?.is !== 'usable') return NO_ENTRIES;
  const { services, installation } = connection;
  return entriesIn(services, [tailnet.spec, installation], () => {
    const entries = services.flatMap(service => {
      const own = ownersOf(service).find(owner => owner.installation === installation);
      return own && beyondTailnet(own.tags, tailnet).length > 0 ? [[service.name, own] as const] : [];
    });
    return entries.length > 0 ? new Map(entries) : NO_ENTRIES;
  });
}

type ClaimDeps = {
  /** Undefined where nothing is listed, and nothing of this installation may exist in the tailnet. */
  readonly connection: Connection | undefined;
  readonly read: TrackedRead;
  readonly values: Pick<TrafficValues, 'serviceGateways'>;
};

const placesIn = keptLast<readonly string[]>();
const claimsIn = keptLastWork<Claims>();

/**
 * What the MeshEndpoints of a tailnet want registered: each name by its holder, which alone are read. The same value while
 * everything that it depends on is the same. There may be a thousand names.
 */
export function* claimsOf(
  tailnet: MeshTailnet,
  { userAt }: Pick<Offering, 'userAt'>,
  ledger: Ledger,
  { connection, read, values }: ClaimDeps,
): Generator<undefined, Claims> {
  const uid = read.exceptStatus.get({ kind: 'Namespace', namespace: '', name: 'kube-system' })?.metadata.uid;
  const places = placesIn(ledger, [], () => {
    const held = [...ledger.values()].filter(({ leftAt }) => !leftAt);
    return [...new Set(held.map(({ object }) => object))];
  });
  const objects = places.flatMap(place => userAt(place, read) ?? []);
  const gateways = objects.map(object => gatewayOf(object, read, values));
  const entries = entriesBeyond(tailnet, connection);
  const because = [tailnet.metadata.name, tailnet.spec, uid, entries, ...objects, ...gateways];
  return yield* claimsIn(ledger, because, function* () {
    yield;
    const users = objects.map((object, at) => userOf(object, { tailnet, uid, gateway: gateways[at] }));
    return yield* claimsOfUsers(users, ledger, entries);
  });
}

function* claimsOfUsers(
  users: readonly User[],
  ledger: Ledger,
  entries: ReadonlyMap<string, Owner>,
): Generator<undefined, Claims> {
  const byPlace = new Map(users.map(user => [user.place, user]));
  const listings: Listing[] = [];
  const claims = new Map<string, Claim>();
  const targets = new Map<string, Target>();
  for (const [name, { object, leftAt }] of ledger) {
    const user = leftAt ? undefined : byPlace.get(object);
    const service = user?.services.get(name);
    if (!user || !service) continue;
    const entry = entries.get(name);
    const known = entry ? undefined : user.known.get(name);
    const registration = known ?? registrationOf(name, service, user, entry);
    if (!entry) user.known.set(name, registration);
    const { listing, claim, target } = registration;
    listings.push(listing);
    if (claim) claims.set(name, claim);
    if (target) targets.set(name, target);
    if (!known) yield;
  }
  return { listings, claims, targets };
}

/** What the services of an object depend on. */
type UserOptions = {
  readonly tailnet: MeshTailnet;
  /** Of Namespace kube-system. */
  readonly uid: string | undefined;
  readonly gateway: Kinds['MeshGateway'] | undefined;
};

/** An object that has names. */
type User = UserOptions & {
  readonly object: MeshEndpoints;
  readonly place: string;
  /** By the name with `svc:` before it; of those that are listed twice, the first. */
  readonly services: ReadonlyMap<string, VipServiceSpec>;
  /** By the same name. */
  readonly known: Map<string, Registration>;
};

/** What becomes of a service that an object lists; without a claim nothing is registered. */
type Registration = { readonly listing: Listing; readonly claim?: Claim; readonly target?: Target };

const knownUser = keptLast<User>();

function userOf(object: MeshEndpoints, options: UserOptions): User {
  const { tailnet, uid, gateway } = options;
  return knownUser(object, [tailnet.metadata.name, tailnet.spec, uid, gateway], () => {
    const services = vipServicesIn(object).map(service => [fullServiceName(service.name), service] as const);
    return {
      ...options,
      object,
      place: placeOf(object),
      services: new Map(services.toReversed()),
      known: new Map(),
    };
  });
}

function registrationOf(
  name: string,
  service: VipServiceSpec,
  { object, place, tailnet, uid, gateway }: User,
  entry: Owner | undefined,
): Registration {
  const given = gateway?.spec.serviceCoordination;
  const { enabled = true, strategy = 'shared', clusterID = uid ?? 'unknown' } = given ?? {};
  const listing = { object: place, listed: service.name, name };
  const tags = service.tags ?? tailnet.spec.tags;
  const own = entry?.object === place ? entry : undefined;
  const limits = { tags, tailnet, gateway, own };
  const problem = targetProblem(object, service.targetEndpoint) ?? tagProblem(limits);
  const kept = problem ? formatProblem(problem) : keptBy(object, enabled ? undefined : gateway);
  // What another object was registered with in an earlier version is not kept for this one.
  if (kept !== undefined && entry && !own)
    return { listing: { ...listing, problem: problem ?? notKept(kept) } };
  const claim: Claim = {
    name,
    object: place,
    port: service.port,
    tags,
    mayCreate: object.spec.serviceDiscovery?.autoRegister ?? true,
    notAdoptable: adoptionProblem(name, tailnet),
    shareWith: sharedWith(service.shareWith, object, tailnet),
    kept,
    strategy,
    cluster: clusterID,
    heartbeatMs: (given && durationMs(given.heartbeatInterval)) ?? HEARTBEAT_MS,
    staleMs: (given && durationMs(given.staleThreshold)) ?? STALE_MS,
  };
  const target = { object: refTo(object), endpoint: service.targetEndpoint };
  return { listing: { ...listing, problem, warnings: tagWarnings(limits) }, claim, target };
}

/** The claimed services that mesh pods advertise as soon as they follow: their endpoints are healthy. */
export function advertisedOf({ targets }: Claims, read: Pick<ReadObjects, 'get'>): ReadonlySet<string> {
  const healthy = [...targets].filter(([, { object, endpoint }]) =>
    read
      .get(object)
      ?.status?.endpoints?.some(({ name, status }) => name === endpoint && status === 'Healthy'),
  );
  return new Set(healthy.map(([name]) => name));
}

/** What they are where the control server has none. */
export const NOT_SUPPORTED: VipServiceState = {
  status: 'NotSupported',
  reason: 'NotSupported',
  text: 'the control server has no VIP services, as headscale has none',
};

const BEING_DELETED: VipServiceState = {
  status: 'Pending',
  reason: 'NotRegistered',
  text: 'it is not registered: the MeshTailnet is being deleted',
};

/** What all services of a MeshTailnet are, whoever has them; undefined where they differ. */
export function allOf(tailnet: MeshTailnet): VipServiceState | undefined {
  return isBeingDeleted(tailnet) ? BEING_DELETED : undefined;
}

const statesIn = keptLast<ServicesOfTailnet['states']>();

/** What the claimed services are shown as. */
export function statesOf(
  claims: Claims,
  states: ReadonlyMap<string, VipServiceState>,
): ServicesOfTailnet['states'] {
  return statesIn(claims, [states], () => {
    const byObject = new Map<string, Map<string, VipServiceState>>();
    for (const { object, listed, name, problem, warnings = [] } of claims.listings) {
      const state = problem ?? withWarnings(states.get(name), warnings);
      const ofObject = byObject.get(object) ?? new Map<string, VipServiceState>();
      if (state) byObject.set(object, ofObject.set(listed, state));
    }
    return byObject;
  });
}

function withWarnings(
  state: VipServiceState | undefined,
  more: readonly ProblemAt<'MeshEndpoints status.vipServices'>[],
): VipServiceState | undefined {
  if (!state || more.length === 0) return state;
  return { ...state, warnings: [...more, ...(state.warnings ?? [])] };
}

const addressesIn = keptLast<ReadonlySet<string>>();

/** The addresses of services, in canonical form. */
export function addressesOf(services: readonly VipService[]): ReadonlySet<string> {
  return addressesIn(services, [], () => new Set(services.flatMap(({ addrs }) => addrs.map(canonicalIP))));
}

const namesIn = keptLast<ServiceNames>();

/** Who has which name, for mesh pods. */
export function namesOf(
  { claims }: Claims,
  ledger: Ledger,
  { addresses, maxVipServices }: Pick<ServiceNames, 'addresses' | 'maxVipServices'>,
): ServiceNames {
  return namesIn(claims, [ledger, addresses, maxVipServices], () => {
    const left = [...ledger].flatMap(([name, holder]) => {
      const departure = departureOf(holder);
      return departure === undefined ? [] : [[name, departure] as const];
    });
    const holders = [...claims].map(([name, { object }]) => [name, object] as const);
    return {
      holders: new Map(holders),
      held: new Map([...ledger].map(([name, { object }]) => [name, object])),
      left: new Map(left),
      full: fullIn(ledger, maxVipServices),
      addresses,
      maxVipServices,
    };
  });
}

/** The MeshGateway that decides about the services of an object; undefined where the defaults do. */
function gatewayOf(
  object: MeshEndpoints,
  read: TrackedRead,
  { serviceGateways }: Pick<TrafficValues, 'serviceGateways'>,
): Kinds['MeshGateway'] | undefined {
  const key = read.value(serviceGateways, keyOf(refTo(object)));
  return key && read.exceptStatus.get(refOf(key) as Ref<'MeshGateway'>);
}

/** Why nothing is changed: the object is paused, or a MeshGateway has coordination disabled. */
function keptBy({ spec }: MeshEndpoints, disabledBy: Kinds['MeshGateway'] | undefined): string | undefined {
  if (spec.paused) return 'the object is paused';
  return disabledBy && `MeshGateway ${placeOf(disabledBy)} has serviceCoordination.enabled false`;
}

/** Who may join a service, as its owner writes it. */
function sharedWith(
  list: VipServiceSpec['shareWith'] = [],
  object: MeshEndpoints,
  { spec: { trustedInstallations = [] } }: MeshTailnet,
): readonly string[] {
  const listed = list.map(({ installation, namespace }) =>
    namespace === undefined ? installation : `${installation}/${namespace}`,
  );
  const trusted = trustedInstallations.map(installation => `${installation}/${placeOf(object)}`);
  return [...new Set([...listed, ...trusted])].sort();
}

/** What a MeshTailnet lacks for its namespaces to adopt a service of someone else. */
function adoptionProblem(service: string, { metadata, spec }: MeshTailnet): string | undefined {
  const name = service.replace(/^svc:/, '');
  const { adoptableServices = [] } = spec;
  const isListed = adoptableServices.some(each =>
    each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : each === name,
  );
  return isListed ? undefined : `add "${name}" to spec.adoptableServices of MeshTailnet ${metadata.name}`;
}

function notKept(why: string): VipServiceState {
  const text = `it is not registered, since another object had it with tags of an earlier version: ${why}`;
  return { status: 'Pending', reason: 'NotRegistered', text };
}

/** A discovered endpoint may be away for a while, so that a registration is kept meanwhile. */
function targetProblem(object: MeshEndpoints, target: string): VipServiceState | undefined {
  const endpoint: MeshEndpoint | undefined = endpointsOf(object).find(({ name }) => name === target);
  if (endpoint && endpoint.protocol !== 'UDP') return undefined;
  const text = endpoint ? `endpoint ${target} is a UDP endpoint` : `the object has no endpoint ${target}`;
  return endpoint
    ? { status: 'Failed', reason: 'ProtocolNotSupported', text, fix: 'VIP services carry TCP only' }
    : { status: 'Failed', reason: 'TargetNotFound', text, fix: 'correct targetEndpoint' };
}
