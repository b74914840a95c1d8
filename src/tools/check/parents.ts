import { keyOf } from '../../api/key.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import type { Gateway, Listener, ListenerSet, ParentRef, Route } from '../../api/objects/gateway-api.ts';
import { gatewayOfListenerSet, refTo } from '../../api/objects/references.ts';
import type { SelectedNamespaces } from '../../api/objects/selected-namespaces.ts';
import type { Problem } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import { withArticle } from '../../api/text.ts';
import {
  acceptsKind,
  acceptsListenerSet,
  protocolsFor,
  selectsNamespace,
} from '../../traffic/attachments.ts';
import type { Catalog } from './objects.ts';

/** What is wrong with parentRefs of a route that attach it to nothing, as Envoy Gateway decides it: one for each. */
export function parentProblems(route: Route, catalog: Catalog): readonly Problem[] {
  const about = refTo(route);
  if (route.parentRefs.length === 0) {
    const why = { text: 'is missing', fix: 'name the Gateway of the route' };
    return [{ reason: 'NoParent', about, at: ['spec', 'parentRefs'], ...why }];
  }
  return route.parentRefs.flatMap((ref, index) => {
    const found = problemOf(ref, route, catalog);
    if (!found) return [];
    const [reason, field, text, fix] = found;
    const at = ['spec', 'parentRefs', index, ...(field === '' ? [] : [field])];
    return [{ reason, about, at, text, fix }];
  });
}

/** The field of the parentRef is empty where it is the whole. */
type ParentProblem = readonly [reason: Reason, field: string, text: string, fix: string];

function problemOf(ref: ParentRef, route: Route, catalog: Catalog): ParentProblem | undefined {
  const { group, kind, namespace, name } = ref;
  if (group !== GATEWAY_GROUP || (kind !== 'Gateway' && kind !== 'ListenerSet')) {
    const text = `Envoy Gateway attaches no route to ${withArticle(kind)}${group === '' ? '' : ` of ${group}`}`;
    return ['ParentNotFound', '', text, `name a Gateway or ListenerSet of ${GATEWAY_GROUP}`];
  }
  const title = `${kind} ${namespace}/${name}`;
  const of = { kind, namespace, name } as const;
  if (catalog.lacks(of)) {
    const hint = catalog.fixFor(of, 'create it, or correct name and namespace');
    return ['ParentNotFound', 'name', `${title} does not exist`, hint];
  }
  const parent = catalog.get(keyOf(of))?.resource as Gateway | ListenerSet | undefined;
  if (!parent || catalog.isInvalid(keyOf(of))) return undefined;
  return (
    listenerProblem(ref, route, { parent, title }, catalog) ??
    (parent.kind === 'ListenerSet' ? listenerSetProblem(parent, title, catalog) : undefined)
  );
}

/** Why a route that attaches to a ListenerSet attaches to no Gateway. */
function listenerSetProblem(set: ListenerSet, title: string, catalog: Catalog): ParentProblem | undefined {
  const [key] = gatewayOfListenerSet(set);
  if (key === undefined || !catalog.has('Gateway') || catalog.isInvalid(key)) return undefined;
  const name = `Gateway ${set.parentRef.namespace}/${set.parentRef.name}`;
  const gateway = catalog.get(key)?.resource as Gateway | undefined;
  if (!gateway)
    return [
      'ParentNotFound',
      'name',
      `${title} is of ${name}, which does not exist`,
      'correct its parentRef',
    ];
  if (
    isElsewhere(gateway.allowedListeners, catalog) ||
    acceptsListenerSet(gateway, set, catalog.attachmentResources)
  )
    return undefined;
  return [
    'NotAllowedByListeners',
    'name',
    `${name} does not admit ${title}`,
    'let its allowedListeners.namespaces have from: Same or All, or a selector for the labels of the namespace',
  ];
}

function listenerProblem(
  { sectionName, port }: ParentRef,
  route: Route,
  { parent, title }: { readonly parent: Gateway | ListenerSet; readonly title: string },
  catalog: Catalog,
): ParentProblem | undefined {
  const { listeners } = parent;
  const named = listeners.filter(each => (sectionName ?? each.name) === each.name);
  if (named.length === 0)
    return [
      'ListenerNotFound',
      'sectionName',
      `${title} has no listener ${sectionName}`,
      `use one that it has (${listed(listeners.map(({ name }) => name))})`,
    ];
  const atPort = named.filter(each => (port ?? each.port) === each.port);
  if (atPort.length === 0)
    return [
      'ListenerNotFound',
      'port',
      `no such listener of ${title} has port ${port}`,
      `use one that it has (${listed(named.map(each => String(each.port)))})`,
    ];
  const ofKind = atPort.filter(each => acceptsKind(each, route.kind));
  if (ofKind.length === 0) {
    const refusing = atPort.filter(({ protocol }) => protocolsFor(route.kind).includes(protocol));
    return [
      'NotAllowedByListeners',
      '',
      `no listener of ${title} takes ${withArticle(route.kind)} (${listed(atPort.map(({ name, protocol }) => `listener ${name} has protocol ${protocol}`))})`,
      refusing.length > 0
        ? `let allowedRoutes.kinds of ${listed(refusing.map(({ name }) => `listener ${name}`))} have ${route.kind}`
        : `add a listener of protocol ${protocolsFor(route.kind).join(' or ')}`,
    ];
  }
  const { namespace = '' } = route.metadata;
  const admitting = ofKind.filter(each => admits(each, parent, namespace, catalog));
  if (admitting.length === 0)
    return [
      'NotAllowedByListeners',
      '',
      `no listener of ${title} admits routes of namespace ${namespace}`,
      `let allowedRoutes.namespaces of ${listed(ofKind.map(({ name }) => `listener ${name}`))} have from: All, or a selector for its labels`,
    ];
  const { hostnames } = route;
  if (hostnames.length === 0 || admitting.some(each => isForOneOf(each, hostnames))) return undefined;
  return [
    'HostnamesDoNotIntersect',
    '',
    `none of the hostnames of the route (${listed(hostnames)}) is in those of ${title} (${listed(admitting.map(({ name, hostname }) => `listener ${name}: ${hostname}`))})`,
    'add one of them to a listener, or correct hostnames of the route',
  ];
}

/** Where no Namespace is among the objects, the labels that a selector is about are elsewhere. */
function isElsewhere({ from, selector }: SelectedNamespaces, catalog: Catalog): boolean {
  return from === 'Selector' && selector !== undefined && !catalog.has('Namespace');
}

function admits(
  { allowedRoutes: { namespaces } }: Listener,
  { metadata }: Gateway | ListenerSet,
  namespace: string,
  catalog: Catalog,
): boolean {
  if (isElsewhere(namespaces, catalog)) return true;
  return selectsNamespace(catalog.attachmentResources, namespaces, metadata, namespace);
}

function isForOneOf({ hostname }: Listener, hostnames: readonly string[]): boolean {
  return hostname === undefined || hostnames.some(each => intersect(hostname, each));
}

/** Whether two hostnames, of which each may begin with a wildcard, have a name in common. */
function intersect(one: string, other: string): boolean {
  if (one === other) return true;
  const [isWide, isOtherWide] = [one.startsWith('*.'), other.startsWith('*.')];
  return (isWide && other.endsWith(one.slice(1))) || (isOtherWide && one.endsWith(other.slice(1)));
}

const MAX_LISTED = 5;

function listed(texts: readonly string[]): string {
  return `${texts.slice(0, MAX_LISTED).join(', ')}${texts.length > MAX_LISTED ? ', ...' : ''}`;
}
