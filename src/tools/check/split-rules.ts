import { isRecord } from '../../api/json.ts';
import { keyOf } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { isMeshBackend, refTo } from '../../api/objects/references.ts';
import { policyFinder } from '../trace/traffic-policies.ts';
import { titleOf } from './objects.ts';
import type { Catalog, Declared, Finding } from './objects.ts';
import { attachmentResources } from './parents.ts';

/**
 * Finds BackendTrafficPolicies with which Envoy Gateway gives each backend of a rule a cluster of its own: it then sends no
 * requests to the MeshEndpoints among them.
 */
export function checkSplitRules(routes: readonly Route[], catalog: Catalog): readonly Finding[] {
  const resources = catalog.all().flatMap(({ resource }) => (resource ? [resource] : []));
  const policies = resources.flatMap(each =>
    each.kind === 'BackendTrafficPolicy' && splits(catalog.get(keyOf(refTo(each)))) ? [each] : [],
  );
  if (policies.length === 0) return [];
  const all = resources.flatMap(each => (each.kind === 'BackendTrafficPolicy' ? [each] : []));
  const grants = (namespace: string) =>
    resources.flatMap(each =>
      each.kind === 'ReferenceGrant' && each.metadata.namespace === namespace ? [each] : [],
    );
  const policiesOf = policyFinder({ ...attachmentResources(catalog), grants }, all);
  return routes.flatMap(route =>
    route.rules.flatMap(({ backendRefs }, rule) => {
      const used = backendRefs.filter(({ weight }) => weight > 0);
      if (used.length < 2 || !used.some(isMeshBackend)) return [];
      const found = policiesOf(route, rule);
      return policies
        .filter(policy => found.has(policy))
        .flatMap(policy => {
          const text = `with it Envoy Gateway sends no requests to MeshEndpoints in rules of several backends, such as spec.rules[${rule}] of ${titleOf(route)}`;
          const fix = 'remove it, or give the backends rules of their own';
          const declared = catalog.get(keyOf(refTo(policy)));
          return declared ? [declared.at({ reason: 'NotSupported', at: STEPS, text, fix })] : [];
        });
    }),
  );
}

const STEPS = ['spec', 'loadBalancer', 'zoneAware'];

/** Whether a policy prefers or weights zones, which traffic does not read. */
function splits(declared: Declared | undefined): boolean {
  const zones = STEPS.reduce<unknown>((at, step) => (isRecord(at) ? at[step] : undefined), declared?.fields);
  return isRecord(zones) && ('preferLocal' in zones || 'weightedZones' in zones);
}
