import type { ResourceKind } from '../../api/key.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import type { Problem, Steps } from '../../api/problem.ts';
import { policyProblems, unappliedProblems } from '../../traffic/policy/targets.ts';
import type { ResolvedTarget } from '../../traffic/policy/targets.ts';
import { titleOf } from './objects.ts';
import type { Catalog, Declared, Finding } from './objects.ts';
import type { trafficIn } from './traffic.ts';

type TargetRef = { readonly kind: string; readonly name: string };

/** Finds targets of MeshRoutePolicies and MeshGateways that do not exist, or have no traffic that the policy could decide. */
export function checkTargets(
  declared: Declared,
  catalog: Catalog,
  targetsOf: ReturnType<typeof trafficIn>['targetsOf'],
): readonly Finding[] {
  const { resource } = declared;
  if (resource?.kind === 'MeshRoutePolicy')
    return targetsOf(resource).flatMap((each, index) =>
      [...unappliedProblems(resource, each), ...unused(resource, each)]
        .filter(
          ({ reason }) => reason !== 'TargetNotFound' || each.missing === 'rule' || isMissing(each.target),
        )
        .map(problem => declared.at({ ...problem, at: ['spec', 'targetRefs', index] })),
    );
  if (resource?.kind !== 'MeshGateway') return [];
  return resource.spec.targetRefs.flatMap((target, index) => {
    if (!isMissing(target)) return [];
    const text = `${target.kind} ${resource.metadata.namespace ?? ''}/${target.name} does not exist`;
    const fix = 'create it, or correct the name';
    return [declared.at({ reason: 'TargetNotFound', at: ['spec', 'targetRefs', index], text, fix })];
  });

  /** Those of a kind that is in no file may be elsewhere. */
  function isMissing({ kind, name }: TargetRef): boolean {
    return catalog.lacks({ kind: kind as ResourceKind, namespace: resource?.metadata.namespace ?? '', name });
  }
}

/** That a target has no MeshEndpoints: those of its rules are found with the routes. */
function unused(policy: Kinds['MeshRoutePolicy'], target: ResolvedTarget): readonly Problem[] {
  return target.rules?.length === 0 ? policyProblems(policy, target) : [];
}

/** What an object has for itself, if it is the oldest of those that name it. */
type Claim = {
  readonly declared: Declared;
  readonly resource: Claiming;
  readonly at: Steps;
  readonly what: string;
};

type Claiming = Kinds['MeshTailnet'] | Kinds['MeshGateway'];

/** Finds MeshTailnets with one domain, and MeshGateways with one target: only the oldest is used. */
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
      const reason = resource.kind === 'MeshTailnet' ? 'Conflict' : 'Conflicted';
      return [declared.at({ reason, at, text, fix: 'remove it from one of them' })];
    });
  });
}

function claimsOf(declared: Declared): readonly Claim[] {
  const { resource } = declared;
  switch (resource?.kind) {
    case 'MeshTailnet':
      return [{ declared, resource, at: ['spec', 'tailnet'], what: `the tailnet ${resource.spec.tailnet}` }];
    case 'MeshGateway':
      return resource.spec.targetRefs.map(({ kind, name }, index) => {
        return { declared, resource, at: ['spec', 'targetRefs', index], what: `${kind} ${name}` };
      });
    default:
      return [];
  }
}
