/** Run by the bench `tenants`, bundled as the product is: prints what CPU time the answer to a translation takes. */
import { encode } from '../../src/extension/encode.ts';
import { envoyClusterEditor } from '../../src/extension/envoy-cluster/envoy-cluster.ts';
import { modifyTranslation } from '../../src/extension/hooks/translation.ts';
import {
  Cluster_DiscoveryType as DiscoveryType,
  ClusterSchema,
} from '../../src/extension/proto/envoy/config/cluster/v3_pb.ts';
import { PostTranslateModifyRequestSchema } from '../../src/extension/proto/envoygateway/extension_pb.ts';
import { createResolutionCache } from '../../src/extension/resolution-cache.ts';
import { Tracking } from '../../src/store/tracking.ts';
import { trafficValues } from '../../src/store/traffic/values.ts';
import { formatEnvoyClusterName } from '../../src/traffic/envoy-cluster-name.ts';
import { median } from '../figures.ts';
import type { Answers } from './figures.ts';
import { MemoryCluster } from './memory-cluster.ts';
import { GATEWAY, httpRoute, meshEndpoints, namespaceOf, SHARED } from './objects.ts';

const ROUTES = Number(process.argv[2]);
const ROUNDS = 100;

const cluster = new MemoryCluster();
const values = trafficValues(new Tracking(cluster.store), {
  dataPath: 'Proxy',
  clusterEncoding: 'bench',
  settingsFrom: 'MeshBinding',
});
const cache = createResolutionCache(cluster.store, values, 'Proxy');
const editCluster = envoyClusterEditor({ target: '127.0.0.1:5005' });

function* objects() {
  yield* SHARED;
  for (let index = 0; index < ROUTES; index++) {
    yield meshEndpoints(index);
    yield httpRoute(index);
  }
}

/** What is edited in the cluster of a route as Envoy Gateway makes it. */
function clusterOf(index: number): Uint8Array {
  return encode(ClusterSchema, {
    name: formatEnvoyClusterName('HTTPRoute', namespaceOf(index), `service-${index}`, 0),
    clusterDiscoveryType: { case: 'type', value: DiscoveryType.EDS },
    commonLbConfig: {},
  });
}

/** The answer as the hook makes it; `isOurs` is false where only the request is read and copied. */
function answer(request: Uint8Array, isOurs: boolean) {
  const start = cpuMs();
  if (isOurs) cache.revisionOf(GATEWAY);
  const revisionMs = cpuMs() - start;
  modifyTranslation(request, {
    settingsOf: name => (isOurs ? cache.settingsOf(name, [GATEWAY]) : undefined),
    editCluster,
    failOpen: (_subject, compute) => compute(),
    routeEditor: { editRoutes: routes => routes, clusterNamesFor: name => [name] },
    countClusters: () => undefined,
    messageBytes: 100_000_000,
  });
  return { ms: cpuMs() - start, revisionMs };
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

await cluster.sync(objects());
const clusters = Array.from({ length: ROUTES }, (_, index) => clusterOf(index));
const request = encode(PostTranslateModifyRequestSchema, { clusters });
const first = answer(request, true);
const times = Array.from({ length: ROUNDS }, (_, round) => {
  const copied = answer(request, false);
  const unchanged = answer(request, true);
  // Half of the rounds find compiled code.
  cluster.apply(httpRoute(round, 1));
  return { copied, unchanged, edited: answer(request, true) };
}).slice(ROUNDS / 2);
const answers: Answers = {
  firstMs: first.ms,
  copiedMs: median(times.map(({ copied }) => copied.ms)),
  unchangedMs: median(times.map(({ unchanged }) => unchanged.ms)),
  editMs: median(times.map(({ unchanged, edited }) => edited.ms - unchanged.ms)),
  editRevisionMs: median(times.map(({ unchanged, edited }) => edited.revisionMs - unchanged.revisionMs)),
};
console.log(JSON.stringify(answers));
process.exit(0);
