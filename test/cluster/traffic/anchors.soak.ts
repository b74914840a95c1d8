import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { ENVOY_GATEWAY } from '../../../lab/cluster/envoy-gateway.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitForAbsence, waitForObject } from '../../../lab/kube/wait.ts';
import { until } from '../../../lab/process/wait.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { GATEWAY_GROUP } from '../../../src/api/objects/gateway-api.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { forgetInstallation, sharedInstallation } from '../../support/cluster/install/shared.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { refToRoute, resolvedRefsOf, waitForResolvedRefs } from '../../support/cluster/resolved-refs.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';

const OWN = PLACE.system;
const ROUTES = 1000;
const anchorType = { apiVersion: `${GATEWAY_GROUP}/v1`, kind: 'HTTPRoute' };

let scene: InstallScene;
let namespace: string;
beforeAll(async () => {
  scene = await installScene();
  namespace = scene.namespace;
});
afterAll(async () => {
  // The last test removes the product.
  forgetInstallation();
  await sharedInstallation();
  await scene.end();
});

/** Lets Envoy Gateway watch only one namespace, or all. */
async function watchOnly(only: string | undefined): Promise<void> {
  const { client, shell } = scene;
  const metadata = { namespace: ENVOY_GATEWAY.namespace, name: 'envoy-gateway-config' };
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
  const { data } = (await client.get(refOf(config))) as unknown as { readonly data: Record<string, string> };
  const file = 'envoy-gateway.yaml';
  const { provider, ...rest } = parse(data[file] ?? '') as EnvoyGatewayConfig;
  const { watch: _, ...kubernetes } = provider.kubernetes;
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': only } };
  const watch = only === undefined ? {} : { watch: { type: 'NamespaceSelector', namespaceSelector } };
  const changed = { ...rest, provider: { ...provider, kubernetes: { ...kubernetes, ...watch } } };
  await client.apply({ ...config, data: { [file]: stringify(changed) } });
  const deployment = `-n ${ENVOY_GATEWAY.namespace} rollout`;
  await shell.sh(`kubectl ${deployment} restart deployment/envoy-gateway`);
  await shell.sh(`kubectl ${deployment} status deployment/envoy-gateway --timeout=300s`);
}

type EnvoyGatewayConfig = {
  readonly provider: { readonly kubernetes: Readonly<Record<string, unknown>> };
};

/** A Gateway with a listener for all TLSRoutes of its namespace. */
function gateway(): KubeObject {
  const listeners = [{ name: 'tls', port: 5001, protocol: 'TLS', tls: { mode: 'Passthrough' } }];
  return gatewayObject('Gateway', `${namespace}/l4`, { gatewayClassName: 'mesh', listeners }) as KubeObject;
}

/** A TLSRoute of a host of its own, and its MeshEndpoints. */
function routeNamed(name: string): readonly KubeObject[] {
  const rules = [{ backendRefs: [meshBackend({ name })] }];
  const spec = { parentRefs: [{ name: 'l4' }], hostnames: [`${name}.example.com`], rules };
  return [
    named(
      meshEndpoints({ endpoints: [endpoint({ protocol: 'TLS' })] }),
      `${namespace}/${name}`,
    ) as KubeObject,
    route('TLSRoute', `${namespace}/${name}`, spec) as KubeObject,
  ];
}

/** What the status of a MeshEndpoints reports about its only route. */
async function waitForMessage(name: string, expected: string | undefined): Promise<void> {
  const ref = { apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace, name };
  await waitForObject(scene.client, ref, `to report ${expected}`, ({ status }) => {
    const { routes = [] } = (status ?? {}) as { readonly routes?: readonly { readonly message?: string }[] };
    const [first] = routes;
    return (
      first !== undefined &&
      (expected ? first.message?.includes(expected) === true : first.message === undefined)
    );
  });
}

it('anchors that Envoy Gateway does not watch are named in status.routes, until it watches them', async () => {
  printLogsOnFailure(scene.client, namespace, OWN);
  await scene.use();
  await watchOnly(namespace);
  await applyAll(scene.client, [gateway(), ...routeNamed('hidden')]);
  const hidden = refToRoute('TLSRoute', namespace, 'hidden');
  await waitForResolvedRefs(scene.client, hidden, 'False BackendNotFound');
  await waitForMessage('hidden', `has not seen HTTPRoute ${OWN}/mesh-anchor-0: let namespaceSelector`);
  await watchOnly(undefined);
  await waitForResolvedRefs(scene.client, hidden, 'True ResolvedRefs');
  await waitForMessage('hidden', undefined);
  expect(resolvedRefsOf(await scene.client.get(hidden))).toBe('True ResolvedRefs');
});

it('1,000 routes are resolved by anchors, which go with the product', async () => {
  printLogsOnFailure(scene.client, ENVOY_GATEWAY.namespace, OWN);
  const names = Array.from({ length: ROUTES }, (_, index) => `route-${index}`);
  await applyAll(scene.client, names.flatMap(routeNamed));
  const unresolved = async () => {
    const type = { apiVersion: `${GATEWAY_GROUP}/v1`, kind: 'TLSRoute', namespace };
    const all = await scene.client.list(type);
    return all.filter(each => resolvedRefsOf(each) !== 'True ResolvedRefs').map(each => each.metadata.name);
  };
  await until(
    'all routes to be resolved',
    async note => {
      const left = await unresolved();
      note(`${left.length} are not: ${left.slice(0, 3).join(', ')}`);
      return left.length === 0;
    },
    { timeoutMs: 600_000, everyMs: 1000 },
  );
  const anchors = await scene.client.list({ ...anchorType, namespace: OWN });
  expect(anchors.length).toBeLessThanOrEqual(64);
  await scene.shell.sh('kubectl delete -k remove --timeout=600s');
  await waitForAbsence(scene.client, {
    ...anchorType,
    namespace: OWN,
    name: anchors[0]?.metadata.name ?? '',
  });
  const left = await scene.client.list(anchorType);
  expect(left.map(each => each.metadata.name).filter(name => name?.startsWith('mesh-anchor-'))).toEqual([]);
});
