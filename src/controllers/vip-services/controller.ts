import type { Access } from '../../api/access.ts';
import type { Clock } from '../../api/clock.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { ResourceKind } from '../../api/key.ts';
import type { Tailnets } from '../../control/control.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { Outcome } from '../../runtime/queue/queue.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import type { WriteResources } from '../../store/resources.ts';
import type { Tracking } from '../../store/tracking.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Recorder } from '../../telemetry/metric-recorder.ts';
import type { vipServiceMetrics } from '../../telemetry/metrics.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import { operatorTrafficKinds } from '../../traffic/access.ts';
import type { ServicesOfTailnet } from '../mesh-endpoints/vip-services.ts';
import { connectionOf } from './connection.ts';
import type { ConnectionDeps } from './connection.ts';
import { coordinate, NOTHING_KNOWN } from './coordination.ts';
import type { CoordinationDeps } from './coordination.ts';
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
import { holdNames } from './hold-names.ts';
import type { Ledger } from './ledger.ts';
import { ledgerStore } from './ledger-store.ts';
import type { LedgerStoreDeps } from './ledger-store.ts';
import { isOffered, offeringReader } from './offering.ts';
import type { Published } from '../../runtime/published.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** What the controller works with. */
export type VipServicesDeps = ConnectionDeps & {
  readonly tailnets: Pick<Tailnets, 'subscribe'>;
  readonly tracking: Pick<Tracking, 'untracked'>;
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

/** The kinds that the controller reads: what is listed, and by which routes a MeshGateway decides about it. */
export const reads: readonly ResourceKind[] = operatorTrafficKinds;

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
function nothingKnown(clock: VipServicesDeps['clock']) {
  return { coordination: NOTHING_KNOWN, addresses: NO_ADDRESSES, readOffering: offeringReader(clock) };
}

/** Registers the VIP services that the MeshEndpoints of each tailnet list, and removes those that none lists any more. */
export function vipServicesController(
  deps: VipServicesDeps,
): Controller<'MeshTailnet', ReturnType<typeof nothingKnown>> {
  const { tailnets, vipServices, write } = deps;
  const ledgers = ledgerStore(deps);
  return {
    name: 'vip-services',
    kind: 'MeshTailnet',
    reads,
    subscribe: enqueue => {
      const listener = (name: string) => enqueue({ kind: 'MeshTailnet', namespace: '', name });
      const ends = [tailnets, deps.unserved].map(published => published.subscribe(listener));
      return () => ends.forEach(end => end());
    },
    memory: () => nothingKnown(deps.clock),
    reconcile: async (ref, read, { signal, memory }): Promise<Outcome> => {
      const { name } = ref;
      const tailnet = read.get(ref);
      const heir = tailnet && heirOf(tailnet, read);
      if (!tailnet || heir) {
        Object.assign(memory, { coordination: NOTHING_KNOWN });
        vipServices.publish(name, undefined);
      }
      if (!tailnet) return ON_CHANGE;
      if (skipsCleanup(tailnet)) {
        await write.removeFinalizer(tailnet, FINALIZER);
        return ON_CHANGE;
      }
      if (heir) return await handOver(tailnet, heir, write);
      const stored = await ledgers.read(tailnet.spec.tailnet);
      const isIdle = !isOffered(tailnet, read) && !hasFinalizer(tailnet);
      const connection = isIdle ? undefined : await connectionOf(tailnet, deps);
      const later: Outcome = { requeue: 'after', ms: intervalMsOf(tailnet) };
      // As it is now: an object that was created meanwhile keeps its name.
      const offering = await memory.readOffering(tailnet, read);
      if (connection?.is === 'without-services') {
        vipServices.publish(name, { ...NOTHING, all: NOT_SUPPORTED });
        await write.removeFinalizer(tailnet, FINALIZER);
        return later;
      }
      // Without a ledger, who has registered which service decides, which is not known yet.
      const isKnown = stored !== undefined || connection?.is !== 'unusable';
      const held = { offering, stored, connection, read };
      const ledger = isKnown ? await holdNames(tailnet, held, { ...deps, ledgers }) : undefined;
      const claims = claimsOf(tailnet, offering, ledger ?? NO_HOLDERS, { ...deps, connection, read });
      if (connection?.is === 'usable') Object.assign(memory, { addresses: addressesOf(connection.services) });
      const names = ledger && namesOf(claims, ledger, { ...deps, addresses: memory.addresses });
      if (!connection) {
        Object.assign(memory, { coordination: NOTHING_KNOWN });
        vipServices.publish(name, { ...NOTHING, names });
        return ledger?.size === 0 ? ON_CHANGE : later;
      }
      if (connection.is === 'unusable') {
        const before = vipServices.of(name);
        vipServices.publish(name, { ...NOTHING, ...before, names, problem: connection.problem });
        return later;
      }
      if (claims.claims.size > 0 && !hasFinalizer(tailnet)) await write.addFinalizer(tailnet, FINALIZER);
      const { devices, isStale = true } = tailnets.lastView(name) ?? {};
      // A change of health alone needs no list of the services.
      const advertised = advertisedOf(claims, deps.tracking.untracked);
      const of = { ...connection, claims: claims.claims, tags: tailnet.spec.tags, devices, isStale };
      const {
        memory: coordination,
        states,
        nextMs,
      } = await coordinate(
        { ...of, advertised, before: memory.coordination, signal },
        { ...deps, ...reporting(name, deps), installation: connection.installation },
      );
      Object.assign(memory, { coordination });
      vipServices.publish(name, { ...NOTHING, states: statesOf(claims, states), all: allOf(tailnet), names });
      if (coordination.listsWithout >= LISTS_WITHOUT) await write.removeFinalizer(tailnet, FINALIZER);
      return { requeue: 'after', ms: Math.min(nextMs, intervalMsOf(tailnet)) };
    },
  };
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
