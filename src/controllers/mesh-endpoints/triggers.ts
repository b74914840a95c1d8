import type { Route } from '../../api/objects/gateway-api.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { BACKEND_KINDS, keyOf, refOf, ROUTE_KINDS } from '../../api/key.ts';
import type { Key, Ref, RouteKind } from '../../api/key.ts';
import { meshBackendsOf, refTo, tailnetsOf } from '../../api/objects/references.ts';
import { endpointsByTailnet, findWithCaRef, routesTo } from '../../store/indexes.ts';
import { byNamespace } from '../../store/resources.ts';
import type { AnyIndex, Index, ReadResources } from '../../store/resources.ts';
import type { Resolutions } from './routes.ts';
import { byKey, whenChanges, whenGenerationChanges } from '../../runtime/trigger.ts';
import type { Trigger } from '../../runtime/trigger.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

function intoNamespace<K extends RouteKind>(kind: K): Index<K> {
  return { name: `endpoints: ${kind} by other namespace`, kind, valuesOf: route => otherNamespacesOf(route) };
}

/** The namespaces whose ReferenceGrants must permit what a route to MeshEndpoints refers to. */
function otherNamespacesOf({ metadata, rules }: Route): readonly string[] {
  const refs = rules.flatMap(({ backendRefs }) => backendRefs);
  const others = refs.map(({ namespace }) => namespace).filter(each => each !== metadata.namespace);
  return [...new Set(others)];
}

const routesIntoNamespace = ROUTE_KINDS.map(intoNamespace);

/** The indexes that the store must have been made with, beside the `sharedIndexes`. */
export const endpointsIndexes: readonly AnyIndex[] = routesIntoNamespace;

/**
 * The MeshEndpoints of all routes to a MeshEndpoints, itself included: how one backend of a rule resolves depends on the
 * others.
 */
function withSharedRoutes(key: Key, read: ReadResources): readonly Ref<'MeshEndpoints'>[] {
  const keys = new Set([key, ...routesTo(key, read).flatMap(meshBackendsOf)]);
  return [...keys].map(each => refOf(each) as Ref<'MeshEndpoints'>);
}

function withSharedRoutesOf(
  objects: readonly MeshEndpoints[],
  read: ReadResources,
): readonly Ref<'MeshEndpoints'>[] {
  return objects.flatMap(object => withSharedRoutes(keyOf(refTo(object)), read));
}

/** The MeshEndpoints of the routes that a ReferenceGrant may concern. */
function byGrants(namespace: string, read: ReadResources): readonly Ref<'MeshEndpoints'>[] {
  return routesIntoNamespace
    .flatMap((index): readonly Route[] => read.find(index, namespace))
    .flatMap(meshBackendsOf)
    .map(key => refOf(key) as Ref<'MeshEndpoints'>);
}

/** The MeshEndpoints of routes that Envoy Gateway has not translated, as far as their status shows. */
function notProgrammed(read: ReadResources): readonly Ref<'MeshEndpoints'>[] {
  const waiting = read.list('MeshEndpoints').filter(({ status }) => {
    if (!status?.routes) return false;
    return !status.conditions?.some(each => each.type === 'Programmed' && each.status === 'True');
  });
  return waiting.map(refTo);
}

/**
 * Which MeshEndpoints a change concerns. What changes of the last kinds concern is found by the resync, and so is what a
 * change of a route concerns through the budget of its namespace.
 */
export function triggersOf({
  forgetAll,
  forgetBudgets,
}: Pick<Resolutions, 'forgetAll' | 'forgetBudgets'>): readonly Trigger<'MeshEndpoints'>[] {
  const forgetting =
    (refsOf: Trigger<'MeshEndpoints'>['refsOf'], forget = forgetAll): Trigger<'MeshEndpoints'>['refsOf'] =>
    (value, read) => {
      forget();
      return refsOf(value, read);
    };
  return [
    ...ROUTE_KINDS.map(kind =>
      whenGenerationChanges(kind, meshBackendsOf, forgetting(byKey<'MeshEndpoints'>, forgetBudgets)),
    ),
    whenGenerationChanges(
      'MeshEndpoints',
      object => [keyOf(refTo(object))],
      forgetting((key, read) => withSharedRoutes(key as Key, read)),
    ),
    whenChanges(
      'MeshTailnet',
      tailnetsOf,
      forgetting((domain, read) => withSharedRoutesOf(read.find(endpointsByTailnet, domain), read)),
    ),
    whenChanges(
      'Namespace',
      ({ metadata }) => [metadata.name],
      forgetting((name, read) => withSharedRoutesOf(read.find(byNamespace('MeshEndpoints'), name), read)),
    ),
    whenChanges(
      'ConfigMap',
      ({ metadata }) => [metadata.name],
      forgetting((_, read) => withSharedRoutesOf(findWithCaRef(read), read)),
    ),
    whenChanges('ReferenceGrant', ({ metadata }) => [metadata.namespace ?? ''], forgetting(byGrants)),
    whenGenerationChanges(
      'MeshBinding',
      () => ['MeshBinding'],
      forgetting(() => []),
    ),
    whenChanges(
      'MeshBinding',
      ({ status }) => (status?.ancestors?.length ? ['reported'] : []),
      (_, read) => notProgrammed(read),
    ),
    ...BACKEND_KINDS.map(kind =>
      whenChanges(
        kind,
        () => [kind],
        forgetting(() => []),
      ),
    ),
  ];
}
