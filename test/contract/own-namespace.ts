import { describe, expect, it } from 'vitest';
import type { OwnNamespace, Workload } from '../../src/store/own-namespace.ts';

type Case = (own: OwnNamespace) => Promise<void>;

const owner = {
  ...{ apiVersion: 'mesh-gateway.dev/v1alpha1', kind: 'MeshTailnet', name: 'example' },
  ...{ uid: '2f1d5a0c-7f4b-4a52-9d43-0a5b6e3c1d11', controller: true as const },
};
const SECRET = {
  name: 'meshd-example-0',
  labels: { a: 'b' },
  annotations: { 'example.com/key': 'k1' },
  ownerReferences: [owner],
  data: { authkey: 'tskey-auth-1', text: 'ünïcödé\n"quoted" \\', empty: '' },
};

function serviceAccount(labels: Readonly<Record<string, string>>): Workload {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'meshd-example', labels } };
}

function statefulSet(replicas: number): Workload {
  const labels = { app: 'meshd' };
  const containers = [{ name: 'meshd', image: 'example.com/meshd:1' }];
  return {
    ...{ apiVersion: 'apps/v1', kind: 'StatefulSet' },
    metadata: { name: 'meshd-example', labels, ownerReferences: [owner] },
    spec: {
      replicas,
      serviceName: 'meshd-example-pods',
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  };
}

async function versionOf(own: OwnNamespace, name = SECRET.name): Promise<string> {
  return (await own.secret(name))?.version ?? '';
}

function failingWith(reason: string) {
  return { name: 'ResourceError', reason };
}

/** The contract of the operator's own namespace, which is empty in each case. */
const cases: Readonly<Record<string, Case>> = {
  'returns what it stores': async own => {
    const stored = await own.apply(statefulSet(2));
    expect(stored).toMatchObject(statefulSet(2));
    expect(stored).toMatchObject({ metadata: { generation: 1, uid: expect.stringMatching(/./) as string } });
    // A controller of the cluster may have written its status meanwhile.
    const { spec } = stored;
    expect(await own.get('StatefulSet', 'meshd-example')).toMatchObject({
      ...{ spec, metadata: { generation: 1, uid: uidOf(stored) } },
    });
  },

  'has no object of another name or kind': async own => {
    await own.apply(statefulSet(2));
    expect(await own.get('StatefulSet', 'meshd-other')).toBeUndefined();
    expect(await own.get('Service', 'meshd-example')).toBeUndefined();
    expect(await own.secret('meshd-example')).toBeUndefined();
    expect(await own.configMap('meshd-example')).toBeUndefined();
  },

  'keeps the version of an object that is applied unchanged': async own => {
    const first = await own.apply(serviceAccount({ a: 'b' }));
    expect(await own.apply(serviceAccount({ a: 'b' }))).toEqual(first);
  },

  'replaces the fields that were applied before': async own => {
    const first = await own.apply(serviceAccount({ a: 'b', c: 'd' }));
    const next = await own.apply(serviceAccount({ a: 'e' }));
    expect(next['metadata']).toMatchObject({ labels: { a: 'e' }, uid: uidOf(first) });
    expect(next['metadata']).not.toHaveProperty('labels.c');
    await own.apply(statefulSet(2));
    expect(await own.apply(statefulSet(0))).toMatchObject({
      spec: { replicas: 0 },
      metadata: { generation: 2 },
    });
  },

  'gives a Service an address, which stays': async own => {
    const ports = [{ name: 'proxy', port: 1055 }];
    const service = (port: number): Workload => ({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'meshd-example' } },
      spec: { selector: { app: 'meshd' }, ports: ports.map(one => ({ ...one, port })) },
    });
    const address = expect.stringMatching(/^[0-9a-f.:]+$/) as string;
    const { spec } = await own.apply(service(1055));
    expect(spec).toMatchObject({ clusterIP: address });
    const { clusterIP } = spec as { readonly clusterIP: string };
    expect(await own.apply(service(1056))).toMatchObject({ spec: { clusterIP } });
  },

  'creates a Secret': async own => {
    await own.createSecret(SECRET);
    const { data, annotations } = SECRET;
    expect(await own.secret(SECRET.name)).toEqual({
      ...{ data, annotations },
      version: expect.stringMatching(/./) as string,
    });
    const { labels, ownerReferences } = SECRET;
    expect(await own.get('Secret', SECRET.name)).toMatchObject({ metadata: { labels, ownerReferences } });
  },

  'creates no Secret where it exists': async own => {
    await own.createSecret(SECRET);
    const again = own.createSecret({ ...SECRET, data: { authkey: 'tskey-auth-2' } });
    await expect(again).rejects.toMatchObject(failingWith('Unavailable'));
    expect((await own.secret(SECRET.name))?.data).toEqual(SECRET.data);
  },

  'adds, changes and removes entries of a Secret': async own => {
    await own.createSecret(SECRET);
    const before = await versionOf(own);
    await own.changeSecret(SECRET.name, before, {
      data: { authkey: 'tskey-auth-2', text: null, missing: null, more: 'm' },
      annotations: { 'example.com/key': 'k2', 'example.com/other': 'o' },
    });
    expect(await own.secret(SECRET.name)).toMatchObject({
      data: { authkey: 'tskey-auth-2', empty: '', more: 'm' },
      annotations: { 'example.com/key': 'k2', 'example.com/other': 'o' },
    });
    expect((await own.secret(SECRET.name))?.data).not.toHaveProperty('text');
    expect(await versionOf(own)).not.toBe(before);
    await own.changeSecret(SECRET.name, await versionOf(own), { annotations: { 'example.com/key': null } });
    expect((await own.secret(SECRET.name))?.annotations).toEqual({ 'example.com/other': 'o' });
  },

  'changes only the version of a Secret that was read': async own => {
    await own.createSecret(SECRET);
    const old = await versionOf(own);
    await own.changeSecret(SECRET.name, old, { data: { device_id: 'd1' } });
    const late = own.changeSecret(SECRET.name, old, { data: { authkey: null } });
    await expect(late).rejects.toMatchObject(failingWith('Unavailable'));
    expect((await own.secret(SECRET.name))?.data).toEqual({ ...SECRET.data, device_id: 'd1' });
  },

  'changes no Secret that was created again': async own => {
    await own.createSecret(SECRET);
    const old = await versionOf(own);
    await own.remove('Secret', SECRET.name);
    const gone = own.changeSecret(SECRET.name, old, { data: { authkey: null } });
    await expect(gone).rejects.toMatchObject(failingWith('Gone'));
    await own.createSecret(SECRET);
    const late = own.changeSecret(SECRET.name, old, { data: { authkey: null } });
    await expect(late).rejects.toMatchObject(failingWith('Unavailable'));
    expect((await own.secret(SECRET.name))?.data).toEqual(SECRET.data);
  },

  'removes an object, and one that does not exist': async own => {
    await own.createSecret(SECRET);
    await own.remove('Secret', SECRET.name);
    expect(await own.secret(SECRET.name)).toBeUndefined();
    for (const kind of ['Secret', 'Pod', 'StatefulSet'] as const) await own.remove(kind, SECRET.name);
  },

  'removes no object with another uid': async own => {
    const uid = uidOf(await own.apply(serviceAccount({})));
    await own.remove('ServiceAccount', 'meshd-example', owner.uid);
    expect(uidOf((await own.get('ServiceAccount', 'meshd-example')) ?? {})).toBe(uid);
    await own.remove('ServiceAccount', 'meshd-example', uid);
    expect(await own.get('ServiceAccount', 'meshd-example')).toBeUndefined();
  },
};

function uidOf({ metadata }: Readonly<Record<string, unknown>>): string {
  return (metadata as { readonly uid: string }).uid;
}

/** Runs all cases, each on an empty namespace. */
export function describeOwnNamespace(name: string, open: () => Promise<OwnNamespace>): void {
  describe(name, () => {
    it.each(Object.entries(cases))('%s', async (_sentence, expectOf) => expectOf(await open()));
  });
}
