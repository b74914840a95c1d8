import type { Answer } from '../../../../lab/control-api/answer.ts';
import { addDevice } from '../../../../lab/control-api/operations/registration.ts';
import { createState } from '../../../../lab/control-api/state.ts';
import type { State } from '../../../../lab/control-api/state.ts';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { ControlError } from '../../../../src/control/control.ts';
import type { ControlApi, Device } from '../../../../src/control/control.ts';
import { coordinate, NOTHING_KNOWN } from '../../../../src/controllers/vip-services/coordination.ts';
import type { Memory } from '../../../../src/controllers/vip-services/coordination.ts';
import type { Claim } from '../../../../src/controllers/vip-services/decision.ts';
import type { VipServiceState } from '../../../../src/controllers/mesh-endpoints/vip-services.ts';
import { ownershipOf } from '../../../../src/controllers/vip-services/owners.ts';
import type { Strategy } from '../../../../src/controllers/vip-services/owners.ts';
import { sweeper } from '../../../../src/controllers/vip-services/sweep.ts';
import { vipServiceMetrics } from '../../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../../src/telemetry/registry.ts';
import { named } from '../../declared.ts';
import { meshTailnet } from '../../objects.ts';
import { controlErrorOf, servicesApiOn } from './services-api.ts';
import type { ServicesApi } from './services-api.ts';

const START = Date.UTC(2026, 0, 15, 12);

/** What happens to the call of an operator that is next. */
export type CallEnd = 'is answered' | 'is refused' | 'loses its response';

/** One thing that happens; operators are counted modulo how many there are. */
export type Step =
  | { readonly do: 'call'; readonly operator: number; readonly ends: CallEnd }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'crash'; readonly operator: number }
  /** A user asks for a cleanup: the operator makes it before its next reconcile. */
  | { readonly do: 'sweep'; readonly operator: number }
  /** A user lists the service in the cluster, or no longer does. */
  | { readonly do: 'change'; readonly operator: number };

/** How an operator differs from the others. */
export type OperatorOptions = {
  /** How far its clock is from that of the control API. */
  readonly skewMs: number;
  /** Whether its mesh pod is online. */
  readonly hasPods: boolean;
  readonly strategy: Strategy;
};

type Operator = OperatorOptions & {
  readonly installation: string;
  isClaimed: boolean;
  /** What its user sees of the service, as in `Conflict OwnedByOther`. */
  state: string | undefined;
  memory: Memory;
  /** Counts the processes, so that what an earlier one does has no effect. */
  process: number;
  isRunning: boolean;
  isToSweep: boolean;
  /** Its call that waits to be carried out. */
  waiting: { readonly end: (how: CallEnd) => void; readonly at: number } | undefined;
  nextAt: number;
  calls: number;
};

/** No call takes longer than this, from the decision to its end: a try has 15 s, after up to 20 s for the rate limit. */
const MAX_CALL_MS = 35_000;

const NAME = 'svc:web';

/** Each shares its services with all of them. */
const ALL_INSTALLATIONS = Array.from({ length: 8 }, (_, index) => `${index}`.repeat(8));

const { record } = createRegistry({ metrics: vipServiceMetrics, version: 'test' });
const authenticated = { type: 'Authenticated', status: 'True', reason: 'Authenticated', message: '' };
const TAILNET = {
  ...named(meshTailnet({ tags: ['tag:mesh'] }), 'example'),
  status: { conditions: [{ ...authenticated, lastTransitionTime: '2026-01-15T12:00:00Z' }] },
} as unknown as Kinds['MeshTailnet'];

/** Operators that offer one service in one tailnet, whose calls a test interleaves. */
export class Operators {
  readonly state: State;
  readonly operators: readonly Operator[];
  /** Deletions of a service that another installation owned. */
  readonly wrongDeletions: string[] = [];
  #nowMs = 0;

  constructor(options: readonly OperatorOptions[]) {
    const clock = { now: () => START + this.#nowMs };
    const domain = 'example.ts.net';
    this.state = createState({ dialect: 'vendor', domain, behaviour: {}, clock, seed: 1, settings: {} });
    this.operators = options.map((each, index) => {
      const installation = ALL_INSTALLATIONS[index] ?? '';
      if (each.hasPods) addDevice(this.state, { hostname: hostnameOf(installation), tags: ['tag:mesh'] });
      return {
        ...{ ...each, installation, isClaimed: false, state: undefined, memory: NOTHING_KNOWN, process: 0 },
        ...{ isRunning: false, isToSweep: false, waiting: undefined, nextAt: 0, calls: 0 },
      };
    });
  }

  get calls(): number {
    return this.operators.reduce((sum, { calls }) => sum + calls, 0);
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'call':
        await this.#call(this.#operator(step.operator), step.ends);
        break;
      case 'wait':
        await this.#wait(step.ms);
        break;
      case 'crash':
        this.#crash(this.#operator(step.operator));
        break;
      case 'sweep': {
        const operator = this.#operator(step.operator);
        operator.isToSweep = true;
        operator.nextAt = this.#nowMs;
        break;
      }
      case 'change': {
        const operator = this.#operator(step.operator);
        operator.isClaimed = !operator.isClaimed;
        operator.nextAt = this.#nowMs;
      }
    }
  }

  /** Without any further fault, until everything is as it is to be. */
  async settle(ms: number): Promise<void> {
    const end = this.#nowMs + ms;
    while (this.#nowMs < end) {
      for (const operator of this.operators) {
        while (this.#isDue(operator)) await this.#call(operator, 'is answered');
      }
      const nextAt = Math.min(...this.operators.map(operator => operator.nextAt));
      await this.#wait(Math.max(1, nextAt - this.#nowMs));
    }
  }

  /** The installations that own the service; undefined where it does not exist. */
  owners(): readonly string[] | undefined {
    const service = this.state.services.current(NAME);
    if (!service) return undefined;
    const ownership = ownershipOf(service);
    return ownership.is === 'owned' ? ownership.owners.map(({ installation }) => installation).sort() : [];
  }

  /** Those whose users list it. */
  claimants(): readonly string[] {
    return this.operators.flatMap(({ isClaimed, installation }) => (isClaimed ? [installation] : []));
  }

  /** What is not as the strategies of those that list the service allow. */
  disagreements(): readonly string[] {
    const owners = this.owners();
    const claimants = this.operators.filter(({ isClaimed }) => isClaimed);
    if (claimants.length === 0) return owners ? [`it is left, with the owners ${owners.join()}`] : [];
    if (!owners?.length) return ['none of those that list it owns it'];
    const owning = this.operators.filter(({ installation }) => owners.includes(installation));
    const isIsolated = owning.some(({ strategy }) => strategy === 'isolated');
    return [
      ...owning
        .filter(({ isClaimed }) => !isClaimed)
        .map(({ installation }) => `${installation} owns it still`),
      ...(isIsolated && owning.length > 1 ? [`${owners.join()} share it, and one of them is isolated`] : []),
      ...claimants.flatMap(({ installation, strategy, state }) => {
        const mayJoin = !isIsolated && strategy === 'shared';
        const isOwner = owners.includes(installation);
        const expected = isOwner || mayJoin ? 'Registered NotServed' : 'Conflict OwnedByOther';
        return state === expected && (isOwner || !mayJoin)
          ? []
          : [`${installation} has ${state}, not ${expected}`];
      }),
    ];
  }

  #operator(index: number): Operator {
    const operator = this.operators[index % this.operators.length];
    if (!operator) throw new Error('there are no operators');
    return operator;
  }

  #isDue({ waiting, isRunning, nextAt }: Operator): boolean {
    return waiting !== undefined || (!isRunning && nextAt <= this.#nowMs);
  }

  /** The next call of an operator ends; one without a call begins a reconcile if it is time. */
  async #call(operator: Operator, how: CallEnd): Promise<void> {
    if (!operator.isRunning && operator.nextAt <= this.#nowMs) this.#reconcile(operator);
    await turn();
    const { waiting } = operator;
    operator.waiting = undefined;
    waiting?.end(how);
    await turn();
  }

  /** A call that would take too long ends before the time passes. */
  async #wait(ms: number): Promise<void> {
    const after = this.#nowMs + ms;
    for (const operator of this.operators) {
      while (operator.waiting && after - operator.waiting.at > MAX_CALL_MS)
        await this.#call(operator, 'is answered');
    }
    this.#nowMs = after;
  }

  #crash(operator: Operator): void {
    operator.process++;
    operator.memory = NOTHING_KNOWN;
    operator.isRunning = false;
    operator.waiting = undefined;
    operator.nextAt = this.#nowMs + 15_000;
  }

  #reconcile(operator: Operator): void {
    const { process } = operator;
    operator.isRunning = true;
    const api = this.#apiOf(operator);
    const claims = new Map(operator.isClaimed ? [[NAME, claimOf(operator)]] : []);
    const done = (nextMs: number, memory = operator.memory, state?: VipServiceState) => {
      if (operator.process !== process) return;
      if (state) operator.state = `${state.status} ${state.reason}`;
      operator.isRunning = false;
      operator.memory = memory;
      operator.nextAt = this.#nowMs + Math.min(30_000, nextMs);
    };
    const now = () => new Date(START + this.#nowMs + operator.skewMs);
    const run = async () => {
      if (operator.isToSweep) {
        operator.isToSweep = false;
        await this.#sweep(operator, api, now);
      }
      const services = await api.services();
      const { memory, nextMs, states } = await coordinate(
        {
          services,
          claims,
          advertised: new Set(claims.keys()),
          api,
          before: operator.memory,
          devices: this.#devices(),
          isStale: false,
          tags: ['tag:mesh'],
        },
        {
          installation: operator.installation,
          clock: { now: () => this.#nowMs },
          now,
          random: () => Number(operator.installation[0]) / 5,
          count: () => undefined,
          log: { warn: () => undefined },
        },
      );
      done(nextMs, memory, states.get(NAME));
    };
    run().catch((error: unknown) => {
      if (!(error instanceof ControlError)) throw error;
      done(30_000);
    });
  }

  async #sweep({ installation }: Operator, api: ServicesApi, now: () => Date): Promise<void> {
    const view = { devices: this.#devices(), expected: [], isStale: false, hasServices: true };
    const sweep = sweeper({
      ...{ installation, now, record },
      tailnets: { api: () => api as ControlApi, lastView: () => view as never },
      write: { addFinalizer: () => Promise.resolve() },
    });
    const { signal } = new AbortController();
    await sweep(TAILNET, { object: 'default/edge', staleMs: undefined, tried: new Set(), signal });
  }

  #devices(): readonly Device[] {
    return this.operators
      .filter(({ hasPods }) => hasPods)
      .map(({ installation }) => ({
        ...{ id: installation, name: installation, hostname: hostnameOf(installation), addresses: [] },
        ...{ tags: ['tag:mesh'], isAuthorized: true, isOnline: true, isExternal: false, expires: undefined },
        ...{ isExpired: false, blocksIncoming: false },
      }));
  }

  /** The control API, whose calls wait until the test ends them; those of a process that has crashed never end. */
  #apiOf(operator: Operator) {
    const call = (act: () => Answer) =>
      new Promise<Answer>((resolve, reject) => {
        const { process } = operator;
        const end = (how: CallEnd) => {
          if (operator.process !== process) return;
          operator.calls++;
          try {
            if (how === 'is refused') throw new ControlError('Unavailable', '503');
            const answer = act();
            if (how === 'loses its response') throw new ControlError('Unreachable', 'reset');
            resolve(answer);
          } catch (error) {
            reject(controlErrorOf(error));
          }
        };
        operator.waiting = { end, at: this.#nowMs };
      });
    return servicesApiOn(this.state, (name, act) => {
      if (!name.startsWith('delete')) return call(act);
      return call(() => {
        const others = (this.owners() ?? []).filter(owner => owner !== operator.installation);
        if (others.length > 0)
          this.wrongDeletions.push(`${operator.installation} deletes that of ${others.join()}`);
        return act();
      });
    });
  }
}

function hostnameOf(installation: string): string {
  return `meshd-example-0-${installation}`;
}

function claimOf({ installation, strategy }: Operator): Claim {
  return {
    ...{ name: NAME, object: 'default/web', port: 443, tags: ['tag:mesh'], mayCreate: true },
    ...{
      notAdoptable: undefined,
      shareWith: ALL_INSTALLATIONS,
      kept: undefined,
      strategy,
      cluster: `cluster ${installation}`,
    },
    ...{ heartbeatMs: 300_000, staleMs: 1_800_000 },
  };
}

/** Lets everything run that waits for no call. */
async function turn(): Promise<void> {
  await new Promise(setImmediate);
}
