import { keyOf } from '../../api/key.ts';
import type { ResourceKind } from '../../api/key.ts';
import { meshBackendsOf } from '../../api/objects/references.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import type { Problem } from '../../api/problem.ts';
import { titleOf } from './objects.ts';
import type { Catalog, Declared, Finding } from './objects.ts';

type TargetRef = { readonly kind: string; readonly name: string; readonly sectionName?: string };

/** Finds targets of MeshRoutePolicies and MeshGateways that do not exist, or have no traffic that the policy could decide. */
export function checkTargets(declared: Declared, catalog: Catalog): readonly Finding[] {
  const { resource } = declared;
  if (resource?.kind !== 'MeshRoutePolicy' && resource?.kind !== 'MeshGateway') return [];
  const { namespace = '' } = resource.metadata;
  return resource.spec.targetRefs.flatMap((target: TargetRef, index) => {
    const kind = target.kind as ResourceKind;
    const found = catalog.get(keyOf({ kind, namespace, name: target.name }));
    const problem = found
      ? resource.kind === 'MeshRoutePolicy' && found.resource
        ? problemOfRoute(target, found.resource as Route)
        : undefined
      : catalog.has(kind)
        ? {
            text: `${kind} ${namespace}/${target.name} does not exist`,
            fix: 'create it, or correct the name',
          }
        : undefined;
    if (problem === undefined) return [];
    return [declared.at({ reason: 'TargetNotFound', at: ['spec', 'targetRefs', index], ...problem })];
  });
}

function problemOfRoute({ sectionName }: TargetRef, route: Route): Pick<Problem, 'text' | 'fix'> | undefined {
  const title = titleOf(route);
  if (sectionName !== undefined && !route.rules.some(({ name }) => name === sectionName))
    return {
      text: `no rule of ${title} has the name ${sectionName}`,
      fix: 'set the name of a rule, or correct sectionName',
    };
  if (meshBackendsOf(route).length === 0)
    return { text: `no rule of ${title} has MeshEndpoints among its backends` };
  return undefined;
}
