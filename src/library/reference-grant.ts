import { decode } from '../api/objects/decode.ts';
import type { Fault } from '../api/validation/fault.ts';
import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import { GROUP } from '../api/generated/kinds.ts';
import type { RouteKind } from '../api/key.ts';
import { isRecord } from '../api/json.ts';
import { AuthoringError, titleOf } from './authoring-error.ts';
import { GATEWAY_VERSION, asList, distinct } from './build.ts';
import type { Declaring } from './declared.ts';
import { frozenCopy } from './plain.ts';
import type { Metadata, OneOrMore } from './route.ts';

/** A ReferenceGrant as in YAML. */
export type ReferenceGrant = {
  readonly apiVersion: 'gateway.networking.k8s.io/v1';
  readonly kind: 'ReferenceGrant';
  readonly metadata: Metadata;
  readonly spec: {
    readonly from: readonly {
      readonly group: string;
      readonly kind: RouteKind;
      readonly namespace: string;
    }[];
    readonly to: readonly { readonly group: string; readonly kind: 'MeshEndpoints'; readonly name: string }[];
  };
};

/** All routes of a kind in a namespace, given by these or by one of the routes. */
export type RoutesOfNamespace =
  | { readonly kind: RouteKind; readonly namespace: string }
  | { readonly kind: RouteKind; readonly metadata: { readonly namespace?: string } };

/** The props of a ReferenceGrant. */
export type ReferenceGrantProps = {
  /** The namespace is that of the endpoints by default. */
  readonly metadata: Metadata;
  readonly from: OneOrMore<RoutesOfNamespace>;
  /** The MeshEndpoints, all of one namespace. */
  readonly to: OneOrMore<Pick<Declaring, 'kind' | 'metadata'>>;
};

/**
 * A ReferenceGrant that permits routes of other namespaces to refer to endpoints. As always in Gateway API, it permits all
 * routes of the same kind and namespace. Throws an AuthoringError where a namespace is not known.
 */
export function referenceGrant(props: ReferenceGrantProps): ReferenceGrant {
  const given: unknown = props;
  const { metadata, from, to, ...rest } = isRecord(given) ? given : {};
  const faults: Fault[] = Object.keys(rest).map(name => fault(name, 'is not a field here: remove it'));
  const targets = asList(to) ?? [];
  const namespaces = new Set(targets.map(namespaceIn));
  const [namespace] = namespaces;
  if (targets.length === 0) faults.push(fault('to', 'is required: give a MeshEndpoints'));
  else if (namespaces.size > 1) faults.push(fault('to', 'is in several namespaces: make a grant for each'));
  else if (namespace === undefined) faults.push(fault('to', 'has no namespace: give it metadata.namespace'));
  const object = frozenCopy(
    {
      apiVersion: GATEWAY_VERSION,
      kind: 'ReferenceGrant',
      metadata: { namespace, ...(isRecord(metadata) ? metadata : {}) },
      spec: { from: distinct((asList(from) ?? []).map(fromOf)), to: distinct(targets.map(toOf)) },
    },
    faults,
  );
  faults.push(...faultsOf(object, namespace));
  if (faults.length > 0)
    throw new AuthoringError('InvalidObject', titleOf('ReferenceGrant', metadata), faults);
  return object as ReferenceGrant;
}

function faultsOf(object: unknown, namespace: unknown): readonly Fault[] {
  const decoding = decode(object);
  if (decoding.is === 'faulty') return decoding.faults;
  if (decoding.is !== 'resource' || decoding.resource.kind !== 'ReferenceGrant') return [];
  const { from, metadata } = decoding.resource;
  const isElsewhere = typeof namespace === 'string' && metadata.namespace !== namespace;
  return [
    ...(from.length === 0 ? [fault('from', 'is required: give a route, or a kind and a namespace')] : []),
    ...(isElsewhere ? [fault('metadata.namespace', `must be ${namespace}, where the endpoints are`)] : []),
  ];
}

function namespaceIn(value: unknown): unknown {
  const { metadata } = isRecord(value) ? value : {};
  return isRecord(metadata) ? metadata['namespace'] : undefined;
}

function fromOf(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const { kind, namespace = namespaceIn(value) } = value;
  return { group: GATEWAY_GROUP, kind, namespace };
}

function toOf(value: unknown): unknown {
  const { kind, metadata } = isRecord(value) ? value : {};
  return { group: GROUP, kind, name: isRecord(metadata) ? metadata['name'] : undefined };
}

function fault(path: string, message: string): Fault {
  return { path, steps: path.split('.'), message };
}
