import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { envoyClusterEditor } from '../../../src/extension/envoy-cluster/envoy-cluster.ts';
import type { Watcher } from '../../../src/store/derived.ts';
import { createEds } from '../../../src/extension/eds/server.ts';
import { bytesField, concat } from '../../../src/extension/wire.ts';
import { readClusters } from '../../../lab/gateway/envoy.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { freePorts } from '../../../lab/process/ports.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { direct } from '../../support/extension/assignments.ts';
import { gatewayCluster } from '../../support/extension/clusters.ts';
import { settings } from '../../support/extension/cluster-settings.ts';
import { serving } from '../../support/grpc/serving.ts';

const LOST = 2000;
const KEPT = 50;
const CLUSTER_TYPE = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const ignore = () => undefined;
const nameOf = (at: number) => `httproute/default/web-${at}/rule/0`;

/** An EDS server for any cluster, all with one endpoint, which counts its streams. */
async function startEds(backend: number) {
  let [weight, streams] = [1, () => 0];
  const watchers = new Map<string, Watcher>();
  const eds = createEds({
    snapshots: {
      snapshot: cluster => {
        const endpoints = [direct({ address: '127.0.0.1', port: backend, weight })];
        const localities = [{ backend: 0, weight: 1, priority: 0, endpoints }];
        return { assignment: { cluster, localities }, unused: [], objects: new Map() };
      },
      watch: (cluster, _, watcher) => void watchers.set(cluster, watcher),
      unwatch: cluster => void watchers.delete(cluster),
    },
    clock: systemClock,
    telemetry: {
      log: { warn: ignore, error: ignore } as never,
      metrics: {
        readGauge: (name: string, read: () => Iterable<{ readonly value: number }>) => {
          if (name === 'edsStreams') streams = () => [...read()][0]?.value ?? 0;
          return () => undefined;
        },
        record: { edsPushes: ignore, edsPushSeconds: ignore, edsAnswers: ignore },
      } as never,
    },
  });
  const { port } = await serving({ methods: Object.fromEntries(eds.methods) });
  onTestFinished(() => eds.close());
  return {
    port,
    streams: () => streams(),
    reweigh: (to: number) => {
      weight = to;
      for (const watcher of watchers.values()) watcher.invalidated();
    },
  };
}

/** An Envoy whose clusters are read from a file, with one listener that goes to the first of them. */
async function startEnvoy(clusters: (at: number) => Uint8Array) {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-envoy-resets-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [admin = 0, listener = 0] = await freePorts(2);
  const writeClusters = (count: number) => {
    const all = Array.from({ length: count }, (_, at) =>
      bytesField(2, concat([bytesField(1, Buffer.from(CLUSTER_TYPE)), bytesField(2, clusters(at))])),
    );
    writeFileSync(join(folder, 'next'), concat([bytesField(1, Buffer.from(String(count))), ...all]));
    renameSync(join(folder, 'next'), join(folder, 'clusters.pb'));
  };
  writeClusters(KEPT + LOST);
  const at = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } });
  const router = {
    name: 'router',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  };
  const manager = {
    '@type':
      'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'web',
    http_filters: [router],
    route_config: {
      validate_clusters: false,
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: nameOf(0) } }] },
      ],
    },
  };
  const bootstrap = {
    node: { id: 'one', cluster: 'default/public' },
    admin: { address: at(admin) },
    dynamic_resources: {
      cds_config: {
        path_config_source: { path: join(folder, 'clusters.pb') },
        resource_api_version: 'V3',
      },
    },
    static_resources: {
      listeners: [
        {
          name: 'web',
          address: at(listener),
          filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }],
        },
      ],
    },
  };
  writeFileSync(join(folder, 'bootstrap.json'), JSON.stringify(bootstrap));
  const args = [
    '-c',
    join(folder, 'bootstrap.json'),
    '-l',
    'warn',
    '--concurrency',
    '1',
    '--use-dynamic-base-id',
  ];
  const child = spawn(locateBinaries(process.env)('envoy'), args, { stdio: 'inherit' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { admin: `http://127.0.0.1:${admin}`, url: `http://127.0.0.1:${listener}/`, writeClusters };
}

it('an Envoy that loses 2,000 clusters at once fails no request, and is current with the rest within 30 s', async () => {
  const web = createServer((_, answer) => answer.end('web'));
  await once(web.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void web.close());
  const eds = await startEds((web.address() as AddressInfo).port);
  const mesh = envoyClusterEditor({ target: `127.0.0.1:${eds.port}` });
  const envoy = await startEnvoy(at =>
    mesh(gatewayCluster([], { name: nameOf(at) }), settings({ cluster: nameOf(at) })),
  );
  const statusOf = () =>
    fetch(envoy.url).then(
      answer => answer.status,
      () => 0,
    );
  await eventually(() => expect(eds.streams()).toBe(KEPT + LOST));
  await eventually(async () => expect(await statusOf()).toBe(200));

  const statuses = new Set<number>();
  const over = new AbortController();
  const requests = (async () => {
    while (!over.signal.aborted) statuses.add(await statusOf());
  })();
  const lostAt = performance.now();
  envoy.writeClusters(KEPT);
  await eventually(() => expect(eds.streams()).toBeLessThanOrEqual(KEPT));
  eds.reweigh(7);
  await eventually(async () => {
    const ours = (await readClusters(envoy.admin)).filter(({ name }) => name.startsWith('httproute/'));
    expect(ours.map(({ endpoints }) => endpoints[0]?.weight)).toEqual(Array.from({ length: KEPT }, () => 7));
  });
  expect(performance.now() - lostAt).toBeLessThan(30_000);
  over.abort();
  await requests;
  expect([...statuses]).toEqual([200]);
}, 180_000);
