import { inTurns } from '../../api/turns.ts';
import type { VipService } from '../../control/control.ts';
import type { VipServiceState } from '../mesh-endpoints/vip-services.ts';
import { decide } from './decision.ts';
import type { Claim, Context } from './decision.ts';
import { ownersOf } from './owners.ts';

export type Input = {
  /** All services of the tailnet, as they were listed. */
  readonly services: readonly VipService[];
  /** By the name of the service. */
  readonly claims: ReadonlyMap<string, Claim>;
  readonly contextOf: (name: string) => Context;
};

export type Plan = {
  /** The services that are to be written. */
  readonly due: readonly Due[];
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

/** Plans what is done about the VIP services of a tailnet. */
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
  return { due, states, owned, leaving, nextMs };
}

/** While there are changes, this number of them comes before each renewal that is due. */
const CHANGES_PER_RENEWAL = 3;

/** The services in the order in which they are written: changes, between them renewals, and each in turns by namespace. */
export function inOrder(due: readonly Due[]): readonly string[] {
  const turnsOf = (services: readonly Due[]) => inTurns(services, ({ namespace }) => namespace);
  const changes = turnsOf(due.filter(({ isRenewal }) => !isRenewal));
  const renewals = turnsOf(due.filter(({ isRenewal }) => isRenewal));
  const placed = [
    ...changes.map(({ name }, index) => ({ name, at: index })),
    ...renewals.map(({ name }, index) => ({ name, at: CHANGES_PER_RENEWAL * (index + 1) - 0.5 })),
  ];
  return placed.sort((one, other) => one.at - other.at).map(({ name }) => name);
}
