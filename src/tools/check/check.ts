import { GROUP } from '../../api/generated/kinds.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { ROUTE_KINDS } from '../../api/key.ts';
import type { Reason } from '../../api/reasons.ts';
import { checkBackendRefs, isForMesh, isRoute, namesIn } from './backend-refs.ts';
import {
  checkAllowedTags,
  checkControlURL,
  checkSelectors,
  checkServiceTags,
  checkVipServices,
} from './discovery.ts';
import { Catalog, groupOf, objectOf, titleOf } from './objects.ts';
import type { Declarations, Declared, Finding } from './objects.ts';
import { checkEffects } from './no-effect.ts';
import { checkAddresses } from './repeated.ts';
import { noteSameMatches } from './same-match.ts';
import { checkConflicts, checkTargets } from './targets.ts';
import { checkTraffic, trafficIn } from './traffic.ts';
import type { TrafficSettings } from './traffic.ts';

/** What is wrong with objects, and how many there are of our group and of Gateway API. */
export type CheckResult = { readonly findings: readonly Finding[]; readonly objects: number };

/** Checks objects, each by itself and together, as the processes and Envoy Gateway would use them. */
export function check(declarations: Declarations, settings: TrafficSettings = {}): CheckResult {
  const { objects, findings } = declarations;
  const catalog = new Catalog(declarations);
  const routes = objects.filter(isRoute);
  const valid = routes.flatMap(({ resource }) => (resource ? [resource as Route] : []));
  const traffic = trafficIn(catalog, settings);
  const count = objects.filter(({ fields }) => [GROUP, GATEWAY_GROUP].includes(groupOf(fields))).length;
  const all = [
    ...findings,
    ...objects.flatMap(checkAddresses),
    ...checkVipServices(catalog.all()),
    ...objects.flatMap(checkSelectors),
    ...checkAllowedTags(objects),
    ...checkServiceTags(objects),
    ...checkTraffic(valid, catalog, traffic.of),
    ...checkConflicts(catalog),
    ...objects.flatMap(object => [
      ...checkTargets(object, catalog, traffic.targetsOf),
      ...checkEffects(object, catalog),
    ]),
    ...objects.flatMap(checkControlURL),
    ...noteSameMatches(routes, catalog),
    ...routes.flatMap(route => {
      const refs = checkBackendRefs(route, catalog);
      const resource = route.resource as Route | undefined;
      if (!resource || !isForMesh(route, catalog)) return refs;
      return [...refs, ...catalog.parentProblems(resource).map(each => route.at(each))];
    }),
    ...unrouted(objects, routes, catalog),
  ].filter(finding => !isConsequence(finding, declarations));
  // Where something could not be read, that is the reason.
  if (count === 0 && all.length === 0) all.push(NOTHING);
  return { findings: sorted(all), objects: count };
}

/** Whether a finding may be due to an object that is wrong by itself, which has a finding of its own. */
function isConsequence({ reason }: Finding, { findings }: Declarations): boolean {
  const isWrong = (kinds: readonly string[]) =>
    findings.some(each => ITSELF.includes(each.reason) && each.about && kinds.includes(each.about.kind));
  return (
    (reason === 'NoRoute' && isWrong(ROUTE_KINDS)) ||
    (reason === 'RefNotPermitted' && isWrong(['ReferenceGrant']))
  );
}

const ITSELF: readonly Reason[] = ['Invalid', 'UnknownField'];

/** MeshEndpoints that no route names, where there are routes at all; one that is not valid may be meant to. */
function unrouted(
  objects: readonly Declared[],
  routes: readonly Declared[],
  catalog: Catalog,
): readonly Finding[] {
  if (routes.length === 0 || catalog.hasInvalid(...ROUTE_KINDS)) return [];
  const named = new Set(routes.flatMap(namesIn));
  return objects.flatMap(({ resource, at }) => {
    if (resource?.kind !== 'MeshEndpoints') return [];
    const { namespace = '', name } = resource.metadata;
    if (named.has(`${namespace}/${name}`)) return [];
    const text = `no route names ${titleOf(resource)} in its backendRefs`;
    return [at({ reason: 'NoRoute', text }, ['metadata', 'name'])];
  });
}

const NOTHING: Finding = {
  reason: 'NothingToCheck',
  text: `there is no object of ${GROUP} or Gateway API`,
  fix: 'name the files, which end in .yaml, .yml or .json, or the cluster that has them',
};

function sorted(findings: readonly Finding[]): readonly Finding[] {
  const order = (finding: Finding) =>
    finding.file === undefined
      ? ['', objectOf(finding) ?? '', 0]
      : [finding.file, finding.line, finding.column];
  return [...findings].sort((one, other) => {
    const [a, b] = [order(one), order(other)];
    const at = a.findIndex((value, index) => value !== b[index]);
    if (at < 0) return 0;
    return (a[at] ?? '') < (b[at] ?? '') ? -1 : 1;
  });
}
