import { keyOf } from '../../api/key.ts';
import type { ResourceKind } from '../../api/key.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { meshBackendsOf } from '../../api/objects/references.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import type { Problem, Steps } from '../../api/problem.ts';
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
      : catalog.has(kind) && !catalog.isInvalid(keyOf({ kind, namespace, name: target.name }))
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

/** What an object has for itself, if it is the oldest of those that name it. */
type Claim = {
  readonly declared: Declared;
  readonly resource: Claiming;
  readonly at: Steps;
  readonly what: string;
};

type Claiming = Kinds['MeshTailnet'] | Kinds['MeshGateway'] | Kinds['MeshRoutePolicy'];

/** Finds objects of which only the oldest is used: those with one domain, or with one target. */
export function checkConflicts(catalog: Catalog): readonly Finding[] {
  const groups = new Map<string, Claim[]>();
  for (const claim of catalog.all().flatMap(claimsOf)) {
    const { kind, metadata } = claim.resource;
    const id = `${kind} ${metadata.namespace ?? ''} ${claim.what}`;
    groups.set(id, [...(groups.get(id) ?? []), claim]);
  }
  return [...groups.values()].flatMap(group => {
    const oldest = oldestOf(group.map(({ resource }) => resource));
    return group.flatMap(({ declared, resource, at, what }) => {
      if (!oldest || resource === oldest) return [];
      const text = `${titleOf(oldest)} has ${what} too, and only the older one is used`;
      return [declared.at({ reason: 'Conflicted', at, text, fix: 'remove it from one of them' })];
    });
  });
}

function claimsOf(declared: Declared): readonly Claim[] {
  const { resource } = declared;
  switch (resource?.kind) {
    case 'MeshTailnet':
      return [{ declared, resource, at: ['spec', 'tailnet'], what: `the tailnet ${resource.spec.tailnet}` }];
    case 'MeshGateway':
    case 'MeshRoutePolicy':
      return resource.spec.targetRefs.map(({ kind, name, sectionName }: TargetRef, index) => {
        const what = `${sectionName === undefined ? '' : `rule ${sectionName} of `}${kind} ${name}`;
        return { declared, resource, at: ['spec', 'targetRefs', index], what };
      });
    default:
      return [];
  }
}
