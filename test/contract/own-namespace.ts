import { describe, expect, it } from 'vitest';
import type { OwnNamespace, Workload, WorkloadKind } from '../../src/store/own-namespace.ts';
import { applyCases } from './apply.ts';

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

/** Reads an object that exists. */
async function existing(own: OwnNamespace, kind: WorkloadKind, name = 'meshd-example') {
  const object = await own.get(kind, name);
  if (!object) throw new Error(`there is no ${kind} ${name}`);
  return object;
}

async function versionOf(own: OwnNamespace, name = SECRET.name): Promise<string> {
  return (await own.secret(name))?.version ?? '';
}

function failingWith(reason: string) {
  return { name: 'ResourceError', reason };
}

/** The contract of the operator's own namespace, which is empty in each case. */
const cases: Readonly<Record<string, Case>> = {
  ...applyCases<OwnNamespace>(own => ({
    apply: labels => own.apply(serviceAccount(labels)),
    metadata: async () => (await existing(own, 'ServiceAccount'))['metadata'] as object,
  })),

  'returns what it stores': async own => {
    await own.apply(statefulSet(2));
    const stored = await existing(own, 'StatefulSet');
    expect(stored).toMatchObject(statefulSet(2));
    expect(stored).toMatchObject({ metadata: { generation: 1, uid: expect.stringMatching(/./) as string } });
  },

  'has no object of another name or kind': async own => {
    await own.apply(statefulSet(2));
    expect(await own.get('StatefulSet', 'meshd-other')).toBeUndefined();
    expect(await own.get('Service', 'meshd-example')).toBeUndefined();
    expect(await own.secret('meshd-example')).toBeUndefined();
    expect(await own.configMap('meshd-example')).toBeUndefined();
  },

  'counts the changes of a spec in its generation': async own => {
    await own.apply(statefulSet(2));
    await own.apply(statefulSet(0));
    expect(await existing(own, 'StatefulSet')).toMatchObject({
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
    await own.apply(service(1055));
    const { spec } = await existing(own, 'Service');
    expect(spec).toMatchObject({ clusterIP: address });
    const { clusterIP } = spec as { readonly clusterIP: string };
    await own.apply(service(1056));
    expect(await existing(own, 'Service')).toMatchObject({ spec: { clusterIP } });
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
    await own.apply(serviceAccount({}));
    const uid = uidOf(await existing(own, 'ServiceAccount'));
    await own.remove('ServiceAccount', 'meshd-example', owner.uid);
    expect(uidOf(await existing(own, 'ServiceAccount'))).toBe(uid);
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
