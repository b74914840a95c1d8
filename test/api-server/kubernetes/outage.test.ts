import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ResourceKind } from '../../../src/api/key.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitUntilServed } from '../../../lab/kube/apply.ts';
import { until } from '../../../lab/process/wait.ts';
import { ownApiServer } from '../../support/cluster/own-api-server.ts';
import type { OwnApiServer } from '../../support/cluster/own-api-server.ts';
import { testSource, untilTrue } from '../../support/api-server/source.ts';
import type { TestSource } from '../../support/api-server/source.ts';
import { named, route } from '../../support/declared.ts';
import { meshEndpoints, meshTailnet } from '../../support/objects.ts';

const KINDS: readonly ResourceKind[] = [
  'MeshEndpoints',
  'MeshTailnet',
  'MeshBinding',
  'HTTPRoute',
  'TCPRoute',
  'Gateway',
  'Namespace',
];

let own: OwnApiServer;
let client: KubeClient;
let source: TestSource;
beforeAll(async () => {
  // Otherwise a later page could be read although the store has forgotten the first, which not every API server
  // supports.
  own = await ownApiServer('--feature-gates=ListFromCacheSnapshot=false');
  client = own.server.client;
  await client.apply(named(meshTailnet(), 'example') as KubeObject);
  await client.apply(route('HTTPRoute', 'web') as KubeObject);
  await putMany(250);
});
afterAll(async () => own.end());

beforeEach(async () => {
  source = await testSource(own.server.kubeconfig, KINDS);
  source.start();
  await source.read.whenSynced();
});
afterEach(async () => source.close());

const nameOf = (index: number) => `many-${String(index).padStart(4, '0')}`;

/** More than two pages of a list. */
async function putMany(count: number, port = 8080): Promise<void> {
  const put = (index: number) => {
    const endpoints = [{ name: 'web', meshIP: '100.64.0.1', meshFQDN: 'web.example.ts.net' }];
    const spec = { endpoints: endpoints.map(each => ({ ...each, port, protocol: 'HTTP' })) };
    return client.apply(named(meshEndpoints(spec), nameOf(index)) as KubeObject);
  };
  const rest = Array.from({ length: count }, (_, index) => index);
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let index = rest.shift(); index !== undefined; index = rest.shift()) await put(index);
    }),
  );
}

const many = { apiVersion: 'mesh-gateway.dev/v1alpha1', kind: 'MeshEndpoints', namespace: 'default' };

describe('a source', () => {
  it('has every object after the API server was killed and restarted, with changes before and after', async () => {
    await putMany(50, 8081);
    await own.server.kill();
    await own.server.restart();
    await putMany(60, 8082);
    await client.remove({ ...many, name: nameOf(200) });
    expect(await untilTrue(source, client, KINDS)).toBeGreaterThan(250);
    expect(await source.requests()).toBeLessThan(200);
  });

  it('keeps its objects while the API server is down, and stays synced', async () => {
    const before = source.read.list('MeshEndpoints').length;
    await own.server.kill();
    await until('the source to notice', () => warnings().length > 0);
    expect(source.read.isSynced()).toBe(true);
    expect(source.read.list('MeshEndpoints')).toHaveLength(before);
    await own.server.restart();
    await putMany(3, 8083);
    expect(await untilTrue(source, client, KINDS)).toBeGreaterThan(before);
  });

  it('is current soon after the API server was frozen for half a minute', async () => {
    own.server.freeze();
    await sleep(30_000);
    own.server.thaw();
    await putMany(20, 8084);
    expect(await untilTrue(source, client, KINDS)).toBeGreaterThan(200);
    expect(await source.requests()).toBeLessThan(200);
  });

  it('reads all of a list though etcd is compacted between its pages', async () => {
    let pages = 0;
    const other = await testSource(own.server.kubeconfig, KINDS, {
      before: async ({ query }) => {
        if (query?.['continue'] === undefined || ++pages > 1) return;
        await putMany(20, 9000);
        await own.server.compact();
      },
    });
    other.start();
    await other.read.whenSynced();
    expect(pages).toBeGreaterThan(1);
    expect(await other.requests('410')).toBeGreaterThan(0);
    expect(await untilTrue(other, client, KINDS)).toBeGreaterThan(250);
    await other.close();
  });

  it('follows changes while etcd is compacted continuously', async () => {
    for (let port = 9001; port < 9011; port++) {
      await putMany(5, port);
      await own.server.compact();
    }
    expect(await untilTrue(source, client, KINDS)).toBeGreaterThan(250);
  });

  it('follows a kind whose CRD is deleted with all objects and created again', async () => {
    const crd = readManifests('dist/crds').find(({ metadata }) => metadata.name?.startsWith('meshtailnets'));
    if (!crd) throw new Error('dist/crds has no MeshTailnet');
    const ref = { kind: 'MeshTailnet', namespace: '', name: 'example' } as const;
    const old = source.read.get(ref);
    expect(old?.metadata.uid).toMatch(/./);
    await client.remove({ apiVersion: crd.apiVersion, kind: crd.kind, name: crd.metadata.name ?? '' });
    const isEmpty = () => Promise.resolve(source.read.list('MeshTailnet').length === 0);
    await until('the objects of the kind to go', isEmpty);
    await untilAway(crd);
    await client.create(withoutOrigin(crd));
    await waitUntilServed(client, crd);
    await client.apply(named(meshTailnet({ tailnet: 'new.ts.net' }), 'example') as KubeObject);
    await untilTrue(source, client, KINDS);
    const next = source.read.get(ref);
    expect(next?.spec.tailnet).toBe('new.ts.net');
    expect(next?.metadata.uid).not.toBe(old?.metadata.uid);
  });

  it('notices that the objects of a deleted namespace are deleted', async () => {
    const namespace = 'doomed';
    await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    for (const name of ['a', 'b']) await client.apply(named(meshEndpoints(), `doomed/${name}`) as KubeObject);
    await untilTrue(source, client, KINDS);
    expect(source.read.get({ kind: 'MeshEndpoints', namespace, name: 'a' })).toBeDefined();
    await client.remove({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
    const isGone = () => {
      const left = source.read
        .list('MeshEndpoints')
        .filter(({ metadata }) => metadata.namespace === namespace);
      const there = source.read.get({ kind: 'Namespace', namespace: '', name: namespace });
      return Promise.resolve(left.length === 0 && !there);
    };
    expect(await until('the namespace to go', isGone)).toBe(true);
    await untilTrue(source, client, KINDS);
  });
});

/** The warnings and errors that it logged. */
function warnings(): readonly unknown[] {
  return source.lines.filter(({ level }) => level !== 'info');
}

/** The server keeps a CRD until its objects are deleted. */
async function untilAway({ metadata }: KubeObject): Promise<void> {
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`;
  const isAway = async () => (await client.request('GET', path)).status === 404;
  await until('the definition to be away', isAway);
}

function withoutOrigin({ apiVersion, kind, metadata: { name = '' }, spec }: KubeObject): KubeObject {
  return { apiVersion, kind, metadata: { name }, spec };
}
