import type { Backend, BackendTLSPolicy, EndpointSlice, Service } from './backends.ts';
import type { ConfigMap } from './config-map.ts';
import type { KindName } from '../generated/kinds.ts';
import type { Kinds } from '../generated/types.ts';
import type { Gateway, GatewayClass, ListenerSet, Namespace, ReferenceGrant, Route } from './gateway-api.ts';
import type { ResourceKind, RouteKind } from '../key.ts';
import { MESH_POD, TRUST } from '../names.ts';
import type { Pod } from './pod.ts';
import type { BackendTrafficPolicy, EnvoyProxy } from './traffic-policy.ts';
import { ENVOY_GATEWAY_GROUP } from './backends.ts';
import { GATEWAY_GROUP } from './gateway-api.ts';

/** The type of a decoded object: complete for mesh-gateway's own kinds, only the fields that are used for others. */
export type ResourceOf<K extends ResourceKind> = K extends KindName
  ? Kinds[K]
  : K extends RouteKind
    ? Route & { readonly kind: K }
    : K extends 'Gateway'
      ? Gateway
      : K extends 'GatewayClass'
        ? GatewayClass
        : K extends 'ListenerSet'
          ? ListenerSet
          : K extends 'Namespace'
            ? Namespace
            : K extends 'ReferenceGrant'
              ? ReferenceGrant
              : K extends 'Service'
                ? Service
                : K extends 'EndpointSlice'
                  ? EndpointSlice
                  : K extends 'Backend'
                    ? Backend
                    : K extends 'BackendTLSPolicy'
                      ? BackendTLSPolicy
                      : K extends 'BackendTrafficPolicy'
                        ? BackendTrafficPolicy
                        : K extends 'EnvoyProxy'
                          ? EnvoyProxy
                          : K extends 'ConfigMap'
                            ? ConfigMap
                            : K extends 'Pod'
                              ? Pod
                              : never;

/** Any decoded object. */
export type Resource = { [K in ResourceKind]: ResourceOf<K> }[ResourceKind];

/** The kinds of other projects that are read. */
export type ForeignKind = Exclude<ResourceKind, KindName>;

/** The scope of a kind. */
export type Scope = 'Namespaced' | 'Cluster';

/** What the API of another project calls a kind; the core group is empty. */
type ForeignIdentity = {
  readonly group: string;
  /** The versions that are read, the preferred one first; the fields that are read are the same in all. */
  readonly versions: readonly string[];
  readonly plural: string;
  readonly scope: Scope;
};

function gatewayKind(
  plural: string,
  olderVersions: readonly string[],
  scope: Scope = 'Namespaced',
): ForeignIdentity {
  return { group: GATEWAY_GROUP, versions: ['v1', ...olderVersions], plural, scope };
}

function coreKind(plural: string, scope: Scope = 'Namespaced'): ForeignIdentity {
  return { group: '', versions: ['v1'], plural, scope };
}

function envoyGatewayKind(plural: string): ForeignIdentity {
  return { group: ENVOY_GATEWAY_GROUP, versions: ['v1alpha1'], plural, scope: 'Namespaced' };
}

/** The kinds of other projects by their names. */
export const FOREIGN_KINDS: Readonly<Record<ForeignKind, ForeignIdentity>> = {
  HTTPRoute: gatewayKind('httproutes', ['v1beta1']),
  GRPCRoute: gatewayKind('grpcroutes', ['v1alpha2']),
  TLSRoute: gatewayKind('tlsroutes', ['v1alpha3', 'v1alpha2']),
  TCPRoute: gatewayKind('tcproutes', ['v1alpha2']),
  UDPRoute: gatewayKind('udproutes', ['v1alpha2']),
  Gateway: gatewayKind('gateways', ['v1beta1']),
  GatewayClass: gatewayKind('gatewayclasses', ['v1beta1'], 'Cluster'),
  ListenerSet: gatewayKind('listenersets', []),
  ReferenceGrant: gatewayKind('referencegrants', ['v1beta1']),
  BackendTLSPolicy: gatewayKind('backendtlspolicies', ['v1alpha3']),
  Service: coreKind('services'),
  EndpointSlice: {
    group: 'discovery.k8s.io',
    versions: ['v1'],
    plural: 'endpointslices',
    scope: 'Namespaced',
  },
  Backend: envoyGatewayKind('backends'),
  BackendTrafficPolicy: envoyGatewayKind('backendtrafficpolicies'),
  EnvoyProxy: envoyGatewayKind('envoyproxies'),
  ConfigMap: coreKind('configmaps'),
  Namespace: coreKind('namespaces', 'Cluster'),
  Pod: coreKind('pods'),
};

/** Of these kinds only some objects are read, all of them in the namespace of mesh-gateway. */
export const SELECTIONS: Readonly<Partial<Record<ResourceKind, Selection>>> = {
  Pod: { labels: MESH_POD.labels },
  ConfigMap: { name: TRUST.configMap },
};

type Selection = { readonly name: string } | { readonly labels: Readonly<Record<string, string>> };

/** Whether objects of a kind are declared in files; those of the others are only in a cluster. */
export function isDeclaredKind(kind: string): boolean {
  return kind !== 'Pod';
}
