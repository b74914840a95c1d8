import { inOrderOfKeys } from '../../api/objects/references.ts';
import { TLS_BYTES_OF_NAMESPACE } from '../../api/shares.ts';
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

/** The names of the clusters of a namespace's rules whose TLS settings its share has no room for. */
export type TlsBudgets = (namespace: string) => ReadonlySet<string>;

/** What a transport socket takes in a response beside its server name and certificates. */
const SOCKET_BYTES = 512;

/** Where every rule fits; one value, so that callers see that nothing has changed. */
const ALL_FIT: ReadonlySet<string> = new Set();

/**
 * The rules of the routes of a namespace whose TLS settings its share has no room for. A response to Envoy Gateway has the
 * settings of every cluster, so without shares one namespace could leave no room for the others. Rules have room in the order
 * of the names of their routes, at whichever Gateways these are; one that does not fit takes none, so later ones may fit.
 */
export function overTlsBudget(resources: TrafficResources, namespace: string): ReadonlySet<string> {
  const over = new Set<string>();
  let bytes = 0;
  for (const route of inOrderOfKeys(resources.routesIn(namespace))) {
    for (const { cluster, meshRefs } of meshRulesOf(route)) {
      const needed = meshRefs.reduce((sum, ref) => sum + tlsBytesOf(resources, ref), 0);
      if (bytes + needed > TLS_BYTES_OF_NAMESPACE) over.add(cluster.text);
      else bytes += needed;
    }
  }
  return over.size === 0 ? ALL_FIT : over;
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

/** Whether the TLS settings of a cluster are over the budget: those of a backendRef go with those of its rule. */
export function isOverTlsBudget(
  { kind, namespace, name, rule }: EnvoyClusterName,
  budgets: TlsBudgets,
): boolean {
  return budgets(namespace).has(formatEnvoyClusterName(kind, namespace, name, rule));
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
  if (withTls.length === 0 || !isOverTlsBudget(cluster, budgets)) return [];
  return withTls.map(backend =>
    unusedReference.overTlsBudget(backend, cluster.namespace, TLS_BYTES_OF_NAMESPACE),
  );
}
