import type { MeshEndpointsStatus } from '../../../../src/api/generated/types.ts';
import { readClusters } from '../../../../lab/gateway/envoy.ts';
import type { EnvoyEndpoint } from '../../../../lab/gateway/envoy.ts';
import type { KubernetesObject } from '../../../../lab/gateway/objects.ts';
import type { Lab, RemoteNode } from '../../../../lab/state.ts';
import { until } from '../../../../lab/process/wait.ts';
import type { RunningExtension, Composed } from './composed.ts';
import { CHOSEN } from './load.ts';
import { meshEndpoint, meshEndpoints, meshRoute } from './objects.ts';
import type { MeshRouteOptions } from './objects.ts';

/** An endpoint of a test: its node, the node whose service has its port, and other fields. */
export type PlaceOptions = { readonly name: string; readonly on: RemoteNode } & Readonly<
  Record<string, unknown>
>;

/**
 * Endpoints on several nodes for one port: each node forwards it to the same port of this machine, so that the
 * service of one node is reached at the addresses of all.
 */
export function placesOf(
  lab: Lab,
  object: string,
  service: 'http' | 'tcp',
  home: RemoteNode,
  places: readonly PlaceOptions[],
): KubernetesObject {
  const endpoints = places.map(({ name, on, ...more }) => ({
    ...meshEndpoint(home, service),
    name,
    meshIP: on.address,
    meshFQDN: on.fqdn,
    ...more,
  }));
  return meshEndpoints(lab, object, endpoints);
}

/** An HTTPRoute whose responses have a header with the endpoint that Envoy chose. */
export function routeWithEndpointHeader(
  gateway: { readonly name: string },
  options: Omit<MeshRouteOptions, 'kind' | 'listener' | 'hostnames'>,
): KubernetesObject {
  const hostnames = [hostOf(options.name)];
  const route = meshRoute(gateway, { ...options, kind: 'HTTPRoute', listener: 'http', hostnames });
  const { rules, ...spec } = route['spec'] as { readonly rules: readonly object[] };
  const add = [{ name: CHOSEN, value: '%UPSTREAM_HOST%' }];
  const filters = [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { add } }];
  return { ...route, spec: { ...spec, rules: rules.map(rule => ({ ...rule, filters })) } };
}

/** The host of a route. */
export function hostOf(route: string): string {
  return `${route}.test`;
}

/** Waits until Envoy has exactly these endpoints in a cluster, each as a text. */
export async function untilEndpoints(
  { admin }: { readonly admin: string },
  cluster: string,
  textOf: (endpoint: EnvoyEndpoint) => string,
  expected: readonly string[],
): Promise<void> {
  const wanted = expected.toSorted().join(', ');
  await until(
    `${cluster} to have ${wanted}`,
    async note => {
      const seen = (await endpointsIn(admin, cluster)).map(textOf).toSorted().join(', ');
      note(seen);
      return seen === wanted;
    },
    { everyMs: 10 },
  );
}

/** The endpoints that an Envoy has in a cluster. */
export async function endpointsIn(admin: string, cluster: string): Promise<readonly EnvoyEndpoint[]> {
  return (await readClusters(admin)).find(({ name }) => name === cluster)?.endpoints ?? [];
}

/** Writes the status that an operator would write for the endpoints of an object, by their names. */
export async function writeHealth(
  { operator }: Pick<Composed<RunningExtension>, 'operator'>,
  object: string,
  health: Readonly<Record<string, 'Healthy' | 'Unhealthy'>>,
): Promise<void> {
  const found = operator.read.get({ kind: 'MeshEndpoints', namespace: 'default', name: object });
  if (!found) throw new Error(`${object} is not there`);
  const endpoints = Object.entries(health).map(([name, status]) => ({
    name,
    status,
    ...(status === 'Unhealthy' ? { error: 'the check failed' } : {}),
  }));
  const status: MeshEndpointsStatus = { ...found.status, endpoints };
  await operator.write.replaceStatus(found, status);
}
