import { keyOf } from '../../../src/api/key.ts';
import type { Key, ResourceKind } from '../../../src/api/key.ts';
import { refTo } from '../../../src/api/objects/references.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeRef } from '../../../lab/kube/object.ts';
import { until } from '../../../lab/process/wait.ts';
import { openKubernetes } from '../../../src/kubernetes/connect.ts';
import type { Kubernetes } from '../../../src/kubernetes/connect.ts';
import { restConfigSource } from '../../../src/kubernetes/auth/config-source.ts';
import { pathOfAll, SERVED } from '../../../src/kubernetes/served-kinds.ts';
import { openTransport } from '../../../src/kubernetes/transport/open-transport.ts';
import type { KubeRequest, KubeTransport } from '../../../src/kubernetes/transport/transport.ts';
import type { Change } from '../../../src/store/resources.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { restClientMetrics, sourceMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { parseExposition } from '../telemetry/exposition.ts';

/** The product's reader of a real API server, with what it logged. */
export type TestSource = Kubernetes & {
  readonly changes: readonly Change[];
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** The number of its requests, or of those that were answered with a code. */
  readonly requests: (code?: string) => Promise<number>;
};

/** What a test adds. */
type More = {
  /** Runs before each request except watches. */
  readonly before?: (request: KubeRequest) => Promise<void>;
  /** The namespace of Pods. */
  readonly namespace?: string;
};

/** Connects to a cluster and reads the given kinds. */
export async function testSource(
  kubeconfig: string,
  kinds: readonly ResourceKind[],
  { before = () => Promise.resolve(), ...place }: More = {},
): Promise<TestSource> {
  const metrics = createRegistry({ metrics: { ...restClientMetrics, ...sourceMetrics }, version: 'test' });
  const lines: Readonly<Record<string, unknown>>[] = [];
  const to = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  const telemetry = { log: createLog({ level: 'info', to }), metrics, activities: createActivities() };
  const [clock, now] = [systemClock, () => new Date()];
  const configSource = await restConfigSource({ kubeconfig, environment: {}, clock });
  const transport = openTransport({ configSource, clock, now, record: metrics.record });
  const send: KubeTransport['send'] = async request => {
    await before(request);
    return transport.send(request);
  };
  const source = openKubernetes({
    transport: { ...transport, send },
    kinds,
    ...place,
    indexes: [],
    clock,
    random: Math.random,
    telemetry,
    reportFailure: failure => {
      throw failure;
    },
  });
  const changes: Change[] = [];
  source.read.subscribe(change => changes.push(change));
  const requests = async (code?: string) => {
    const series = parseExposition(await metrics.text()).get('rest_client_requests_total')?.series ?? [];
    const meant = series.filter(({ labels }) => code === undefined || labels['code'] === code);
    return meant.reduce((sum, { value }) => sum + value, 0);
  };
  const close = async () => {
    await source.close();
    await transport.close();
  };
  return { ...source, close, changes, lines, requests };
}

type Item = { readonly metadata: Pick<KubeRef, 'name' | 'namespace'> & { readonly resourceVersion: string } };

/** The objects of some kinds in an API server, with their versions. */
async function truthOf(
  client: KubeClient,
  kinds: readonly ResourceKind[],
): Promise<ReadonlyMap<Key, string>> {
  const truth = new Map<Key, string>();
  for (const kind of kinds) {
    const [version = ''] = SERVED[kind].versions;
    const { status, body } = await client.request('GET', pathOfAll(SERVED[kind], version));
    if (status === 404) continue;
    if (status !== 200) throw new Error(`${kind}: ${status}`);
    for (const { metadata } of (body as { readonly items: readonly Item[] }).items)
      truth.set(keyOf({ ...refTo({ kind, metadata }) }), metadata.resourceVersion);
  }
  return truth;
}

/** Waits until a source has exactly the objects of its API server. */
export async function untilTrue(
  source: Pick<TestSource, 'read'>,
  client: KubeClient,
  kinds: readonly ResourceKind[],
): Promise<number> {
  return until(
    'the store to equal the truth',
    async note => {
      const truth = await truthOf(client, kinds);
      const known = new Map<Key, string | undefined>(
        kinds.flatMap(kind =>
          source.read.list(kind).map(object => [keyOf(refTo(object)), object.metadata.resourceVersion]),
        ),
      );
      const differing = [...new Set([...truth.keys(), ...known.keys()])].filter(
        key => truth.get(key) !== known.get(key),
      );
      note(`${differing.length} of ${truth.size} differ, such as ${differing.slice(0, 3).join(', ')}`);
      return differing.length === 0 ? truth.size : undefined;
    },
    { everyMs: 100 },
  );
}
