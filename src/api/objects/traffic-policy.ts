import type { LabelSelector, ObjectMeta } from '../generated/types.ts';
import { GATEWAY_GROUP } from './gateway-api.ts';
import type { Header, Metadata } from './gateway-api.ts';
import { decodeSelector } from './label-selector.ts';
import { field, forms, items, optionalFields, optionalText, present, text, withFields } from './place.ts';
import type { FieldValue } from './place.ts';
import { decodeNamespaces } from './selected-namespaces.ts';
import type { SelectedNamespaces } from './selected-namespaces.ts';

/** Where a BackendTrafficPolicy of Envoy Gateway applies, and those of its settings that are read. */
export type BackendTrafficPolicy = {
  readonly kind: 'BackendTrafficPolicy';
  readonly apiVersion: string;
  readonly metadata: Metadata & Pick<ObjectMeta, 'creationTimestamp'>;
  /** Objects in its namespace. */
  readonly targetRefs: readonly PolicyTargetRef[];
  readonly targetSelectors: readonly PolicyTargetSelector[];
  /** Whether a policy of the listener or Gateway sets what it does not. */
  readonly isMerged: boolean;
  /** By `loadBalancer.zoneAware`. */
  readonly prefersZones?: true;
} & RoutingType;

/** How Envoy reaches Services: by the addresses of their endpoints (`Endpoint`), or by their own (`Service`). */
type RoutingType = { readonly routingType?: string };

/** The settings of an EnvoyProxy of Envoy Gateway that are read. */
export type EnvoyProxy = {
  readonly kind: 'EnvoyProxy';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  /** Whether the EnvoyProxy of the GatewayClass sets what it does not. */
  readonly isMerged: boolean;
} & RoutingType;

type PolicyTargetRef = {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  /** A rule of a route, or a listener of a Gateway. */
  readonly sectionName?: string;
};

/** Selects objects of a kind by their labels. */
export type PolicyTargetSelector = LabelSelector & {
  readonly group: string;
  readonly kind: string;
  readonly namespaces: SelectedNamespaces;
};

/** Decodes a BackendTrafficPolicy. */
export function decodeTrafficPolicy(
  header: Header<'BackendTrafficPolicy'>,
  object: FieldValue,
): BackendTrafficPolicy {
  const spec = withFields(field(object, 'spec'));
  const single = field(spec, 'targetRef');
  const created = optionalText(field(field(object, 'metadata'), 'creationTimestamp'), forms.any);
  return {
    ...header,
    metadata: { ...header.metadata, ...present({ creationTimestamp: created }) },
    targetRefs: [...(single.value === undefined ? [] : [single]), ...items(field(spec, 'targetRefs'))].map(
      decodeRef,
    ),
    targetSelectors: items(field(spec, 'targetSelectors')).map(decodeTargetSelector),
    isMerged: optionalText(field(spec, 'mergeType'), forms.filled) !== undefined,
    ...(prefersZones(optionalFields(field(spec, 'loadBalancer'))) && { prefersZones: true }),
    ...routingTypeIn(spec),
  };
}

function prefersZones(loadBalancer: FieldValue): boolean {
  const zoneAware = optionalFields(field(loadBalancer, 'zoneAware'));
  return (
    field(zoneAware, 'preferLocal').value !== undefined || items(field(zoneAware, 'weightedZones')).length > 0
  );
}

function routingTypeIn(spec: FieldValue): RoutingType {
  return present({ routingType: optionalText(field(spec, 'routingType'), forms.filled) });
}

/** Decodes an EnvoyProxy. */
export function decodeEnvoyProxy(header: Header<'EnvoyProxy'>, object: FieldValue): EnvoyProxy {
  const spec = optionalFields(field(object, 'spec'));
  const mergeType = optionalText(field(spec, 'mergeType'), forms.filled);
  return {
    ...header,
    isMerged: mergeType !== undefined && mergeType !== 'Replace',
    ...routingTypeIn(spec),
  };
}

function decodeRef(place: FieldValue): PolicyTargetRef {
  const ref = withFields(place);
  return {
    group: optionalText(field(ref, 'group'), forms.group) ?? GATEWAY_GROUP,
    kind: text(field(ref, 'kind'), forms.kind),
    name: text(field(ref, 'name'), forms.filled),
    ...present({ sectionName: optionalText(field(ref, 'sectionName'), forms.domain) }),
  };
}

function decodeTargetSelector(place: FieldValue): PolicyTargetSelector {
  const selector = withFields(place);
  return {
    group: optionalText(field(selector, 'group'), forms.group) ?? GATEWAY_GROUP,
    kind: text(field(selector, 'kind'), forms.kind),
    ...decodeSelector(selector),
    namespaces: decodeNamespaces(field(selector, 'namespaces'), 'Same'),
  };
}
