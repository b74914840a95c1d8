import type { Access } from '../../api/access.ts';
import type { Clock } from '../../api/clock.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { ResourceKind } from '../../api/key.ts';
import type { Tailnets } from '../../control/control.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { Outcome } from '../../runtime/queue/queue.ts';
import type { RunContext } from '../../runtime/runs.ts';
import { inSlices } from '../../runtime/slices.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import type { WriteResources } from '../../store/resources.ts';
import type { TrackedRead, Tracking } from '../../store/tracking.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Recorder } from '../../telemetry/metric-recorder.ts';
import type { vipServiceMetrics } from '../../telemetry/metrics.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import type { ServiceNames, ServicesOfTailnet } from '../mesh-endpoints/vip-services.ts';
import { connectionOf } from './connection.ts';
import type { ConnectionDeps, Listed } from './connection.ts';
import { coordinate, NOTHING_KNOWN } from './coordination.ts';
import type { Coordinated, CoordinationDeps } from './coordination.ts';
import { FINALIZER, hasFinalizer, skipsCleanup } from './finalizer.ts';
import {
  addressesOf,
  advertisedOf,
  allOf,
  claimsOf,
  heirOf,
  intervalMsOf,
  namesOf,
  NOT_SUPPORTED,
  statesOf,
} from './gather.ts';
import type { Claims } from './gather.ts';
import { planLedger } from './hold-names.ts';
import type { HoldOptions } from './hold-names.ts';
import type { Ledger } from './ledger.ts';
import { ledgerStore } from './ledger-store.ts';
import type { LedgerStore, LedgerStoreDeps } from './ledger-store.ts';
import { isOffered, offeringReader, usersFrom } from './offering.ts';
import type { ReadOffering, Users } from './offering.ts';
import type { Published } from '../../runtime/published.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** What the controller works with. */
export type VipServicesDeps = ConnectionDeps & {
  readonly tailnets: Pick<Tailnets, 'subscribe'>;
  readonly tracking: Tracking;
  readonly values: Pick<TrafficValues, 'serviceGateways'>;
  readonly vipServices: Published<ServicesOfTailnet>;
  /** The departures of names that no mesh pod serves, by the name. */
  readonly unserved: Published<ReadonlyMap<string, string>>;
  readonly ownNamespace: LedgerStoreDeps['ownNamespace'];
  /** How many names of VIP services a tailnet may have; a namespace may have a share of them. */
  readonly maxVipServices: number;
  readonly write: Pick<WriteResources, 'addFinalizer' | 'removeFinalizer'>;
  readonly clock: Pick<Clock, 'now' | 'soon'>;
  /** The time of day. */
  readonly now: () => Date;
  readonly random: () => number;
  readonly record: Pick<Recorder<typeof vipServiceMetrics>, 'registrations'>;
  readonly log: Log;
};

/** The kinds that the controller reads itself. */
export const reads: readonly ResourceKind[] = ['MeshEndpoints', 'MeshGateway', 'Namespace'];

/** What the controller may do in a cluster, beside watching what it reads: hold finalizers of MeshTailnets, and keep ledgers. */
export const access: Access = {
  cluster: [{ apiGroups: [GROUP], resources: ['meshtailnets'], verbs: ['get', 'patch'] }],
  own: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'patch', 'delete'] }],
};

const ON_CHANGE: Outcome = { requeue: 'on-change' };

const NO_HOLDERS: Ledger = new Map();

const NO_ADDRESSES: ReadonlySet<string> = new Set();

/** Of a tailnet without VIP services. */
const NOTHING: ServicesOfTailnet = {
  states: new Map(),
  all: undefined,
  problem: undefined,
  names: {
    holders: new Map(),
    held: new Map(),
    left: new Map(),
    full: new Set(),
    maxVipServices: 0,
    addresses: NO_ADDRESSES,
  },
};

/** A list may lack a service that was just created: this many in a row must have none before the finalizer is removed. */
const LISTS_WITHOUT = 3;

/** What is remembered of a tailnet: also the addresses of all services when they were listed last. */
type Memory = {
  coordination: Coordinated['memory'];
  addresses: ReadonlySet<string>;
  /** Undefined where nothing is known to be as it should. */
  done: Done | undefined;
  readonly readOffering: ReadOffering;
};

/** What was done about the services as they were listed, and until when nothing else is to be done if nothing changes. */
type Done = Performed & { readonly listed: Listed; readonly because: readonly unknown[] };

type Performed = Pick<Coordinated, 'states'> & {
  /** By the clock. */
  readonly until: number;
};

function nothingKnown(users: Users, clock: VipServicesDeps['clock']): Memory {
  const readOffering = offeringReader(users, clock);
  return { coordination: NOTHING_KNOWN, addresses: NO_ADDRESSES, done: undefined, readOffering };
}

/** Everything that decides what is done about the VIP services of a tailnet. */
type Input = HoldOptions & { readonly tailnet: MeshTailnet };

type Deps = VipServicesDeps & { readonly users: Users; readonly ledgers: LedgerStore };

/** What the status is made with, beside what was done. */
type Shown = Pick<ServiceNames, 'addresses' | 'maxVipServices'> & {
  readonly before: ServicesOfTailnet | undefined;
};

/** Who has which name, undefined while it is not known, and what is to be registered. */
type Planned = { readonly ledger: Ledger | undefined; readonly claims: Claims };

/** Registers the VIP services that the MeshEndpoints of each tailnet list, and removes those that none lists any more. */
export function vipServicesController(given: VipServicesDeps): Controller<'MeshTailnet', Memory> {
  const users = usersFrom(given.tracking);
  const deps = { ...given, users, ledgers: ledgerStore(given) };
  const { tailnets, vipServices, write } = deps;
  return {
    name: 'vip-services',
    kind: 'MeshTailnet',
    reads,
    subscribe: enqueue => {
      const listener = (name: string) => enqueue({ kind: 'MeshTailnet', namespace: '', name });
      const ends = [tailnets, deps.unserved].map(published => published.subscribe(listener));
      return () => ends.forEach(end => end());
    },
    memory: () => nothingKnown(users, deps.clock),
    reconcile: async (ref, read, run): Promise<Outcome> => {
      const { name } = ref;
      const { memory } = run;
      const tailnet = read.get(ref);
      const heir = tailnet && heirOf(tailnet, read);
      if (!tailnet || heir) {
        Object.assign(memory, { coordination: NOTHING_KNOWN, done: undefined });
        vipServices.publish(name, undefined);
      }
      if (!tailnet) return ON_CHANGE;
      if (skipsCleanup(tailnet)) {
        await write.removeFinalizer(tailnet, FINALIZER);
        return ON_CHANGE;
      }
      if (heir) return await handOver(tailnet, heir, write);
      const { input, planned, done } = await decide(tailnet, read, memory, deps);
      const performed = done ?? (await perform(input, planned, run, deps));
      const { addresses } = memory;
      const shown = { before: vipServices.of(name), addresses, maxVipServices: deps.maxVipServices };
      vipServices.publish(name, statusOf(input, planned, performed, shown));
      return outcomeOf(input, planned, performed, deps.clock.now());
    },
  };
}

type Decided = {
  readonly input: Input;
  readonly planned: Planned | undefined;
  /** Where nothing is to be done: what was done last. */
  readonly done?: Done;
};

/**
 * Lists the services, and plans by that. They are not listed where nothing that concerns them has changed since the last time,
 * so that whoever edits what it lists makes no requests.
 */
async function decide(tailnet: MeshTailnet, read: TrackedRead, memory: Memory, deps: Deps): Promise<Decided> {
  const { done } = memory;
  if (done && deps.clock.now() < done.until) {
    const input = await gather(tailnet, read, memory, { ...deps, listed: done.listed });
    const planned = await plan(input, read, deps);
    const because = reasonsOf(input, planned, deps);
    if (isEqualList(because, done.because)) return { input, planned, done };
  }
  const input = await gather(tailnet, read, memory, deps);
  return { input, planned: await plan(input, read, deps) };
}

/** What decides about the services, each the same value until it changes. */
function reasonsOf(
  { tailnet, connection }: Input,
  planned: Planned | undefined,
  { tailnets }: Deps,
): readonly unknown[] {
  const { metadata, spec } = tailnet;
  const { devices, isStale } = tailnets.lastView(metadata.name) ?? {};
  const api = connection?.is === 'usable' && connection.api;
  return [planned?.claims, api, spec, hasFinalizer(tailnet), isBeingDeleted(tailnet), devices, isStale];
}

function isEqualList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((each, at) => each === other[at]);
}

async function gather(
  tailnet: MeshTailnet,
  read: TrackedRead,
  memory: Memory,
  deps: Deps & { readonly listed?: Listed },
): Promise<Input> {
  const stored = await deps.ledgers.read(tailnet.spec.tailnet);
  const isIdle = !isOffered(tailnet, deps.users, read) && !hasFinalizer(tailnet);
  const connection = isIdle ? undefined : await connectionOf(tailnet, deps, deps.listed);
  // As it is now: an object that was created meanwhile keeps its name.
  const offering = await memory.readOffering(tailnet, read);
  return { tailnet, stored, connection, offering };
}

/** Undefined where the control server has no VIP services. */
async function plan(input: Input, read: TrackedRead, deps: Deps): Promise<Planned | undefined> {
  const { tailnet, connection, offering } = input;
  if (connection?.is === 'without-services') return undefined;
  const ledger = await planLedger(tailnet, input, read, deps);
  const claims = claimsOf(tailnet, offering, ledger ?? NO_HOLDERS, { ...deps, connection, read });
  return { ledger, claims: await inSlices(claims, deps.clock) };
}

/** Nothing is registered before it is stored who has the names. */
async function perform(
  input: Input,
  planned: Planned | undefined,
  { memory, signal }: RunContext<Memory>,
  deps: Deps,
): Promise<Performed | undefined> {
  const { tailnet, stored, connection } = input;
  const { write, ledgers, tailnets, clock } = deps;
  Object.assign(memory, { done: undefined });
  if (connection?.is === 'usable') Object.assign(memory, { addresses: addressesOf(connection.services) });
  else if (!connection) Object.assign(memory, { coordination: NOTHING_KNOWN });
  if (!planned) await write.removeFinalizer(tailnet, FINALIZER);
  const { ledger, claims } = planned ?? {};
  if (ledger?.size === 0 && !connection) {
    if (stored) await ledgers.remove(tailnet.spec.tailnet);
  } else if (ledger) await ledgers.write(tailnet, ledger);
  if (!claims || connection?.is !== 'usable') return undefined;
  const { name } = tailnet.metadata;
  if (claims.claims.size > 0 && !hasFinalizer(tailnet)) await write.addFinalizer(tailnet, FINALIZER);
  const because = reasonsOf(input, planned, deps);
  const { devices, isStale = true } = tailnets.lastView(name) ?? {};
  // A change of health alone needs no list of the services.
  const advertised = advertisedOf(claims, deps.tracking.untracked);
  const of = { ...connection, claims: claims.claims, tags: tailnet.spec.tags, devices, isStale };
  const coordinated = await coordinate(
    { ...of, advertised, before: memory.coordination, signal },
    { ...deps, ...reporting(name, deps), installation: connection.installation },
  );
  Object.assign(memory, { coordination: coordinated.memory });
  if (coordinated.memory.listsWithout >= LISTS_WITHOUT) await write.removeFinalizer(tailnet, FINALIZER);
  const until = clock.now() + Math.min(coordinated.nextMs, intervalMsOf(tailnet));
  const performed = { states: coordinated.states, until };
  Object.assign(memory, { done: { ...performed, listed: connection, because } });
  return performed;
}

function statusOf(
  { tailnet, connection }: Input,
  planned: Planned | undefined,
  performed: Performed | undefined,
  { before, ...shown }: Shown,
): ServicesOfTailnet {
  if (!planned) return { ...NOTHING, all: NOT_SUPPORTED };
  const { ledger, claims } = planned;
  const names = ledger && namesOf(claims, ledger, shown);
  if (performed)
    return { ...NOTHING, states: statesOf(claims, performed.states), all: allOf(tailnet), names };
  if (connection?.is !== 'unusable') return { ...NOTHING, names };
  return { ...NOTHING, ...before, names, problem: connection.problem };
}

function outcomeOf(
  { tailnet, connection }: Input,
  planned: Planned | undefined,
  performed: Performed | undefined,
  now: number,
): Outcome {
  if (!connection && planned?.ledger?.size === 0) return ON_CHANGE;
  return { requeue: 'after', ms: performed ? Math.max(0, performed.until - now) : intervalMsOf(tailnet) };
}

/** Where the results of a tailnet are counted and logged. */
function reporting(tailnet: string, { log, record }: Pick<VipServicesDeps, 'log' | 'record'>) {
  const count: CoordinationDeps['count'] = result => record.registrations({ tailnet, result });
  return { log: log.child({ tailnet }), count };
}

/**
 * The heir keeps what this one has registered, or removes it. One that is being deleted takes no finalizer: this one has the
 * domain once that has ended.
 */
async function handOver(
  tailnet: MeshTailnet,
  heir: MeshTailnet,
  write: VipServicesDeps['write'],
): Promise<Outcome> {
  if (!hasFinalizer(tailnet) || isBeingDeleted(heir)) return ON_CHANGE;
  if (!hasFinalizer(heir)) await write.addFinalizer(heir, FINALIZER);
  await write.removeFinalizer(tailnet, FINALIZER);
  return ON_CHANGE;
}
