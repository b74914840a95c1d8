import { createHash } from 'node:crypto';
import { groupOf } from '../../api/key.ts';
import type { Key } from '../../api/key.ts';
import type { GatewaySettings } from '../gateway-settings.ts';
import { envoyClusterSettingsOf } from './envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from './envoy-cluster-settings.ts';
import { backendsWithChecks } from './envoy-health-check.ts';
import { closedSettingsOf, overTlsBudgetOf } from './tls-budget.ts';
import type { TlsBudgets } from './tls-budget.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import { areUndivided } from '../rule-shares.ts';

/** The settings of the mesh clusters of a group of routes of a Gateway, by the keys of those that have any, with a hash of them. */
export type RevisionPart = {
  readonly hash: string;
  /** The `groupOf` its routes. */
  readonly group: number;
  readonly settings: ReadonlyMap<Key, string>;
};

/** The settings of the clusters of a Gateway, in parts, and a hash of them. */
export type Revision = {
  /**
   * When it changes, Envoy Gateway must translate again, and an extension server that computes another one has not read the
   * Gateway's MeshBinding yet.
   */
  readonly hash: string;
  readonly parts: readonly RevisionPart[];
};

/** Of the `routeSettings` of each route of a group; undefined where none has a mesh cluster. */
export function revisionPart(all: readonly (readonly [Key, string])[]): RevisionPart | undefined {
  const settings = all.filter(([, text]) => text !== '');
  const [first] = settings;
  if (!first) return undefined;
  const hash = hashOf(settings.map(([, text]) => text));
  return { hash, group: groupOf(first[0]), settings: new Map(settings) };
}

/** What is in a revision beside its routes. */
type OfAll = {
  readonly decided: GatewaySettings | undefined;
  /** What all clusters have in common: how settings are encoded, and the EDS address. */
  readonly clusterEncoding: string;
};

/** Undefined where no route of the Gateway has MeshEndpoints among its backends. */
export function revisionOf(
  parts: readonly RevisionPart[],
  { decided, clusterEncoding }: OfAll,
): Revision | undefined {
  if (parts.length === 0) return undefined;
  const ofAll = [clusterEncoding, JSON.stringify(decided ?? null)];
  return { hash: hashOf([...ofAll, ...parts.map(({ hash }) => hash)]), parts };
}

/** Whether a revision has these `routeSettings` of a route. */
export function hasSettings({ parts }: Revision, route: Key, text: string): boolean {
  if (text === '') return true;
  const group = groupOf(route);
  return parts.find(part => part.group === group)?.settings.get(route) === text;
}

/** Whether two revisions, or parts, are the same, or neither exists. */
export function haveSameHash(
  one: { readonly hash: string } | undefined,
  other: { readonly hash: string } | undefined,
): boolean {
  return one?.hash === other?.hash;
}

const DIGITS = 32;

function hashOf(texts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text}\n`);
  return hash.digest('hex').slice(0, DIGITS);
}

/**
 * The settings of the mesh clusters of a resolved route as one text, which is empty for a route without any. What a Gateway makes of them
 * depends on them, on its own settings, and on which backends have checks.
 */
export function routeSettings(rules: readonly ResolvedRule[], budgets: TlsBudgets): string {
  return rules
    .map(rule => {
      const settings = settingsOf(rule, budgets);
      const checked = settings?.healthCheck && backendsWithChecks(rule);
      // Not `others`, which depends on Services: the operator reads none.
      const { shares } = rule;
      const ofShares = !shares
        ? []
        : areUndivided(shares)
          ? shares.mesh.flatMap(({ filters }) => filters ?? [])
          : [shares.total, shares.mesh];
      const all = [settings ?? null, checked ?? null, ...ofShares];
      return `\n${rule.cluster.text} ${JSON.stringify(all)}`;
    })
    .join('');
}

function settingsOf(rule: ResolvedRule, budgets: TlsBudgets): EnvoyClusterSettings | undefined {
  const settings = envoyClusterSettingsOf(rule);
  const closed = settings && closedSettingsOf(settings);
  return closed && overTlsBudgetOf(rule.cluster, budgets) ? closed : settings;
}
