import { keyOf } from '../../api/key.ts';
import type { Gateway, ListenerSet, Route } from '../../api/objects/gateway-api.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import { titleOfSubject } from '../../api/problem.ts';
import type { Problem } from '../../api/problem.ts';
import { attachmentsOf } from '../../traffic/attachments.ts';
import type { AttachmentResources } from '../../traffic/attachments.ts';
import { together } from './reach.ts';
import type { Reach } from './reach.ts';

/** A listener of TCP or UDP by its parent and name, for a kind of routes. */
type ListenerId = string;

/** The routes that have listeners for themselves: Envoy Gateway uses the oldest TCPRoute or UDPRoute of each. */
export type OwnersOfListeners = ReadonlyMap<ListenerId, Route>;

/** Finds the route of each listener of TCP and UDP that has several. */
export function ownersOfListeners(
  routes: readonly Route[],
  resources: AttachmentResources,
): OwnersOfListeners {
  const all = new Map<ListenerId, Route[]>();
  for (const route of routes.filter(isAlone))
    for (const { parent, listeners } of attachmentsOf(route, resources))
      for (const { name } of listeners) {
        const id = idOf(route, parent, name);
        all.set(id, [...(all.get(id) ?? []), route]);
      }
  return new Map([...all].flatMap(([id, group]) => [[id, oldestOf(group) as Route] as const]));
}

function isAlone({ kind }: Route): boolean {
  return kind === 'TCPRoute' || kind === 'UDPRoute';
}

function idOf({ kind }: Route, { kind: of, metadata }: Gateway | ListenerSet, listener: string): ListenerId {
  return `${kind} ${of} ${metadata.namespace ?? ''}/${metadata.name} ${listener}`;
}

/** What a route loses because others have its listeners, at some Gateways; undefined where it loses nothing. */
export function takenFrom(
  route: Route,
  gateways: ReadonlySet<string>,
  resources: AttachmentResources,
  owners: OwnersOfListeners,
): { readonly reaches: Reach; readonly problem: Problem } | undefined {
  if (!isAlone(route)) return undefined;
  const key = keyOf(refTo(route));
  const places = attachmentsOf(route, resources)
    .filter(({ gateway }) => gateways.has(keyOf(gateway)))
    .flatMap(({ parent, listeners }) =>
      listeners.map(({ name }) => ({ name, owner: owners.get(idOf(route, parent, name)) })),
    );
  const taken = places.flatMap(({ name, owner }) =>
    owner && keyOf(refTo(owner)) !== key ? [{ name, owner }] : [],
  );
  const [first] = taken;
  if (!first) return undefined;
  const text = `${titleOfSubject(refTo(first.owner))} has listener ${first.name}, and Envoy Gateway uses one ${route.kind} of a listener, the oldest`;
  const fix = 'give each route a listener of its own, by sectionName or port of its parentRef';
  return {
    reaches: together(places.map(({ owner }) => (taken.some(each => each.owner === owner) ? 'none' : 'all'))),
    problem: { reason: 'Conflicted', about: refTo(route), at: ['spec', 'parentRefs'], text, fix },
  };
}
