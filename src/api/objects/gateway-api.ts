import type { ObjectMeta } from '../generated/types.ts';
import { isRecord } from '../json.ts';
import type { Fields } from '../json.ts';
import { isOverHttp } from '../key.ts';
import type { RouteKind } from '../key.ts';
import { ANCHOR } from '../names.ts';
import { backendFiltersIn } from './header-filters.ts';
import type { BackendFilters } from './header-filters.ts';
import {
  field,
  items,
  withFields,
  forms,
  optionalFields,
  optionalInteger,
  optionalPort,
  optionalText,
  port,
  present,
  text,
} from './place.ts';
import type { FieldValue } from './place.ts';
import { decodeNamespaces } from './selected-namespaces.ts';
import type { SelectedNamespaces } from './selected-namespaces.ts';

/** The API group of Gateway API. */
export const GATEWAY_GROUP = 'gateway.networking.k8s.io';

/** The fields of metadata that are kept of objects of other projects. */
export type Metadata = Pick<
  ObjectMeta,
  | 'name'
  | 'namespace'
  | 'uid'
  | 'generation'
  | 'resourceVersion'
  | 'labels'
  | 'annotations'
  | 'deletionTimestamp'
>;

/** Where a route attaches, with all defaults filled in. */
export type ParentRef = {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly sectionName?: string;
  readonly port?: number;
};

/** Where a rule sends traffic, with all defaults filled in; the group of a Service is empty. */
export type BackendRef = {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly port?: number;
  readonly weight: number;
  /** Its own filters. */
  readonly filters?: BackendFilters;
};

/** A rule of a route. */
type RouteRule = {
  readonly name?: string;
  readonly backendRefs: readonly BackendRef[];
  /** The backends of its RequestMirror filters. */
  readonly mirrors: readonly BackendRef[];
};

/** A route of any of the five kinds, in whatever version it was served, in one form. */
export type Route = {
  readonly kind: RouteKind;
  readonly apiVersion: string;
  /** The creationTimestamp is kept of TLSRoutes, TCPRoutes, UDPRoutes and anchors. */
  readonly metadata: Metadata & Pick<ObjectMeta, 'creationTimestamp'>;
  readonly hostnames: readonly string[];
  readonly parentRefs: readonly ParentRef[];
  readonly rules: readonly RouteRule[];
  /** The controller of a parent reports that a backend does not exist. */
  readonly lacksBackend?: true;
  /** The controller of a parent has reported; kept of anchors. */
  readonly isReported?: true;
};

/** A listener of a Gateway or ListenerSet. */
export type Listener = {
  readonly name: string;
  readonly port: number;
  readonly protocol: string;
  readonly hostname?: string;
  /** Its TLS is for backends to terminate. */
  readonly isPassthrough?: true;
  readonly allowedRoutes: AllowedRoutes;
};

/** Which routes may attach to a listener. */
type AllowedRoutes = {
  /** Those of Gateway API among the kinds that it names; without any, all that its protocol has. */
  readonly kinds?: readonly string[];
  readonly namespaces: SelectedNamespaces;
};

/** An object that configures the proxies of Gateways. */
type ParametersRef = {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  /** Only GatewayClasses name one. */
  readonly namespace?: string;
};

/** A Gateway. */
export type Gateway = {
  readonly kind: 'Gateway';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  readonly gatewayClassName: string;
  readonly listeners: readonly Listener[];
  /** From where ListenerSets may attach. */
  readonly allowedListeners: SelectedNamespaces;
  /** What configures its proxy, in its namespace. */
  readonly parametersRef?: ParametersRef;
};

/** Listeners of a Gateway that are in an object of their own, which may be in another namespace. */
export type ListenerSet = {
  readonly kind: 'ListenerSet';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  /** The Gateway. */
  readonly parentRef: ParentRef;
  readonly listeners: readonly Listener[];
};

/** A class of Gateways. */
export type GatewayClass = {
  readonly kind: 'GatewayClass';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  readonly controllerName: string;
  /** What configures the proxies of its Gateways. */
  readonly parametersRef?: ParametersRef;
};

/** A namespace, for its labels. */
export type Namespace = {
  readonly kind: 'Namespace';
  readonly apiVersion: string;
  readonly metadata: Metadata;
};

/** Who may refer to objects of a namespace from another. */
export type ReferenceGrant = {
  readonly kind: 'ReferenceGrant';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[];
  readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[];
};

/** The fields that every decoded object has. */
export type Header<K> = { readonly kind: K; readonly apiVersion: string; readonly metadata: Metadata };

/** Decodes a route of any kind and version. */
export function decodeRoute(header: Header<RouteKind>, object: FieldValue): Route {
  const namespace = header.metadata.namespace ?? '';
  const spec = withFields(field(object, 'spec'));
  return {
    ...header,
    hostnames: items(field(spec, 'hostnames')).map(hostname => text(hostname, forms.hostname)),
    parentRefs: items(field(spec, 'parentRefs')).map(parent => decodeParent(parent, namespace)),
    rules: decodeRules(header.kind, field(spec, 'rules'), namespace),
    ...keptReport(header, object),
  };
}

/** Envoy Gateway writes the statuses of routes often, and hardly anything depends on them. */
function keptReport({ kind, metadata }: Header<RouteKind>, object: FieldValue): Partial<Route> {
  const created = optionalText(field(field(object, 'metadata'), 'creationTimestamp'), forms.any);
  const parents = recordsIn(field(field(object, 'status'), 'parents').value);
  const lacksBackend = parents.some(parent =>
    recordsIn(parent['conditions']).some(
      ({ type, status, reason }) =>
        type === 'ResolvedRefs' && status === 'False' && reason === 'BackendNotFound',
    ),
  );
  const isAnchor = kind === 'HTTPRoute' && Object.hasOwn(metadata.labels ?? {}, ANCHOR.label);
  const isDated = isAnchor || !isOverHttp(kind);
  return {
    ...(isDated && { metadata: { ...metadata, ...present({ creationTimestamp: created }) } }),
    ...(lacksBackend && { lacksBackend }),
    ...(isAnchor && parents.length > 0 && { isReported: true }),
  };
}

function recordsIn(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function decodeParent(place: FieldValue, namespace: string): ParentRef {
  const parent = withFields(place);
  return {
    group: optionalText(field(parent, 'group'), forms.group) ?? GATEWAY_GROUP,
    kind: optionalText(field(parent, 'kind'), forms.kind) ?? 'Gateway',
    namespace: optionalText(field(parent, 'namespace'), forms.label) ?? namespace,
    name: text(field(parent, 'name'), forms.filled),
    ...present({
      sectionName: optionalText(field(parent, 'sectionName'), forms.domain),
      port: optionalPort(field(parent, 'port')),
    }),
  };
}

/** By default an HTTPRoute has one rule that matches everything and has no backends. */
function decodeRules(kind: RouteKind, rules: FieldValue, namespace: string): readonly RouteRule[] {
  if (kind === 'HTTPRoute' && rules.value === undefined) return [{ backendRefs: [], mirrors: [] }];
  const hasFilters = kind === 'HTTPRoute' || kind === 'GRPCRoute';
  return items(rules).map(place => {
    const rule = withFields(place);
    const backends = items(field(rule, 'backendRefs'));
    const mirrors = hasFilters ? mirrorsIn(rule) : [];
    return {
      ...present({ name: optionalText(field(rule, 'name'), forms.domain) }),
      backendRefs: backends.map(backend => decodeBackend(backend, namespace)),
      mirrors: mirrors.map(mirror => decodeBackend(mirror, namespace)),
    };
  });
}

/** The backends of the RequestMirror filters of a rule; Envoy Gateway supports none of a backend. */
function mirrorsIn(rule: FieldValue): readonly FieldValue[] {
  return items(field(rule, 'filters'))
    .filter(filter => field(withFields(filter), 'type').value === 'RequestMirror')
    .map(filter => field(withFields(field(filter, 'requestMirror')), 'backendRef'));
}

function decodeBackend(place: FieldValue, namespace: string): BackendRef {
  const backend = withFields(place);
  return {
    group: optionalText(field(backend, 'group'), forms.group) ?? '',
    kind: optionalText(field(backend, 'kind'), forms.kind) ?? 'Service',
    namespace: optionalText(field(backend, 'namespace'), forms.label) ?? namespace,
    name: text(field(backend, 'name'), forms.filled),
    ...present({ port: optionalPort(field(backend, 'port')) }),
    weight: optionalInteger(field(backend, 'weight'), 0, 1_000_000) ?? 1,
    ...present({ filters: backendFiltersIn(backend) }),
  };
}

/** Decodes a Gateway. */
export function decodeGateway(header: Header<'Gateway'>, object: FieldValue): Gateway {
  const spec = withFields(field(object, 'spec'));
  return {
    ...header,
    gatewayClassName: text(field(spec, 'gatewayClassName'), forms.filled),
    listeners: items(field(spec, 'listeners')).map(decodeListener),
    allowedListeners: decodeNamespaces(
      field(optionalFields(field(spec, 'allowedListeners')), 'namespaces'),
      'None',
    ),
    ...parametersIn(optionalFields(field(spec, 'infrastructure'))),
  };
}

function parametersIn(place: FieldValue): { readonly parametersRef?: ParametersRef } {
  const ref = optionalFields(field(place, 'parametersRef'));
  if (ref.value === undefined) return {};
  return {
    parametersRef: {
      group: text(field(ref, 'group'), forms.group),
      kind: text(field(ref, 'kind'), forms.kind),
      name: text(field(ref, 'name'), forms.filled),
      ...present({ namespace: optionalText(field(ref, 'namespace'), forms.label) }),
    },
  };
}

function decodeListener(place: FieldValue): Listener {
  const listener = withFields(place);
  return {
    name: text(field(listener, 'name'), forms.domain),
    port: port(field(listener, 'port')),
    protocol: text(field(listener, 'protocol'), forms.filled),
    ...present({ hostname: optionalText(field(listener, 'hostname'), forms.hostname) }),
    ...(field(field(listener, 'tls'), 'mode').value === 'Passthrough' && { isPassthrough: true }),
    allowedRoutes: decodeAllowedRoutes(optionalFields(field(listener, 'allowedRoutes'))),
  };
}

function decodeAllowedRoutes(place: FieldValue): AllowedRoutes {
  const named = items(field(place, 'kinds')).map(each => {
    const group = optionalText(field(withFields(each), 'group'), forms.group) ?? GATEWAY_GROUP;
    return { group, kind: text(field(each, 'kind'), forms.kind) };
  });
  const kinds = named.filter(({ group }) => group === GATEWAY_GROUP).map(({ kind }) => kind);
  return {
    ...(named.length > 0 && { kinds }),
    namespaces: decodeNamespaces(field(place, 'namespaces'), 'Same'),
  };
}

/** Decodes a ListenerSet. */
export function decodeListenerSet(header: Header<'ListenerSet'>, object: FieldValue): ListenerSet {
  const spec = withFields(field(object, 'spec'));
  return {
    ...header,
    parentRef: decodeParent(field(spec, 'parentRef'), header.metadata.namespace ?? ''),
    listeners: items(field(spec, 'listeners')).map(decodeListener),
  };
}

/** A class of Gateways. */
export function decodeGatewayClass(header: Header<'GatewayClass'>, object: FieldValue): GatewayClass {
  const spec = withFields(field(object, 'spec'));
  return {
    ...header,
    controllerName: text(field(spec, 'controllerName'), forms.filled),
    ...parametersIn(spec),
  };
}

/** Who may refer to objects of a namespace from another. */
export function decodeReferenceGrant(header: Header<'ReferenceGrant'>, object: FieldValue): ReferenceGrant {
  const spec = withFields(field(object, 'spec'));
  return {
    ...header,
    from: items(field(spec, 'from')).map(place => {
      const from = withFields(place);
      return {
        group: text(field(from, 'group'), forms.group),
        kind: text(field(from, 'kind'), forms.kind),
        namespace: text(field(from, 'namespace'), forms.label),
      };
    }),
    to: items(field(spec, 'to')).map(place => {
      const to = withFields(place);
      return {
        group: text(field(to, 'group'), forms.group),
        kind: text(field(to, 'kind'), forms.kind),
        ...present({ name: optionalText(field(to, 'name'), forms.filled) }),
      };
    }),
  };
}
