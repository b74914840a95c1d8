import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { BackendRef } from '../../api/objects/gateway-api.ts';
import { isOverHttp } from '../../api/key.ts';
import type { Ref, RouteKind } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import type { Steps } from '../../api/problem.ts';
import type { RouteBackendRef } from '../backend-refs.ts';
import { endpointsOfService, hasTlsPolicy } from '../other-backends.ts';
import type { OtherEndpoint } from '../other-backends.ts';
import { isGranted } from '../permissions.ts';
import type { TrafficResources } from '../traffic-resources.ts';
import type { UpstreamProtocol } from '../upstream-protocol.ts';
import type { PolicyProblem } from './route-policy.ts';

/*
 * The levels of a policy name backends of the rule, and Services beyond it:
 *
 *   a backend of the rule     its endpoints are in the first level that names it
 *   another Service           its pods are added to the cluster in that level, if the policy may refer to it
 *   anything else             a problem: the settings of the cluster would depend on it
 *
 * Backends of the rule that no level names are in the first level.
 */

/** The levels of a rule. */
export type Levels = {
  /** By the index of a backend in the rule; one without an entry is in the first level, 0. */
  readonly ofBackend: ReadonlyMap<number, number>;
  /** The Services beyond the rule that may be used, each once. */
  readonly beyond: readonly ServiceBeyond[];
  readonly problems: readonly PolicyProblem[];
};

/** A Service that a level names and the rule does not. */
type ServiceBeyond = {
  readonly level: number;
  /** Above those of all backends of the rule. */
  readonly index: number;
  readonly ref: BackendRef;
  readonly endpoints: readonly OtherEndpoint[];
};

type Named = { readonly level: number; readonly at: Steps; readonly ref: BackendRef };

/** Resolves the levels of a policy for a rule with these backendRefs; undefined without levels. */
export function levelsOf(
  resources: TrafficResources,
  policy: Kinds['MeshRoutePolicy'] | undefined,
  { refs, protocol }: { readonly refs: readonly RouteBackendRef[]; readonly protocol: UpstreamProtocol },
): Levels | undefined {
  const levels = policy?.spec.failover?.levels;
  const kind = refs[0]?.route.kind;
  if (!policy || !levels || !kind) return undefined;
  const namespace = policy.metadata.namespace ?? '';
  const named = levels.flatMap(({ backends }, level) =>
    backends.map((backend, at): Named => {
      const steps = ['spec', 'failover', 'levels', level, 'backends', at];
      return { level, at: steps, ref: { ...backend, namespace: backend.namespace ?? namespace, weight: 1 } };
    }),
  );
  const ofBackend = new Map<number, number>();
  const others = new Map<string, Named>();
  for (const each of named) {
    const own = refs.filter(({ ref }) => isSame(each.ref, ref));
    for (const { index } of own) if (!ofBackend.has(index)) ofBackend.set(index, each.level);
    const title = titleOfBackend(each.ref);
    if (own.length === 0 && !others.has(title)) others.set(title, each);
  }
  const beyond: ServiceBeyond[] = [];
  const problems: PolicyProblem[] = [];
  for (const each of others.values()) {
    const problem = problemOf(resources, each, { kind, about: refTo(policy), protocol });
    const endpoints = problem ? [] : endpointsOfService(resources, each.ref, transportOf(kind));
    if (problem) problems.push(problem);
    else beyond.push({ level: each.level, index: refs.length + beyond.length, ref: each.ref, endpoints });
  }
  return { ofBackend, beyond, problems };
}

/** Whether a level names a backend of the rule; without a port it names the object with all of its ports. */
function isSame(named: BackendRef, ref: BackendRef): boolean {
  const isSamePort = named.port === undefined || named.port === ref.port;
  return (
    isSamePort &&
    named.group === ref.group &&
    named.kind === ref.kind &&
    named.namespace === ref.namespace &&
    named.name === ref.name
  );
}

/** A backend as users read it, such as Service default/web:8080. */
export function titleOfBackend({ kind, namespace, name, port }: BackendRef): string {
  return `${kind} ${namespace}/${name}${port === undefined ? '' : `:${port}`}`;
}

function transportOf(kind: RouteKind): 'TCP' | 'UDP' {
  return kind === 'UDPRoute' ? 'UDP' : 'TCP';
}

type Place = {
  readonly kind: RouteKind;
  /** The policy. */
  readonly about: Ref<'MeshRoutePolicy'>;
  readonly protocol: UpstreamProtocol;
};

/** Why a backend beyond the rule cannot be used. */
function problemOf(
  resources: TrafficResources,
  { at, ref }: Named,
  { kind, about, protocol }: Place,
): PolicyProblem | undefined {
  const title = titleOfBackend(ref);
  const { namespace } = about;
  const problem = (reason: PolicyProblem['reason'], text: string, fix: string) => ({
    reason,
    about,
    at,
    text,
    fix,
  });
  if (ref.kind !== 'Service' || ref.group !== '') {
    const text = `${title} is not a backend of the rule, and only Services can be named beyond it`;
    return problem('BackendNotFound', text, 'add it to backendRefs of the route, or correct the level');
  }
  const from = { group: GROUP, kind: 'MeshRoutePolicy', namespace };
  if (!isGranted(resources, from, ref)) {
    const text = `no ReferenceGrant lets any MeshRoutePolicy of namespace ${namespace} refer to ${title}`;
    const fix = `create one in namespace ${ref.namespace}, from group ${GROUP}, kind MeshRoutePolicy, namespace ${namespace}, to group "", kind Service`;
    return problem('RefNotPermitted', text, fix);
  }
  if (!resources.readsServices) return undefined;
  const service = resources.service(serviceRef(ref));
  if (!service)
    return problem('BackendNotFound', `${title} does not exist`, 'create it, or correct name and namespace');
  const port = service.ports.find(each => each.port === ref.port && each.protocol === transportOf(kind));
  if (!port) {
    const text = `port ${ref.port} is not a ${transportOf(kind)} port of ${title}`;
    return problem('PortNotFound', text, 'use one that it has');
  }
  const tls = tlsOf(resources, ref, isOverHttp(kind) ? port.appProtocol : undefined);
  if (tls !== undefined) {
    const text = `${title} is reached in clear text, and ${tls}`;
    const fix = 'add it to backendRefs of the route, or name a Service without TLS';
    return problem('TLSNotSupported', text, fix);
  }
  const own = protocolOf(kind, protocol, port.appProtocol);
  if (own === protocol) return undefined;
  const text = `${title} needs ${own}, but Envoy uses ${protocol} for the MeshEndpoints of the rule, and one protocol for all endpoints of a rule`;
  return problem('ProtocolConflict', text, 'set appProtocol of its port, or give it a route of its own');
}

function serviceRef({ namespace, name }: BackendRef): Ref<'Service'> {
  return { kind: 'Service', namespace, name };
}

/** What gives a Service TLS, if anything does. Envoy Gateway decides by a BackendTLSPolicy alone. */
function tlsOf(
  resources: TrafficResources,
  ref: BackendRef,
  appProtocol: string | undefined,
): string | undefined {
  if (hasTlsPolicy(resources, ref)) return 'a BackendTLSPolicy targets it';
  const isTls = appProtocol !== undefined && TLS_PROTOCOLS.includes(appProtocol);
  return isTls ? `its port has appProtocol ${appProtocol}` : undefined;
}

const TLS_PROTOCOLS: readonly string[] = ['https', 'tls', 'kubernetes.io/wss'];

/** The values of appProtocol by which Envoy Gateway uses HTTP/2 without TLS. */
const HTTP2_PROTOCOLS: readonly string[] = ['kubernetes.io/h2c', 'grpc'];

/** The protocol to a Service of a route: for raw bytes it is that of the cluster. */
function protocolOf(
  kind: RouteKind,
  protocol: UpstreamProtocol,
  appProtocol: string | undefined,
): UpstreamProtocol {
  switch (kind) {
    case 'HTTPRoute':
      return appProtocol !== undefined && HTTP2_PROTOCOLS.includes(appProtocol) ? 'HTTP/2' : 'HTTP/1.1';
    case 'GRPCRoute':
      return 'HTTP/2';
    case 'TLSRoute':
    case 'TCPRoute':
    case 'UDPRoute':
      return protocol;
  }
}
