import {
  decodeBackendObject,
  decodeBackendTlsPolicy,
  decodeEndpointSlice,
  decodeService,
} from './backends.ts';
import { decodeConfigMap } from './config-map.ts';
import {
  decodeGateway,
  decodeGatewayClass,
  decodeListenerSet,
  decodeReferenceGrant,
  decodeRoute,
} from './gateway-api.ts';
import type { Header, Metadata } from './gateway-api.ts';
import { decodePod } from './pod.ts';
import type { Fault } from '../validation/fault.ts';
import { FOREIGN_KINDS } from './resource.ts';
import type { ForeignKind, Scope, Resource } from './resource.ts';
import { API_VERSION, GROUP, kinds } from '../generated/kinds.ts';
import type { KindName } from '../generated/kinds.ts';
import { nearest } from '../validation/nearest.ts';
import {
  field,
  refuse,
  wholeObject,
  withFields,
  forms,
  optionalInteger,
  optionalText,
  optionalTexts,
  present,
  text,
} from './place.ts';
import type { FieldValue } from './place.ts';
import { decodeEnvoyProxy, decodeTrafficPolicy } from './traffic-policy.ts';
import { validate } from '../validation/validate.ts';
import { withinLimits } from './stored.ts';

/** The result of decoding a value. */
export type Decoding =
  /** A valid object of a kind that is read. */
  | { readonly is: 'resource'; readonly resource: Resource }
  /** An invalid object of a kind that is read, or a value that is not an object, with its faults. */
  | { readonly is: 'faulty'; readonly faults: readonly Fault[] }
  /** An object of a kind that is not read. */
  | { readonly is: 'foreign'; readonly apiVersion: string; readonly kind: string };

/**
 * Decodes any JSON value as the API server would store it. A namespaced object without a namespace gets the default one.
 * Values beyond limits that earlier versions did not have are reduced to these.
 */
export function decode(value: unknown, defaultNamespace = 'default'): Decoding {
  const object = withFields(wholeObject(value));
  const apiVersion = text(field(object, 'apiVersion'), forms.filled);
  const kind = text(field(object, 'kind'), forms.kind);
  if (object.faults.length > 0) return { is: 'faulty', faults: object.faults };
  const group = apiVersion.slice(0, Math.max(0, apiVersion.lastIndexOf('/')));
  if (isOurs(group, kind)) return decodeOwn(object, kind, defaultNamespace);
  if (!isForeignKind(kind) || FOREIGN_KINDS[kind].group !== group) return { is: 'foreign', apiVersion, kind };
  return decodeForeign(kind, apiVersion, object, defaultNamespace);
}

/** One of mesh-gateway's kinds with a misspelled group counts as its own, so that the mistake is reported. */
function isOurs(group: string, kind: string): boolean {
  return group === GROUP || (isOwnKind(kind) && nearest(group, [GROUP]) !== undefined);
}

function isOwnKind(kind: string): kind is KindName {
  return Object.hasOwn(kinds, kind);
}

function isForeignKind(kind: string): kind is ForeignKind {
  return Object.hasOwn(FOREIGN_KINDS, kind);
}

function decodeOwn(object: FieldValue, kind: string, defaultNamespace: string): Decoding {
  if (!isOwnKind(kind)) {
    const meant = nearest(kind, Object.keys(kinds));
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    refuse(field(object, 'kind'), `${JSON.stringify(kind)} is not a kind of ${API_VERSION}${hint}`);
    return { is: 'faulty', faults: object.faults };
  }
  const given = validate(kind, object.value);
  const verdict = given.valid ? given : validate(kind, withinLimits(object.value));
  if (!verdict.valid) return { is: 'faulty', faults: verdict.faults };
  const metadata = placed(verdict.object.metadata, kinds[kind].scope, defaultNamespace);
  return { is: 'resource', resource: { ...verdict.object, metadata } };
}

type Placed = { readonly namespace?: string };

/** Metadata with a namespace exactly if the kind is namespaced. */
function placed<T extends Placed>({ namespace, ...rest }: T, scope: Scope, defaultNamespace: string) {
  return scope === 'Cluster' ? rest : { ...rest, namespace: namespace ?? defaultNamespace };
}

function decodeForeign(
  kind: ForeignKind,
  apiVersion: string,
  object: FieldValue,
  defaultNamespace: string,
): Decoding {
  const { versions, scope } = FOREIGN_KINDS[kind];
  if (!versions.includes(apiVersion.slice(apiVersion.lastIndexOf('/') + 1))) {
    refuse(field(object, 'apiVersion'), `has none of the versions that are read: ${versions.join(', ')}`);
  }
  const metadata = placed(decodeMetadata(object, kind), scope, defaultNamespace);
  const resource = decodeBody(kind, { apiVersion, metadata }, object);
  return object.faults.length > 0 ? { is: 'faulty', faults: object.faults } : { is: 'resource', resource };
}

function decodeMetadata(object: FieldValue, kind: ForeignKind): Metadata {
  const metadata = withFields(field(object, 'metadata'));
  return {
    name: text(field(metadata, 'name'), kind === 'Namespace' ? forms.label : forms.domain),
    ...present({
      namespace: optionalText(field(metadata, 'namespace'), forms.label),
      uid: optionalText(field(metadata, 'uid'), forms.any),
      generation: optionalInteger(field(metadata, 'generation'), 0, Number.MAX_SAFE_INTEGER),
      resourceVersion: optionalText(field(metadata, 'resourceVersion'), forms.any),
      labels: optionalTexts(field(metadata, 'labels')),
      annotations: optionalTexts(field(metadata, 'annotations')),
      deletionTimestamp: optionalText(field(metadata, 'deletionTimestamp'), forms.any),
    }),
  };
}

function decodeBody(
  kind: ForeignKind,
  header: Omit<Header<ForeignKind>, 'kind'>,
  object: FieldValue,
): Resource {
  switch (kind) {
    case 'HTTPRoute':
    case 'GRPCRoute':
    case 'TLSRoute':
    case 'TCPRoute':
    case 'UDPRoute':
      return { ...decodeRoute({ ...header, kind }, object), kind };
    case 'Gateway':
      return decodeGateway({ ...header, kind }, object);
    case 'GatewayClass':
      return decodeGatewayClass({ ...header, kind }, object);
    case 'ListenerSet':
      return decodeListenerSet({ ...header, kind }, object);
    case 'ReferenceGrant':
      return decodeReferenceGrant({ ...header, kind }, object);
    case 'Namespace':
      return { ...header, kind };
    case 'Service':
      return decodeService({ ...slim(header), kind }, object);
    case 'EndpointSlice':
      return decodeEndpointSlice({ ...slim(header), kind }, object);
    case 'Backend':
      return decodeBackendObject({ ...slim(header), kind }, object);
    case 'BackendTLSPolicy':
      return decodeBackendTlsPolicy({ ...slim(header), kind }, object);
    case 'BackendTrafficPolicy':
      return decodeTrafficPolicy({ ...slim(header), kind }, object);
    case 'EnvoyProxy':
      return decodeEnvoyProxy({ ...slim(header), kind }, object);
    case 'ConfigMap':
      return decodeConfigMap({ ...slim(header), kind }, object);
    case 'Pod':
      return decodePod({ ...header, kind }, object);
  }
}

/** These objects are many, and their labels are not used. */
function slim<T extends { readonly metadata: Metadata }>(header: T): T {
  const { labels: _labels, annotations: _annotations, ...metadata } = header.metadata;
  return { ...header, metadata };
}
