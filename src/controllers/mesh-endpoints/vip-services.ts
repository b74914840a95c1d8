import type { Kinds, VipServiceStatus } from '../../api/generated/types.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import { inSeconds } from '../../api/clock.ts';
import { isEqual } from '../../api/json.ts';
import { vipServicesIn } from '../../api/objects/endpoints.ts';
import { cutText } from '../../api/text.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

/** The registrations of VIP services. */
export type VipServices = {
  /** Undefined until this process has reconciled those of the tailnet. */
  of(tailnet: string): ServicesOfTailnet | undefined;
  /** Calls a listener with the name of a MeshTailnet at each change; returns the function that unsubscribes it. */
  subscribe(listener: (tailnet: string) => void): () => void;
};

/** The registrations of the VIP services of a tailnet. */
export type ServicesOfTailnet = {
  /** By the namespace and name of a MeshEndpoints, as in `default/web`, and the name of the service in its spec. */
  readonly states: ReadonlyMap<string, ReadonlyMap<string, VipServiceState>>;
  /** Why the services of the tailnet cannot be read or written now, so states are as they were. */
  readonly problem: { readonly reason: string; readonly message: string } | undefined;
  /** Undefined until it is known who has them: mesh pods go on as they are. */
  readonly names: ServiceNames | undefined;
};

/** Who has which names of VIP services on a tailnet, with `svc:` before them. */
export type ServiceNames = {
  /** The MeshEndpoints that has a name, as in `default/web`, and lists it. */
  readonly holders: ReadonlyMap<string, string>;
  /** The names that their holders have left; each departure has a text of its own. */
  readonly left: ReadonlyMap<string, string>;
  /** The addresses of all services of the tailnet, in canonical form. */
  readonly addresses: ReadonlySet<string>;
};

/** The registration of one VIP service. */
export type VipServiceState = Pick<VipServiceStatus, 'vipAddress' | 'owners' | 'warnings'> & {
  readonly status: NonNullable<VipServiceStatus['status']>;
  readonly reason: string;
  /** With the way out, where there is something to do. */
  readonly message: string;
};

const TYPE = 'VIPServicesReady';
const MAX_MESSAGE_LENGTH = 2048;

export type VipServicesInput = {
  readonly stored: MeshEndpoints;
  /** Undefined where none is known. */
  readonly services: ServicesOfTailnet | 'without a cluster' | undefined;
  readonly now: Date;
};

/** status.vipServices, and the condition VIPServicesReady; undefined for an object without VIP services. */
export function vipServicesOf(input: VipServicesInput) {
  const { stored, now } = input;
  const listed = vipServicesIn(stored);
  if (listed.length === 0) return undefined;
  const { namespace = '', name: object } = stored.metadata;
  const services = input.services === 'without a cluster' ? undefined : input.services;
  const states = services?.states.get(`${namespace}/${object}`);
  const before = new Map((stored.status?.vipServices ?? []).map(entry => [entry.name, entry]));
  const entries = listed.flatMap(({ name }): readonly VipServiceStatus[] => {
    const state = input.services === 'without a cluster' ? WITHOUT_CLUSTER : states?.get(name);
    const known = before.get(name);
    return state ? [entryOf(name, state, known, now)] : known ? [known] : [];
  });
  return { entries, condition: conditionOf(entries, listed.length, services) };
}

const WITHOUT_CLUSTER: VipServiceState = {
  status: 'NotSupported',
  reason: 'NotSupported',
  message: 'without a cluster no VIP services are registered',
};

function entryOf(
  name: string,
  state: VipServiceState,
  known: VipServiceStatus | undefined,
  now: Date,
): VipServiceStatus {
  const entry = { name, ...state, message: cutText(state.message, MAX_ENTRY_MESSAGE_LENGTH) };
  const { lastUpdated, ...before } = known ?? { lastUpdated: undefined };
  if (known && lastUpdated !== undefined && isEqual(before, entry)) return known;
  return { ...entry, lastUpdated: inSeconds(now) };
}

const MAX_ENTRY_MESSAGE_LENGTH = 512;

/** The order in which states are reported. */
const WORST_FIRST = ['NotSupported', 'Conflict', 'Failed', 'Pending', 'Registered'] as const;

function conditionOf(
  entries: readonly VipServiceStatus[],
  total: number,
  services: ServicesOfTailnet | undefined,
): ConditionUpdate {
  if (services?.problem) return { type: TYPE, status: 'False', ...cut(services.problem) };
  if (entries.length < total) {
    const message = 'the services of the tailnet are not read yet';
    return { type: TYPE, status: 'Unknown', reason: 'NotReconciled', message };
  }
  const unready = entries.filter(entry => !isReady(entry));
  const [worst] = WORST_FIRST.flatMap(status => unready.filter(entry => entry.status === status));
  if (!worst) {
    const [warning] = entries.flatMap(({ warnings = [] }) => warnings);
    const message = `${total} of ${total} services are registered and served${warning ? `; ${warning.message}` : ''}`;
    return { type: TYPE, status: 'True', reason: 'ServicesReady', message };
  }
  const others = unready.length - 1;
  const more = others > 0 ? ` (and ${others} more: see status.vipServices)` : '';
  const reason = worst.status === 'Registered' ? (worst.reason ?? worst.status) : worst.status;
  return {
    type: TYPE,
    status: 'False',
    ...cut({ reason, message: `${worst.name}: ${worst.message ?? ''}${more}` }),
  };
}

function isReady({ status, reason }: VipServiceStatus): boolean {
  return status === 'Registered' && reason === 'Served';
}

function cut<T extends { readonly message: string }>(update: T): T {
  return { ...update, message: cutText(update.message, MAX_MESSAGE_LENGTH) };
}
