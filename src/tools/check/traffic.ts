import { keyOf } from '../../api/key.ts';
import type { Resource } from '../../api/objects/resource.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { isMeshBackend, refTo } from '../../api/objects/references.ts';
import { stepsOfPath } from '../../api/validation/fault.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import { ResourceStore } from '../../store/store.ts';
import { Tracking } from '../../store/tracking.ts';
import { trafficIndexes } from '../../store/traffic/resources.ts';
import { trafficValues } from '../../store/traffic/values.ts';
import type { UnusedBackend, UnusedReason } from '../../traffic/unused.ts';
import type { Catalog, Declared, Finding } from './objects.ts';

/** Returns everything that a route does not use. */
export type UnusedOf = (route: Route) => readonly UnusedBackend[];

/** Resolves objects as the processes do. */
export function unusedIn(catalog: Catalog): UnusedOf {
  const store = new ResourceStore(trafficIndexes, failure => {
    throw failure;
  });
  for (const { resource } of catalog.all()) if (resource) store.put(resource, true);
  const tracking = new Tracking(store);
  const values = trafficValues(tracking, {
    ...{ dataPath: 'Proxy', settingsFrom: 'MeshGateway', clusterEncoding: '' },
    // Files have Services, but not their EndpointSlices.
    readsBackends: catalog.has('Service') && catalog.has('EndpointSlice'),
  });
  return route => values.unused.read(keyOf(refTo(route)));
}

/** What only a status has, which objects in files need not have, or what is elsewhere if there is none of the kind. */
const NEEDS: Readonly<Partial<Record<UnusedReason, 'status' | Resource['kind']>>> = {
  BackendNotFound: 'MeshEndpoints',
  TailnetNotFound: 'MeshTailnet',
  NamespaceNotAllowed: 'Namespace',
  CertificateNotFound: 'ConfigMap',
  ProxyUnknown: 'status',
  RelayPortMissing: 'status',
  ExternalTargetNotResolved: 'status',
};

/** Finds what a route does not use, and why, where the objects are enough to decide it. */
export function checkTraffic(
  declared: Declared,
  route: Route,
  catalog: Catalog,
  unusedOf: UnusedOf,
): readonly Finding[] {
  const found = new Map<string, Finding>();
  for (const unused of unusedOf(route)) {
    const needed = NEEDS[unused.reason];
    if (needed === 'status' ? !catalog.hasStatus : needed !== undefined && !catalog.has(needed)) continue;
    if (unused.reason === 'BackendNotFound' && catalog.isInvalid(unused.object)) continue;
    const steps = stepsOfPath(unused.message.split(': ', 1)[0] ?? '');
    const message = `${unused.message}${grantFor(unused, route)}`;
    found.set(message, declared.at(steps, 'error', unused.reason, message));
  }
  return [...found.values()];
}

/** The ReferenceGrant that a reference lacks, to apply as it is. */
function grantFor({ reason, object }: UnusedBackend, route: Route): string {
  if (reason !== 'RefNotPermitted') return '';
  const [, namespace = '', name = ''] = object.split('/');
  return `

apiVersion: ${GATEWAY_GROUP}/v1beta1
kind: ReferenceGrant
metadata:
  name: ${name}
  namespace: ${namespace}
spec:
  from:
    - group: ${GATEWAY_GROUP}
      kind: ${route.kind}
      namespace: ${route.metadata.namespace ?? ''}
  to:
    - group: ${GROUP}
      kind: MeshEndpoints
      name: ${name}
`;
}

/** Whether a rule of a route sends traffic to MeshEndpoints. */
export function isMeshRoute(route: Route): boolean {
  return route.rules.some(({ backendRefs }) => backendRefs.some(isMeshBackend));
}
