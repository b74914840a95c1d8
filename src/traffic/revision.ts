import { createHash } from 'node:crypto';
import type { Route } from '../api/gateway-api.ts';
import { keyOf, refOf } from '../api/key.ts';
import type { Ref } from '../api/key.ts';
import { gatewaysOf, refTo } from '../api/references.ts';
import { assignmentOf } from './assignment-of.ts';
import { clusterNeedsOf } from './cluster-needs-of.ts';
import { commonPath, dataPathOf } from './data-path.ts';
import type { DataPathMode } from './data-path.ts';
import type { Declared } from './declared.ts';
import { meshRulesOf, meshRulesPerBackend } from './mesh-rule.ts';
import { sharingBackends } from './rule.ts';
import type { MeshRule } from './rule.ts';

/** What a revision is computed from beside what is declared. */
export type RevisionSources = {
  readonly gateway: Ref<'Gateway'>;
  /** Those that attach to it, and any others. */
  readonly routes: readonly Route[];
  /** The way into the mesh of Gateways for which none is decided. */
  readonly dataPath: DataPathMode;
  /** What all clusters have in common, however they are made of what they need. */
  readonly shape: string;
};

/**
 * A hash of all that Envoy Gateway is told of the clusters of a Gateway, which moves when it has to translate again; nothing
 * where no route of the Gateway has MeshEndpoints among its backends. Routes of others, and the order of all, do not matter.
 */
export function revisionOf(
  declared: Declared,
  { gateway, routes, dataPath, shape }: RevisionSources,
): string | undefined {
  const key = keyOf(gateway);
  const hash = createHash('sha256').update(shape);
  let isEmpty = true;
  for (const route of inOrder(routes.filter(each => gatewaysOf(each).includes(key)))) {
    const path = () => pathOf(declared, route, dataPath);
    for (const rule of clustersOf(declared, route)) {
      hash.update(`\n${rule.cluster.text} ${toldOf(rule, path)}${sharesOf(rule)}`);
      isEmpty = false;
    }
  }
  return isEmpty ? undefined : hash.digest('hex').slice(0, DIGITS);
}

const DIGITS = 32;

function inOrder(routes: readonly Route[]): readonly Route[] {
  const keyed = routes.map(route => ({ route, key: keyOf(refTo(route)) }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ route }) => route);
}

/** Envoy Gateway decides by itself whether a rule has one cluster or each of its backends one: both are told of. */
function* clustersOf(declared: Declared, route: Route): Iterable<MeshRule> {
  yield* meshRulesOf(declared, route);
  yield* meshRulesPerBackend(declared, route);
}

/** What a cluster needs; where Envoy Gateway tells the endpoints, these are part of the translation too. */
function toldOf(rule: MeshRule, path: () => DataPathMode): string {
  const needs = clusterNeedsOf(rule);
  if (needs?.endpointsFrom !== 'envoy-gateway') return JSON.stringify(needs ?? null);
  return JSON.stringify([needs, assignmentOf(rule, needs, path()).assignment]);
}

/**
 * Which backends of a rule the Route hook lets share its traffic, where each has a cluster of its own. Envoy Gateway knows
 * nothing of why one can be used now, such as a MeshTailnet, and calls that hook for HTTPRoutes alone.
 */
function sharesOf(rule: MeshRule): string {
  const { kind, backend } = rule.cluster;
  if (kind !== 'HTTPRoute' || backend !== undefined) return '';
  return ` ${sharingBackends(rule)
    .map(({ index }) => index)
    .join()}`;
}

function pathOf(declared: Declared, route: Route, fallback: DataPathMode): DataPathMode {
  const gateways = gatewaysOf(route).map(key => refOf(key) as Ref<'Gateway'>);
  return commonPath(gateways.map(gateway => dataPathOf(declared, gateway, fallback)));
}
