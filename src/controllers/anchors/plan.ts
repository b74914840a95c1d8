import type { Key } from '../../api/key.ts';
import { refOf } from '../../api/key.ts';
import { ANCHOR } from '../../api/names.ts';
import { ANCHORED_OF_NAMESPACE } from '../../api/shares.ts';

/** An HTTPRoute of the operator that names MeshEndpoints. */
export type Anchor = {
  readonly name: string;
  /** The Gateway in its parentRef. */
  readonly gateway: Key;
  readonly meshEndpoints: readonly Key[];
};

/** A Gateway, and the MeshEndpoints for which its L4 routes need anchors. */
export type AnchoredGateway = {
  readonly gateway: Key;
  readonly className: string;
  readonly meshEndpoints: readonly Key[];
};

/** The existing anchors, and the Gateways that need some. */
export type Input = { readonly anchors: readonly Anchor[]; readonly gateways: readonly AnchoredGateway[] };

/** All anchors that should exist, and the names of the others. */
export type Plan = { readonly anchors: readonly Anchor[]; readonly remove: readonly string[] };

/**
 * One rule. For each MeshEndpoints of another namespace Envoy Gateway logs the whole HTTPRoute whenever it reads its objects,
 * so that a longer one makes all these lines longer.
 */
export const MAX_IN_ANCHOR = 16;

/*
 * Envoy Gateway reads the objects of all Gateways of a GatewayClass together, so any Gateway of the class can be the parent.
 * An anchor stays as it is as far as possible:
 *
 *   its Gateway needs anchors no longer      its MeshEndpoints go to others of the class
 *   a MeshEndpoints is no longer needed      it is removed from its anchor
 *   a MeshEndpoints is new                   it is added to the first anchor of the class with room, or to a new one
 *   an anchor without MeshEndpoints          removed
 */

/** Plans the anchors of all GatewayClasses. */
export function plan({ anchors, gateways }: Input): Plan {
  const planned = withNames(withinShares(classesOf(gateways, anchors)).flatMap(anchorsOfClass));
  const names = new Set(planned.map(({ name }) => name));
  return { anchors: planned, remove: anchors.map(({ name }) => name).filter(name => !names.has(name)) };
}

type GatewayClass = {
  readonly gateways: readonly [Key, ...Key[]];
  readonly meshEndpoints: ReadonlySet<Key>;
  readonly existing: readonly Anchor[];
};

function classesOf(
  gateways: readonly AnchoredGateway[],
  anchors: readonly Anchor[],
): readonly GatewayClass[] {
  const needing = gateways.filter(({ meshEndpoints }) => meshEndpoints.length > 0);
  const names = [...new Set(needing.map(({ className }) => className))].sort();
  return names.flatMap(name => {
    const members = needing.filter(({ className }) => className === name);
    const keys = members.map(({ gateway }) => gateway).sort();
    const [first, ...rest] = keys;
    if (first === undefined) return [];
    const meshEndpoints = new Set(members.flatMap(each => each.meshEndpoints));
    const existing = anchors
      .filter(({ gateway }) => keys.includes(gateway))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    return [{ gateways: [first, ...rest], meshEndpoints, existing }];
  });
}

/** An anchor without a name is a new one. */
type Planned = Omit<Anchor, 'name'> & { readonly name?: string };

function anchorsOfClass({ gateways, meshEndpoints, existing }: GatewayClass): readonly Planned[] {
  const missing = new Set(meshEndpoints);
  const kept = existing.map(anchor => ({
    ...anchor,
    meshEndpoints: anchor.meshEndpoints.filter(each => missing.delete(each)).slice(0, MAX_IN_ANCHOR),
  }));
  const rest = [...missing].sort();
  const filled = kept.map(anchor => {
    const room = MAX_IN_ANCHOR - anchor.meshEndpoints.length;
    return { ...anchor, meshEndpoints: [...anchor.meshEndpoints, ...rest.splice(0, room)] };
  });
  const added: Planned[] = [];
  while (rest.length > 0) added.push({ gateway: gateways[0], meshEndpoints: rest.splice(0, MAX_IN_ANCHOR) });
  return [...filled.filter(anchor => anchor.meshEndpoints.length > 0), ...added];
}

/**
 * The classes with as many MeshEndpoints as each namespace may have in all of them, since a Gateway can name any class: those that
 * have a place already, and then the first by name.
 */
function withinShares(classes: readonly GatewayClass[]): readonly GatewayClass[] {
  const wanted = classes.flatMap(of => {
    const placed = new Set(of.existing.flatMap(({ meshEndpoints }) => meshEndpoints));
    return [...of.meshEndpoints].map(key => ({ of, key, isPlaced: placed.has(key) }));
  });
  const counts = new Map<string, number>();
  const kept = new Map(classes.map(each => [each, new Set<Key>()]));
  wanted.sort((a, b) => Number(b.isPlaced) - Number(a.isPlaced) || (a.key < b.key ? -1 : 1));
  for (const { of, key } of wanted) {
    const { namespace } = refOf(key);
    const count = (counts.get(namespace) ?? 0) + 1;
    counts.set(namespace, count);
    if (count <= ANCHORED_OF_NAMESPACE) kept.get(of)?.add(key);
  }
  return classes.map(each => ({ ...each, meshEndpoints: kept.get(each) ?? each.meshEndpoints }));
}

function withNames(planned: readonly Planned[]): readonly Anchor[] {
  const used = new Set(planned.map(({ name }) => name));
  const free = planned.map((_, index) => `${ANCHOR.name}-${index}`).filter(name => !used.has(name));
  return planned.map(({ name = free.shift() ?? '', ...anchor }) => ({ name, ...anchor }));
}
