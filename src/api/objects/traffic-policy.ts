import type { LabelSelector, ObjectMeta } from '../generated/types.ts';
import { GATEWAY_GROUP } from './gateway-api.ts';
import type { Header, Metadata } from './gateway-api.ts';
import { field, forms, items, optionalText, present, text, withFields } from './place.ts';
import type { FieldValue } from './place.ts';
import { decodeNamespaces, decodeSelector } from './selected-namespaces.ts';
import type { SelectedNamespaces } from './selected-namespaces.ts';

/** What decides where a BackendTrafficPolicy of Envoy Gateway applies; what it sets is not read. */
export type BackendTrafficPolicy = {
  readonly kind: 'BackendTrafficPolicy';
  readonly apiVersion: string;
  readonly metadata: Metadata & Pick<ObjectMeta, 'creationTimestamp'>;
  /** Objects in its namespace. */
  readonly targetRefs: readonly PolicyTargetRef[];
  readonly targetSelectors: readonly PolicyTargetSelector[];
  /** Whether a policy of the listener or Gateway sets what it does not. */
  readonly isMerged: boolean;
};

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
