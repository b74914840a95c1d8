import { GROUP } from '../../api/generated/kinds.ts';
import { keyOf } from '../../api/key.ts';
import type { Key, Ref, ResourceKind } from '../../api/key.ts';
import { ENVOY_GATEWAY_GROUP } from '../../api/objects/backends.ts';
import type { Backend, Service } from '../../api/objects/backends.ts';
import type { BackendRef, Route } from '../../api/objects/gateway-api.ts';
import { titleOfSubject } from '../../api/problem.ts';
import type { Problem, Subject } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import type { OwnersOfListeners } from './listeners.ts';
import type { ReadObjects } from '../../store/resources.ts';

/** How much of what exists the objects are. */
export type KnownObjects = {
  /** Whether those of a kind have the status that the operator writes. */
  readonly hasStatus: (kind: 'MeshTailnet' | 'MeshEndpoints') => boolean;
  /** Whether those of a kind are all. */
  readonly has: (kind: ResourceKind) => boolean;
  /** Whether an object is there, but is not valid. */
  readonly isInvalid: (key: Key) => boolean;
  /** The object that is there but is not valid, and that may be what a problem with a MeshEndpoints misses. */
  readonly invalidFor: (reason: Reason, object: Key) => Subject | undefined;
  /** Whether an object finds devices whose ports and protocols their tags decide, and none is known yet. */
  readonly hasUnknownEndpoints: (key: Key) => boolean;
  readonly service: (ref: Ref<'Service'>) => Service | undefined;
  readonly backend: (ref: Ref<'Backend'>) => Backend | undefined;
  readonly ownersOfListeners: () => OwnersOfListeners;
  /** What is wrong with parentRefs of a route that attach it to nothing. */
  readonly parentProblems: (route: Route) => readonly Problem[];
};

const NO_OWNERS: OwnersOfListeners = new Map();

/** That a store has all objects, with their status. */
export function everythingIn(read: ReadObjects): KnownObjects {
  return {
    hasStatus: () => true,
    has: () => true,
    isInvalid: () => false,
    invalidFor: () => undefined,
    hasUnknownEndpoints: () => false,
    service: ref => read.get(ref),
    backend: ref => read.get(ref),
    ownersOfListeners: () => NO_OWNERS,
    parentProblems: () => [],
  };
}

/** What is elsewhere if there is none of the kind, or what only a status has, which objects in files need not have. */
const NEEDS: Readonly<Partial<Record<Reason, ResourceKind>>> = {
  BackendNotFound: 'MeshEndpoints',
  TailnetNotFound: 'MeshTailnet',
  NamespaceNotAllowed: 'Namespace',
  CertificateNotFound: 'ConfigMap',
  ServiceInRule: 'EnvoyProxy',
};

const NEEDS_STATUS: Readonly<Partial<Record<Reason, 'MeshTailnet' | 'MeshEndpoints'>>> = {
  ProxyUnknown: 'MeshTailnet',
  RelayPortMissing: 'MeshEndpoints',
  ExternalTargetNotResolved: 'MeshEndpoints',
};

/** What an object that is not valid may be the cause of. */
export const OF_INVALID: Readonly<Partial<Record<Reason, ResourceKind>>> = {
  BackendNotFound: 'MeshEndpoints',
  TailnetNotFound: 'MeshTailnet',
  RefNotPermitted: 'ReferenceGrant',
  NamespaceNotAllowed: 'Namespace',
  CertificateNotFound: 'ConfigMap',
};

const ELSEWHERE: readonly Reason[] = ['PortNotFound', 'RefNotPermitted', 'Invalid'];

/** Whether what is not decided depends on objects, or devices, that are elsewhere. */
export function isElsewhere({ reason }: Problem): boolean {
  return NEEDS[reason] !== undefined || ELSEWHERE.includes(reason);
}

/** Whether the objects are enough to decide that something is wrong. */
export function isDecided(problem: Problem & { readonly object?: Key }, known: KnownObjects): boolean {
  const { reason, object } = problem;
  const [kind, status] = [NEEDS[reason], NEEDS_STATUS[reason]];
  if ((kind && !known.has(kind)) || (status && !known.hasStatus(status))) return false;
  if (object === undefined) return true;
  if (reason === 'PortNotFound') return !known.hasUnknownEndpoints(object);
  return known.invalidFor(reason, object) === undefined;
}

/** What is not decided; where an object that is not valid is the cause, that it is. */
export function undecided(problem: Problem & { readonly object?: Key }, known: KnownObjects): Problem {
  const invalid = problem.object && known.invalidFor(problem.reason, problem.object);
  if (!invalid) return problem;
  const text = `${titleOfSubject(invalid)} is not valid`;
  return { ...problem, reason: 'Invalid', text, fix: 'correct it first' };
}

/** Why a Service or Backend does not get the requests of a reference, as far as is known. */
export function otherBackendProblem(ref: BackendRef, known: KnownObjects): Problem | undefined {
  const { group, kind, namespace, name, port } = ref;
  const title = `${kind} ${namespace}/${name}`;
  if (group === GROUP && kind !== 'MeshEndpoints')
    return { reason: 'UnknownKind', text: `${title} is of no kind of ${GROUP}`, fix: 'write MeshEndpoints' };
  if (group === '' && kind === 'MeshEndpoints')
    return { reason: 'GroupMissing', text: `${title} has no group`, fix: `add group: ${GROUP}` };
  const missing: Problem = {
    reason: 'BackendNotFound',
    text: `${title} does not exist`,
    fix: 'create it, or correct the reference',
  };
  const isMissing = (of: Ref) => known.has(of.kind) && !known.isInvalid(keyOf(of));
  if (group === ENVOY_GATEWAY_GROUP && kind === 'Backend') {
    const of = { kind, namespace, name } as const;
    return !known.backend(of) && isMissing(of) ? missing : undefined;
  }
  if (group !== '' || kind !== 'Service' || !known.has('Service')) return undefined;
  const service = known.service({ kind, namespace, name });
  if (!service) return isMissing({ kind, namespace, name }) ? missing : undefined;
  const ports = service.ports.map(each => each.port);
  if (port === undefined || ports.includes(port)) return undefined;
  const fix = `use one that it has (${ports.join(', ') || 'none'})`;
  return { reason: 'PortNotFound', text: `port ${port} is not a port of ${title}`, fix };
}
