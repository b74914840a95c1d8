import { inOrderOfKeys } from '../../api/objects/references.ts';
import { TLS_BYTES } from '../../api/shares.ts';
import type { RouteBackendRef } from '../backend-refs.ts';
import { formatEnvoyClusterName } from '../envoy-cluster-name.ts';
import type { EnvoyClusterName } from '../envoy-cluster-name.ts';
import { resolveBackendRef } from '../resolve-backend-ref.ts';
import { meshRulesOf } from '../resolve-route.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import type { TrafficResources } from '../traffic-resources.ts';
import { unusedReference } from '../unused.ts';
import type { UnusedBackend } from '../unused.ts';
import { MAX_TLS_BYTES, MAX_TLS_SETTINGS } from '../upstream-tls.ts';
import type { EnvoyClusterSettings } from './envoy-cluster-settings.ts';

/** What has no room for the TLS settings of a rule: the share of its namespace, or what all namespaces have. */
export type TlsBudget = keyof typeof TLS_BYTES;

/** The names of the clusters of a namespace's rules whose TLS settings are left out. */
export type TlsBudgets = (namespace: string) => ReadonlyMap<string, TlsBudget>;

/** What the TLS settings of a rule take in a response to Envoy Gateway, by the name of its cluster. */
export type TlsNeed = { readonly cluster: string; readonly bytes: number };

/** What a transport socket takes in a response beside its server name and certificates. */
const SOCKET_BYTES = 512;

/** Where every rule fits; one value, so that callers see that nothing has changed. */
const ALL_FIT: ReadonlyMap<string, TlsBudget> = new Map();
const NONE: ReadonlySet<string> = new Set();

/** What the rules of a namespace need that have TLS settings, in the order of the names of their routes, at whichever Gateways. */
export function tlsNeedsOf(resources: TrafficResources, namespace: string): readonly TlsNeed[] {
  return inOrderOfKeys(resources.meshRoutesIn(namespace))
    .flatMap(meshRulesOf)
    .map(({ cluster, meshRefs }) => {
      const bytes = meshRefs.reduce((sum, ref) => sum + tlsBytesOf(resources, ref), 0);
      return { cluster: cluster.text, bytes };
    })
    .filter(({ bytes }) => bytes > 0);
}

/**
 * The rules of a namespace whose TLS settings are left out. A response to Envoy Gateway has the settings of every cluster, so
 * without shares one namespace could leave no room for the others. Rules have room in their order; one that does not fit takes
 * none, so later ones may fit.
 */
export function overTlsBudget(
  needs: readonly TlsNeed[],
  overTotal: ReadonlySet<string>,
): ReadonlyMap<string, TlsBudget> {
  const overShare = beyond(needs, TLS_BYTES.ofNamespace);
  const over = needs.flatMap(({ cluster }): readonly [string, TlsBudget][] => {
    if (overShare.has(cluster)) return [[cluster, 'ofNamespace']];
    return overTotal.has(cluster) ? [[cluster, 'ofAll']] : [];
  });
  return over.length === 0 ? ALL_FIT : new Map(over);
}

/**
 * The rules of all namespaces that fit into their shares, and for which a response has no room together. Namespaces have turns
 * by bytes: the next rule is of the one that has the fewest with it, so those with few certificates lose none to others.
 */
export function overTlsTotal(needsBy: ReadonlyMap<string, readonly TlsNeed[]>): ReadonlySet<string> {
  const turns = [...needsBy].flatMap(([namespace, needs]) => {
    const overShare = beyond(needs, TLS_BYTES.ofNamespace);
    let taken = 0;
    return needs
      .filter(({ cluster }) => !overShare.has(cluster))
      .map(need => ({ ...need, namespace, taken: (taken += need.bytes) }));
  });
  if (turns.reduce((sum, { bytes }) => sum + bytes, 0) <= TLS_BYTES.ofAll) return NONE;
  turns.sort((a, b) => a.taken - b.taken || (a.namespace < b.namespace ? -1 : 1));
  return beyond(turns, TLS_BYTES.ofAll);
}

function beyond(needs: readonly TlsNeed[], maxBytes: number): ReadonlySet<string> {
  let taken = 0;
  const over = needs.filter(({ bytes }) => {
    const isOver = taken + bytes > maxBytes;
    if (!isOver) taken += bytes;
    return isOver;
  });
  return over.length === 0 ? NONE : new Set(over.map(({ cluster }) => cluster));
}

/** At least as many as a cluster of the backendRef alone has; one of the whole rule has no more than all of these. */
function tlsBytesOf(resources: TrafficResources, ref: RouteBackendRef): number {
  const different = new Map<string | undefined, Set<string>>();
  for (const { resolved } of resolveBackendRef(resources, ref).kept) {
    const { tls } = resolved;
    if (!tls) continue;
    const { ca, ...rest } = tls;
    const settings = different.get(ca) ?? new Set();
    different.set(ca, settings.add(JSON.stringify(rest)));
  }
  const sizes = [...different].map(([ca = '', { size }]) => ca.length * size);
  const sockets = [...different.values()].reduce((sum, { size }) => sum + size, 0);
  const certificates = sizes.reduce((sum, each) => sum + each, 0);
  return Math.min(certificates, MAX_TLS_BYTES) + Math.min(sockets, MAX_TLS_SETTINGS) * SOCKET_BYTES;
}

/** Which budget the TLS settings of a cluster are over: those of a backendRef go with those of its rule. */
export function overTlsBudgetOf(
  { kind, namespace, name, rule }: EnvoyClusterName,
  budgets: TlsBudgets,
): TlsBudget | undefined {
  return budgets(namespace).get(formatEnvoyClusterName(kind, namespace, name, rule));
}

/**
 * The settings for a cluster over the budget: endpoints with TLS get the closed default socket, so connections to them
 * fail. Undefined for settings without TLS, which need no room.
 */
export function closedSettingsOf(settings: EnvoyClusterSettings): EnvoyClusterSettings | undefined {
  const clear = settings.socketMatches.filter(({ socket }) => socket.is === 'clear');
  return clear.length === settings.socketMatches.length ? undefined : { ...settings, socketMatches: clear };
}

/** The backendRefs of a rule with endpoints whose TLS settings are over the budget. */
export function overTlsBudgetIn(
  { cluster, backends }: ResolvedRule,
  budgets: TlsBudgets,
): readonly UnusedBackend[] {
  const withTls = backends.filter(({ endpoints }) => endpoints.some(({ tls }) => tls));
  const over = withTls.length === 0 ? undefined : overTlsBudgetOf(cluster, budgets);
  if (!over) return [];
  return withTls.map(backend => unusedReference.overTlsBudget(backend, cluster.namespace, over));
}
