import type { VipService } from '../../control/control.ts';
import type { VipServiceState } from '../mesh-endpoints/vip-services.ts';
import { decide } from './decision.ts';
import type { Claim, Context } from './decision.ts';
import { ownershipOf } from './owners.ts';

export type Input = {
  /** All services of the tailnet, as they were listed. */
  readonly services: readonly VipService[];
  /** By the name of the service. */
  readonly claims: ReadonlyMap<string, Claim>;
  readonly contextOf: (name: string) => Context;
};

export type Plan = {
  /** The services that are to be written, in this order. */
  readonly due: readonly string[];
  /** By the name of the service. */
  readonly states: ReadonlyMap<string, VipServiceState>;
  /** How many services of the tailnet this installation owns. */
  readonly owned: number;
  /** Services that all owners are removing, without this installation. */
  readonly leaving: ReadonlySet<string>;
  /** When there is something to do even if nothing changes. */
  readonly nextMs: number;
};

type Due = { readonly name: string; readonly namespace: string; readonly isRenewal: boolean };

/** Plans what is done about the VIP services of a tailnet: changes before heartbeats, and each in turns by namespace. */
export function plan({ services, claims, contextOf }: Input): Plan {
  const byName = new Map(services.map(service => [service.name, service]));
  const states = new Map<string, VipServiceState>();
  const [due, leaving]: [Due[], Set<string>] = [[], new Set()];
  let [owned, nextMs] = [0, Infinity];
  for (const name of new Set([...claims.keys(), ...byName.keys()])) {
    const [service, claim, context] = [byName.get(name), claims.get(name), contextOf(name)];
    const owners = ownersOf(service);
    const own = owners.find(({ installation }) => installation === context.installation);
    if (own) owned++;
    else if (owners.length > 0 && owners.every(owner => owner.leaving)) leaving.add(name);
    const { action, state } = decide(service, claim, context);
    if (state) states.set(name, state);
    if (action.do === 'nothing') {
      nextMs = Math.min(nextMs, action.afterMs ?? Infinity);
      continue;
    }
    const namespace = (claim?.object ?? own?.object ?? '').replace(/\/.*/, '');
    due.push({ name, namespace, isRenewal: action.do === 'put' && action.result === 'renewed' });
  }
  const changes = inTurns(due.filter(({ isRenewal }) => !isRenewal));
  const renewals = inTurns(due.filter(({ isRenewal }) => isRenewal));
  return { due: [...changes, ...renewals].map(({ name }) => name), states, owned, leaving, nextMs };
}

function ownersOf(service: VipService | undefined) {
  const ownership = service && ownershipOf(service);
  return ownership?.is === 'owned' ? ownership.owners : [];
}

/** The first of each namespace, then the second of each. */
function inTurns<T extends { readonly namespace: string }>(items: readonly T[]): readonly T[] {
  const counts = new Map<string, number>();
  const turns = items.map(item => {
    const turn = counts.get(item.namespace) ?? 0;
    counts.set(item.namespace, turn + 1);
    return { item, turn };
  });
  return turns.sort((one, other) => one.turn - other.turn).map(({ item }) => item);
}
