import type { Access } from '../../../api/access.ts';
import type { ResourceKind } from '../../../api/key.ts';
import type { Why } from '../../../api/problem.ts';
import { servicesVersion } from '../../../api/served-services.ts';
import type { Controller } from '../../../runtime/controller.ts';
import type { Published } from '../../../runtime/published.ts';
import type { Outcome } from '../../../runtime/queue/queue.ts';
import type { Tracking } from '../../../store/tracking.ts';
import type { PortsOfTailnet } from '../../mesh-endpoints/relay-ports.ts';
import type { FrontState } from '../pool/front-condition.ts';
import { UNCONFIRMED } from './confirmation.ts';
import type { Confirmation } from './confirmation.ts';
import { destinationsFrom } from './destinations.ts';
import { gather } from './gather.ts';
import type { GatherDeps, Input } from './gather.ts';
import { perform } from './perform.ts';
import type { PerformDeps } from './perform.ts';
import { NO_PLAN, plan } from './plan.ts';
import type { Plan, PlanOptions, PreviousPlan } from './plan.ts';
import { readRelays } from './relay-status.ts';

/** What the controller works with. */
export type RelayPortsDeps = GatherDeps &
  PerformDeps & {
    readonly tracking: Tracking;
    readonly relayPorts: Published<PortsOfTailnet>;
    /** What the lists of fronts are made from. */
    readonly fronts: Published<FrontState>;
    /** The departures of holders whose names no mesh pod serves any more. */
    readonly unserved: Published<ReadonlyMap<string, string>>;
    /** Which ports relays may listen on. */
    readonly relayPortRange: PlanOptions['range'];
    readonly relayPortsPerNamespace: PlanOptions['perNamespace'];
    /** The image of relays; without it mesh pods have none. */
    readonly relayImage: string | undefined;
  };

/** The kinds that the controller reads. */
export const reads: readonly ResourceKind[] = ['MeshTailnet', 'MeshEndpoints', 'Namespace', 'Pod'];

/** What the controller may do in a cluster, beside watching what it reads: write the ConfigMaps of relays. */
export const access: Access = {
  cluster: [],
  own: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'patch'] }],
};

/** What is kept of a tailnet between two reconciles. */
type Memory = { plan: PreviousPlan; confirmation: Confirmation };

const nothingKnown = (): Memory => ({ plan: NO_PLAN, confirmation: UNCONFIRMED });

/** Assigns a relay port to each UDP endpoint of a tailnet, publishes the targets to its relays, and the ports once they listen. */
export function relayPortsController(deps: RelayPortsDeps): Controller<'MeshTailnet', Memory> {
  const {
    relayPorts,
    fronts,
    unserved,
    vipServices,
    callers,
    enforcement,
    relayImage,
    relayPortRange: range,
    relayPortsPerNamespace: perNamespace,
    clock,
  } = deps;
  const destinations = destinationsFrom(deps.tracking, deps.values);
  return {
    name: 'relay-ports',
    kind: 'MeshTailnet',
    reads,
    subscribe: enqueue => {
      const one = (name: string) => enqueue({ kind: 'MeshTailnet', namespace: '', name });
      const all = () => deps.tracking.untracked.list('MeshTailnet').forEach(each => one(each.metadata.name));
      const ends = [vipServices.subscribe(one), callers.subscribe(all), enforcement.subscribe(all)];
      return () => ends.forEach(end => end());
    },
    memory: nothingKnown,
    reconcile: async (ref, read, { signal, memory }) => {
      const { name } = ref;
      const input = await gather(ref, read, { ...deps, destinations });
      if (!input) {
        Object.assign(memory, nothingKnown());
        relayPorts.publish(name, undefined);
        fronts.publish(name, undefined);
        unserved.publish(name, undefined);
        return { requeue: 'on-change' };
      }
      if (relayImage === undefined) {
        relayPorts.publish(name, portsWithoutRelays(input));
        unserved.publish(name, input.left);
        return { requeue: 'on-change' };
      }
      const planned = plan(input, memory.plan, { range, perNamespace });
      const { owners, freed, appliedAt } = planned;
      // Before the apply, whose response may be lost: the ConfigMap then no longer shows which ports it has freed.
      memory.plan = { owners, freed, appliedAt: memory.plan.appliedAt };
      const confirmation = await perform(planned, { input, before: memory.confirmation, signal }, deps);
      Object.assign(memory, { plan: { owners, freed, appliedAt }, confirmation });
      relayPorts.publish(name, portsOf(planned, confirmation));
      fronts.publish(name, planned.front);
      const isUnserved = await servesNoOthers(input, signal, deps);
      unserved.publish(name, isUnserved ? input.left : undefined);
      const outcome = outcomeOf(planned, confirmation, clock.now());
      return isUnserved ? outcome : soonest(outcome, { requeue: 'after', ms: UNSERVED_MS });
    },
  };
}

/** How often relays are read while pods may serve a name that its holder has left. */
const UNSERVED_MS = 5000;

/** Whether no pod serves what the ConfigMap lacks; they are not asked where no holder has left a name, or they never served any. */
async function servesNoOthers(
  { left, serving, services, storedServices }: Input,
  signal: AbortSignal,
  deps: PerformDeps,
): Promise<boolean> {
  if (left.size === 0 || (services === '' && storedServices === undefined)) return true;
  const version = servicesVersion(services);
  const reports = await readRelays(serving, signal, deps);
  return reports.every(({ response }) => 'version' in response && response.services === version);
}

function soonest(one: Outcome, other: Extract<Outcome, { requeue: 'after' }>): Outcome {
  return one.requeue === 'after' && one.ms < other.ms ? one : other;
}

function outcomeOf({ retryAt }: Plan, { nextMs = Infinity }: Confirmation, now: number): Outcome {
  const ms = Math.min(nextMs, retryAt - now);
  return ms === Infinity ? { requeue: 'on-change' } : { requeue: 'after', ms };
}

/** The ports of a tailnet on which relays listen or may listen soon, and why others are missing. */
function portsOf({ ports, missing }: Plan, { confirmed, failed, pending }: Confirmation): PortsOfTailnet {
  const usable = [...ports].filter(([target]) => !failed.has(target));
  return {
    ports: new Map(usable.map(([target, port]) => [target, { port, isConfirmed: confirmed.has(target) }])),
    missing: new Map([...missing, ...failed, ...pending]),
  };
}

const NO_IMAGE: Why = {
  text: 'mesh pods have no relay, since the operator runs in no pod',
  fix: 'set its RELAY_IMAGE to the image of mesh-gateway',
};

/** Where mesh pods have no relay. */
function portsWithoutRelays({ wanted }: Input): PortsOfTailnet {
  return { ports: new Map(), missing: new Map(wanted.map(({ target }) => [target, NO_IMAGE])) };
}
