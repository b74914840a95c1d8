import { fromBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../../lab/process/wait.ts';
import { encode } from '../../../src/extension/encode.ts';
import {
  Cluster_DiscoveryType,
  ClusterSchema,
} from '../../../src/extension/proto/envoy/config/cluster/v3_pb.ts';
import type { Cluster } from '../../../src/extension/proto/envoy/config/cluster/v3_pb.ts';
import {
  PostTranslateModifyRequestSchema,
  PostTranslateModifyResponseSchema,
} from '../../../src/extension/proto/envoygateway/extension_pb.ts';
import {
  NOISY,
  printFigure,
  QUIET,
  startMeshProxy,
  startTenants,
  statusWhen,
  tailnetBehind,
  tenantEndpoints,
  tenantRoute,
} from '../../support/cluster/tenants.ts';
import type { Tenants } from '../../support/cluster/tenants.ts';
import type { TestClient } from '../../support/grpc/client.ts';
import { CERTIFICATE } from '../../support/traffic/certificates.ts';

let tenants: Tenants;
beforeAll(async () => {
  tenants = await startTenants();
});
afterAll(() => tenants.end());

/** Endpoints that together have 250 KB of TLS settings. */
const large = Array.from({ length: 8 }, (_, at) => ({
  ...{ name: `e${at}`, meshIP: `100.64.0.${at + 1}`, meshFQDN: `e${at}.example.ts.net` },
  ...{ port: 80, protocol: 'HTTPS' },
  tls: { serverName: `e${at}.service.example`, ca: CERTIFICATE.repeat(55) },
}));
const small = large.slice(0, 1).map(each => ({ ...each, tls: { ca: CERTIFICATE } }));

const ROUTES = 26;
const RULES = 16;
const noisyClusters = Array.from(
  { length: ROUTES * RULES },
  (_, at) => `httproute/${NOISY}/r${Math.floor(at / RULES)}/rule/${at % RULES}`,
);
const quietCluster = `httproute/${QUIET}/web/rule/0`;

/** Calls the hook with clusters as Envoy Gateway makes them. */
async function translate(client: TestClient, names: readonly string[]) {
  const clusters = names.map(name =>
    encode(ClusterSchema, {
      name,
      clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.EDS },
    }),
  );
  const begin = performance.now();
  const { code, message = Buffer.alloc(0) } = await client.call(
    '/envoygateway.extension.EnvoyGatewayExtension/PostTranslateModify',
    encode(PostTranslateModifyRequestSchema, { clusters }),
  );
  const ms = Math.round(performance.now() - begin);
  expect(code).toBe(0);
  const edited = fromBinary(PostTranslateModifyResponseSchema, message).clusters;
  return {
    figure: `${ms} ms, ${Math.ceil(message.length / 1e3)} KB`,
    bytes: message.length,
    clusters: new Map(edited.map(bytes => fromBinary(ClusterSchema, bytes)).map(each => [each.name, each])),
  };
}

const socketsOf = (cluster: Cluster | undefined) => cluster?.transportSocketMatches.length;

it('a namespace with 400 clusters of 250 KB of TLS settings leaves the clusters of another one their own', async () => {
  const { admin, startExtensionServer, startOperator } = tenants;
  await admin.apply(tailnetBehind(await startMeshProxy(() => 200)));
  await admin.apply(tenantEndpoints(QUIET, 'web', small));
  await admin.apply(tenantRoute(QUIET, 'web'));
  const client = await startExtensionServer();
  await translate(client, [quietCluster]);
  const alone = await translate(client, [quietCluster]);
  expect(socketsOf(alone.clusters.get(quietCluster))).toBe(1);

  await admin.apply(tenantEndpoints(NOISY, 'large', large));
  for (let at = 0; at < ROUTES; at++)
    await admin.apply(tenantRoute(NOISY, `r${at}`, { rules: RULES, to: 'large' }));
  await startOperator();
  const resolvedOf = (namespace: string, name: string, awaited: string) =>
    statusWhen(admin, { namespace, name }, ({ conditions }) =>
      conditions?.find(({ type, status }) => type === 'RoutesResolved' && status === awaited),
    );
  const noisy = await resolvedOf(NOISY, 'large', 'False');
  expect(noisy).toMatchObject({ status: 'False', reason: 'TooManyTlsSettings' });
  expect(noisy.message).toContain('exceed 12 MB, the share of a namespace');
  expect(await resolvedOf(QUIET, 'web', 'True')).toMatchObject({ status: 'True' });

  // The extension server has its own watches. Those of the noisy tenant come first.
  const beside = await until('the extension server to edit all clusters', async () => {
    const { clusters, ...rest } = await translate(client, [...noisyClusters, quietCluster]);
    const isEdited = (name: string) => clusters.get(name)?.edsClusterConfig?.serviceName === name;
    return noisyClusters.every(isEdited) ? { clusters, ...rest } : undefined;
  });
  printFigure('a translation', { alone: alone.figure, beside: beside.figure });
  expect(beside.clusters.get(quietCluster)).toEqual(alone.clusters.get(quietCluster));
  expect(beside.bytes).toBeLessThan(14_000_000);
  const found = noisyClusters.map(name => beside.clusters.get(name));
  const open = found.filter(cluster => socketsOf(cluster) === large.length);
  expect(open.length).toBeGreaterThan(40);
  expect(found.filter(cluster => socketsOf(cluster) === 0)).toHaveLength(noisyClusters.length - open.length);
  expect(found.every(cluster => cluster?.edsClusterConfig?.serviceName === cluster?.name)).toBe(true);
});
