import type { Header, Metadata } from './gateway-api.ts';
import { field, items, withFields, forms, optionalPort, optionalText, port, present, text } from './place.ts';
import type { FieldValue } from './place.ts';
import { isRecord } from '../json.ts';

/** The API group of Envoy Gateway's own kinds. */
export const ENVOY_GATEWAY_GROUP = 'gateway.envoyproxy.io';

/** A port of a Service or of an EndpointSlice; a nameless one has an empty name. */
type NamedPort = { readonly name: string; readonly protocol: string; readonly port?: number };

/** A port of a Service. */
type ServicePort = NamedPort & { readonly appProtocol?: string };

/** The fields of a Service that routes need. */
export type Service = {
  readonly kind: 'Service';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  readonly ports: readonly ServicePort[];
  /** It has no address of its own. */
  readonly isHeadless?: true;
  /** Whether its clients prefer endpoints in their own zone. */
  readonly prefersZone?: true;
};

/** Some addresses of a Service. */
export type EndpointSlice = {
  readonly kind: 'EndpointSlice';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  /** The name of the Service in the same namespace; empty if there is none. */
  readonly service: string;
  readonly addressType: string;
  readonly ports: readonly NamedPort[];
  readonly endpoints: readonly SliceEndpoint[];
};

/** One endpoint of an EndpointSlice. */
type SliceEndpoint = {
  readonly addresses: readonly string[];
  /** Terminating or not ready: it gets no new traffic. */
  readonly isDraining: boolean;
};

/** The fields of Envoy Gateway's Backend whose endpoints can be served. */
export type Backend = {
  readonly kind: 'Backend';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  /** The endpoints that are IP addresses. */
  readonly endpoints: readonly { readonly address: string; readonly port: number }[];
  /** Whether others have host names, so that Envoy Gateway makes a cluster that resolves them. */
  readonly hasHostNames?: true;
  /** Whether it is used only while no other backend is healthy. */
  readonly isFallback: boolean;
};

/** Which backends in its namespace a BackendTLSPolicy is about; what it sets is not read. */
export type BackendTLSPolicy = {
  readonly kind: 'BackendTLSPolicy';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  readonly targetRefs: readonly { readonly group: string; readonly kind: string; readonly name: string }[];
};

/** A Service with its ports. */
export function decodeService(header: Header<'Service'>, object: FieldValue): Service {
  const spec = field(object, 'spec');
  const ports = field(spec, 'ports');
  const appProtocols = items(ports).map(place => optionalText(field(place, 'appProtocol'), forms.any));
  return {
    ...header,
    ports: decodePorts(ports).map((each, index) => ({
      ...each,
      ...present({ appProtocol: appProtocols[index] }),
    })),
    ...(field(spec, 'clusterIP').value === 'None' && { isHeadless: true }),
    ...(prefersZone(object) && { prefersZone: true }),
  };
}

/** As Envoy Gateway decides it. */
function prefersZone(object: FieldValue): boolean {
  const annotations = field(field(object, 'metadata'), 'annotations');
  const mode = field(annotations, 'service.kubernetes.io/topology-mode').value;
  const distribution = field(field(object, 'spec'), 'trafficDistribution').value;
  return typeof distribution === 'string' || mode === 'Auto' || mode === 'auto';
}

/** An EndpointSlice, reduced to the fields that reach Envoy: there are many, and they change often. */
export function decodeEndpointSlice(header: Header<'EndpointSlice'>, object: FieldValue): EndpointSlice {
  const labels = field(field(object, 'metadata'), 'labels');
  return {
    ...header,
    service: optionalText(field(labels, 'kubernetes.io/service-name'), forms.any) ?? '',
    addressType: text(field(object, 'addressType'), forms.filled),
    ports: decodePorts(field(object, 'ports')),
    endpoints: items(field(object, 'endpoints')).map(place => ({
      addresses: items(field(place, 'addresses')).map(address => text(address, forms.filled)),
      isDraining: isDraining(field(place, 'conditions').value),
    })),
  };
}

function decodePorts(ports: FieldValue): readonly NamedPort[] {
  return items(ports).map(place => ({
    name: optionalText(field(place, 'name'), forms.any) ?? '',
    protocol: optionalText(field(place, 'protocol'), forms.any) ?? 'TCP',
    ...present({ port: optionalPort(field(place, 'port')) }),
  }));
}

/** As Envoy Gateway decides it: without the conditions serving and terminating, readiness decides. */
function isDraining(conditions: unknown): boolean {
  const { ready, serving, terminating } = isRecord(conditions) ? conditions : {};
  const isSaid = typeof serving === 'boolean' && typeof terminating === 'boolean';
  return isSaid ? terminating || !serving : ready === false;
}

/** A Backend with those of its endpoints that are IP addresses. */
export function decodeBackendObject(header: Header<'Backend'>, object: FieldValue): Backend {
  const spec = withFields(field(object, 'spec'));
  const endpoints = items(field(spec, 'endpoints'));
  const addresses = endpoints.map(place => field(place, 'ip')).filter(({ value }) => value !== undefined);
  return {
    ...header,
    endpoints: addresses.map(ip => ({
      address: text(field(ip, 'address'), forms.filled),
      port: port(field(ip, 'port')),
    })),
    ...(endpoints.some(place => field(place, 'fqdn').value !== undefined) && { hasHostNames: true }),
    isFallback: field(spec, 'fallback').value === true,
  };
}

/** Decodes a BackendTLSPolicy. */
export function decodeBackendTlsPolicy(
  header: Header<'BackendTLSPolicy'>,
  object: FieldValue,
): BackendTLSPolicy {
  const targets = items(field(withFields(field(object, 'spec')), 'targetRefs'));
  return {
    ...header,
    targetRefs: targets.map(withFields).map(target => ({
      group: text(field(target, 'group'), forms.group),
      kind: text(field(target, 'kind'), forms.kind),
      name: text(field(target, 'name'), forms.filled),
    })),
  };
}
