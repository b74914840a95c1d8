import type { Kinds, VipServiceStatus } from '../../api/generated/types.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import { inSeconds } from '../../api/clock.ts';
import { isEqual } from '../../api/json.ts';
import { vipServicesIn } from '../../api/objects/endpoints.ts';
import { fullServiceName } from '../../api/served-services.ts';
import { placeOf } from '../../api/objects/oldest.ts';
import { shareOfNames } from '../../api/shares.ts';
import { cutText } from '../../api/text.ts';
import { present } from '../../api/objects/place.ts';
import { conditionOf, formatProblem } from '../../api/problem.ts';
import type { ProblemAt } from '../../api/problem.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type NotReady = ProblemAt<'MeshEndpoints VIPServicesReady'>;
type EntryProblem = ProblemAt<'MeshEndpoints status.vipServices'>;

/** The registrations of VIP services. */
export type VipServices = {
  /** Undefined until this process has reconciled those of the tailnet. */
  of(tailnet: string): ServicesOfTailnet | undefined;
  /** Calls a listener with the name of a MeshTailnet at each change; returns the function that unsubscribes it. */
  subscribe(listener: (tailnet: string) => void): () => void;
};

/** The registrations of the VIP services of a tailnet. */
export type ServicesOfTailnet = {
  /** By the namespace and name of the MeshEndpoints that has it, as in `default/web`, and the name of the service in its spec. */
  readonly states: ReadonlyMap<string, ReadonlyMap<string, VipServiceState>>;
  /** What all services are, whoever has them; undefined where they differ. */
  readonly all: VipServiceState | undefined;
  /** Why the services of the tailnet cannot be read or written now, so states are as they were. */
  readonly problem: NotReady | undefined;
  /** Undefined until it is known who has them: mesh pods go on as they are. */
  readonly names: ServiceNames | undefined;
};

/** Who has which names of VIP services on a tailnet, with `svc:` before them. */
export type ServiceNames = {
  /** The MeshEndpoints that has a name, as in `default/web`, and lists it. */
  readonly holders: ReadonlyMap<string, string>;
  /** The same for all names that objects have, also those that are left or not registered. */
  readonly held: ReadonlyMap<string, string>;
  /** The names that their holders have left; each departure has a text of its own. */
  readonly left: ReadonlyMap<string, string>;
  /** The namespaces that can have no more names: all of them where the tailnet can have none. */
  readonly full: ReadonlySet<string> | 'all';
  /** How many names a tailnet may have; a namespace may have an eighth of them. */
  readonly maxVipServices: number;
  /** The addresses of all services of the tailnet, in canonical form. */
  readonly addresses: ReadonlySet<string>;
};

/** The registration of one VIP service. */
export type VipServiceState = EntryProblem &
  Pick<VipServiceStatus, 'vipAddress' | 'owners'> & {
    readonly status: NonNullable<VipServiceStatus['status']>;
    readonly warnings?: readonly EntryProblem[];
  };

export type VipServicesInput = {
  readonly stored: MeshEndpoints;
  /** Undefined where none is known. */
  readonly services: ServicesOfTailnet | 'without a cluster' | undefined;
  /** Whether the MeshTailnet allows the namespace of the object. */
  readonly isAllowed: boolean;
  readonly now: Date;
};

/** status.vipServices, and the condition VIPServicesReady; undefined for an object without VIP services. */
export function vipServicesOf(input: VipServicesInput) {
  const { stored, now, isAllowed } = input;
  const listed = vipServicesIn(stored);
  if (listed.length === 0) return undefined;
  const services = input.services === 'without a cluster' ? undefined : input.services;
  const states = services?.states.get(placeOf(stored));
  const stateOf = (name: string): VipServiceState | undefined => {
    if (!services) return undefined;
    if (services.all) return services.all;
    if (!isAllowed) return NOT_ALLOWED;
    const { names } = services;
    const other = names && heldByOther(fullServiceName(name), stored, names);
    return other ?? states?.get(name) ?? repeated(name, states);
  };
  const before = new Map((stored.status?.vipServices ?? []).map(entry => [entry.name, entry]));
  const entries = listed.flatMap(({ name }): readonly VipServiceStatus[] => {
    const state = input.services === 'without a cluster' ? WITHOUT_CLUSTER : stateOf(name);
    const known = before.get(name);
    return state ? [entryOf(name, state, known, now)] : known ? [known] : [];
  });
  return { entries, condition: readyOf(entries, listed.length, services) };
}

const WITHOUT_CLUSTER: VipServiceState = {
  status: 'NotSupported',
  reason: 'NotSupported',
  text: 'without a cluster no VIP services are registered',
};

const NOT_ALLOWED: VipServiceState = {
  status: 'Failed',
  reason: 'NamespaceNotAllowed',
  text: 'the MeshTailnet does not allow this namespace',
  fix: 'see the condition Ready',
};

/** Why an object does not have a service; undefined where it has, or where that is not decided yet. */
function heldByOther(
  name: string,
  lister: MeshEndpoints,
  { held, left, full, maxVipServices }: ServiceNames,
): VipServiceState | undefined {
  const holder = held.get(name);
  if (holder === placeOf(lister)) return undefined;
  if (holder === undefined) {
    if (full !== 'all' && !full.has(lister.metadata.namespace ?? '')) return undefined;
    const text = `the namespace has ${shareOfNames(maxVipServices)} VIP services on this tailnet already, or all namespaces have ${maxVipServices}`;
    const fix = 'remove others, or raise MAX_VIP_SERVICES of the operator';
    return { status: 'Failed', reason: 'TooManyServices', text, fix };
  }
  const leftAt = left.get(name)?.split(' ')[1];
  const why = leftAt
    ? {
        text: `MeshEndpoints ${holder} had service ${name} until ${leftAt}, and keeps it until no mesh pod serves it, and for 10 minutes if it was deleted`,
        fix: 'wait, or use another name',
      }
    : {
        text: `MeshEndpoints ${holder} lists service ${name} and has it`,
        fix: 'use another name, or remove it there',
      };
  return { status: 'Conflict', reason: 'ListedByOther', ...why };
}

/** A service that is listed with `svc:` and without it: the first has it. */
function repeated(
  listed: string,
  states: ReadonlyMap<string, VipServiceState> | undefined,
): VipServiceState | undefined {
  const name = fullServiceName(listed);
  const other = listed === name ? name.slice('svc:'.length) : name;
  if (!states?.has(other)) return undefined;
  const text = `the object lists service ${name} twice`;
  return { status: 'Conflict', reason: 'ListedByOther', text, fix: 'remove one of them' };
}

function entryOf(
  name: string,
  { status, vipAddress, owners, warnings = [], ...problem }: VipServiceState,
  known: VipServiceStatus | undefined,
  now: Date,
): VipServiceStatus {
  const entry = {
    name,
    status,
    ...shown(problem),
    ...present({ vipAddress }),
    ...(owners && { owners }),
    ...(warnings.length > 0 && { warnings: warnings.slice(0, MAX_WARNINGS).map(shown) }),
  };
  const { lastUpdated, ...before } = known ?? { lastUpdated: undefined };
  if (known && lastUpdated !== undefined && isEqual(before, entry)) return known;
  return { ...entry, lastUpdated: inSeconds(now) };
}

/** As in the schema. */
const [MAX_WARNINGS, MAX_ENTRY_MESSAGE_LENGTH] = [8, 512];

function shown(problem: EntryProblem) {
  return { reason: problem.reason, message: cutText(formatProblem(problem), MAX_ENTRY_MESSAGE_LENGTH) };
}

/** The order in which states are reported. */
const WORST_FIRST = ['NotSupported', 'Conflict', 'Failed', 'Pending', 'Registered'] as const;

function readyOf(
  entries: readonly VipServiceStatus[],
  total: number,
  services: ServicesOfTailnet | undefined,
): ConditionUpdate {
  const [warning] = entries.flatMap(({ warnings = [] }) => warnings);
  const message = `${total} of ${total} services are registered and served${warning ? `; ${warning.message}` : ''}`;
  const problem = services?.problem ?? (entries.length < total ? NOT_RECONCILED : worstOf(entries));
  return conditionOf('MeshEndpoints VIPServicesReady', [problem], { reason: 'ServicesReady', message });
}

const NOT_RECONCILED: NotReady = {
  reason: 'NotReconciled',
  text: 'the services of the tailnet are not read yet',
};

function worstOf(entries: readonly VipServiceStatus[]): NotReady | undefined {
  const unready = entries.filter(entry => !isReady(entry));
  const [worst] = WORST_FIRST.flatMap(status => unready.filter(entry => entry.status === status));
  if (!worst) return undefined;
  const others = unready.length - 1;
  const more = others > 0 ? ` (and ${others} more: see status.vipServices)` : '';
  const { name, status, message = '' } = worst;
  const reason = status === 'Registered' ? 'NotServed' : status;
  return { reason, text: `${name}: ${message}${more}` };
}

function isReady({ status, reason }: VipServiceStatus): boolean {
  return status === 'Registered' && reason === 'Served';
}
