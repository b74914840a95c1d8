import { describe, expect, it } from 'vitest';
import type { OwnNamespace, Workload, WorkloadKind } from '../../src/store/own-namespace.ts';
import { applyCases } from './apply.ts';

type Case = (ownNamespace: OwnNamespace) => Promise<void>;

const owner = {
  apiVersion: 'mesh-gateway.dev/v1alpha1',
  kind: 'MeshTailnet',
  name: 'example',
  uid: '2f1d5a0c-7f4b-4a52-9d43-0a5b6e3c1d11',
  controller: true as const,
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
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
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
async function existing(ownNamespace: OwnNamespace, kind: WorkloadKind, name = 'meshd-example') {
  const object = await ownNamespace.get(kind, name);
  if (!object) throw new Error(`there is no ${kind} ${name}`);
  return object;
}

async function versionOf(ownNamespace: OwnNamespace, name = SECRET.name): Promise<string> {
  return (await ownNamespace.secret(name))?.version ?? '';
}

function failingWith(reason: string) {
  return { name: 'ResourceError', reason };
}

/** The contract of the operator's own namespace, which is empty in each case. */
const cases: Readonly<Record<string, Case>> = {
  ...applyCases<OwnNamespace>(ownNamespace => ({
    apply: labels => ownNamespace.apply(serviceAccount(labels)),
    metadata: async () => (await existing(ownNamespace, 'ServiceAccount'))['metadata'] as object,
  })),

  'returns what it stores': async ownNamespace => {
    await ownNamespace.apply(statefulSet(2));
    const stored = await existing(ownNamespace, 'StatefulSet');
    expect(stored).toMatchObject(statefulSet(2));
    expect(stored).toMatchObject({ metadata: { generation: 1, uid: expect.stringMatching(/./) as string } });
  },

  'has no object of another name or kind': async ownNamespace => {
    await ownNamespace.apply(statefulSet(2));
    expect(await ownNamespace.get('StatefulSet', 'meshd-other')).toBeUndefined();
    expect(await ownNamespace.get('Service', 'meshd-example')).toBeUndefined();
    expect(await ownNamespace.secret('meshd-example')).toBeUndefined();
    expect(await ownNamespace.configMap('meshd-example')).toBeUndefined();
  },

  'counts the changes of a spec in its generation': async ownNamespace => {
    await ownNamespace.apply(statefulSet(2));
    await ownNamespace.apply(statefulSet(0));
    expect(await existing(ownNamespace, 'StatefulSet')).toMatchObject({
      spec: { replicas: 0 },
      metadata: { generation: 2 },
    });
  },

  'gives a Service an address, which stays': async ownNamespace => {
    const ports = [{ name: 'proxy', port: 1055 }];
    const service = (port: number): Workload => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'meshd-example' },
      spec: { selector: { app: 'meshd' }, ports: ports.map(one => ({ ...one, port })) },
    });
    const address = expect.stringMatching(/^[0-9a-f.:]+$/) as string;
    await ownNamespace.apply(service(1055));
    const { spec } = await existing(ownNamespace, 'Service');
    expect(spec).toMatchObject({ clusterIP: address });
    const { clusterIP } = spec as { readonly clusterIP: string };
    await ownNamespace.apply(service(1056));
    expect(await existing(ownNamespace, 'Service')).toMatchObject({ spec: { clusterIP } });
  },

  'creates a Secret': async ownNamespace => {
    await ownNamespace.createSecret(SECRET);
    const { data, annotations } = SECRET;
    expect(await ownNamespace.secret(SECRET.name)).toEqual({
      data,
      annotations,
      version: expect.stringMatching(/./) as string,
    });
    const { labels, ownerReferences } = SECRET;
    expect(await ownNamespace.get('Secret', SECRET.name)).toMatchObject({
      metadata: { labels, ownerReferences },
    });
  },

  'creates no Secret where it exists': async ownNamespace => {
    await ownNamespace.createSecret(SECRET);
    const again = ownNamespace.createSecret({ ...SECRET, data: { authkey: 'tskey-auth-2' } });
    await expect(again).rejects.toMatchObject(failingWith('Unavailable'));
    expect((await ownNamespace.secret(SECRET.name))?.data).toEqual(SECRET.data);
  },

  'adds, changes and removes entries of a Secret': async ownNamespace => {
    await ownNamespace.createSecret(SECRET);
    const before = await versionOf(ownNamespace);
    await ownNamespace.changeSecret(SECRET.name, before, {
      data: { authkey: 'tskey-auth-2', text: null, missing: null, more: 'm' },
      annotations: { 'example.com/key': 'k2', 'example.com/other': 'o' },
    });
    expect(await ownNamespace.secret(SECRET.name)).toMatchObject({
      data: { authkey: 'tskey-auth-2', empty: '', more: 'm' },
      annotations: { 'example.com/key': 'k2', 'example.com/other': 'o' },
    });
    expect((await ownNamespace.secret(SECRET.name))?.data).not.toHaveProperty('text');
    expect(await versionOf(ownNamespace)).not.toBe(before);
    await ownNamespace.changeSecret(SECRET.name, await versionOf(ownNamespace), {
      annotations: { 'example.com/key': null },
    });
    expect((await ownNamespace.secret(SECRET.name))?.annotations).toEqual({ 'example.com/other': 'o' });
  },

  'changes only the version of a Secret that was read': async ownNamespace => {
    await ownNamespace.createSecret(SECRET);
    const old = await versionOf(ownNamespace);
    await ownNamespace.changeSecret(SECRET.name, old, { data: { device_id: 'd1' } });
    const late = ownNamespace.changeSecret(SECRET.name, old, { data: { authkey: null } });
    await expect(late).rejects.toMatchObject(failingWith('Unavailable'));
    expect((await ownNamespace.secret(SECRET.name))?.data).toEqual({ ...SECRET.data, device_id: 'd1' });
  },

  'changes no Secret that was created again': async ownNamespace => {
    await ownNamespace.createSecret(SECRET);
    const old = await versionOf(ownNamespace);
    await ownNamespace.remove('Secret', SECRET.name);
    const gone = ownNamespace.changeSecret(SECRET.name, old, { data: { authkey: null } });
    await expect(gone).rejects.toMatchObject(failingWith('Gone'));
    await ownNamespace.createSecret(SECRET);
    const late = ownNamespace.changeSecret(SECRET.name, old, { data: { authkey: null } });
    await expect(late).rejects.toMatchObject(failingWith('Unavailable'));
    expect((await ownNamespace.secret(SECRET.name))?.data).toEqual(SECRET.data);
  },

  'removes an object, and one that does not exist': async ownNamespace => {
    await ownNamespace.createSecret(SECRET);
    await ownNamespace.remove('Secret', SECRET.name);
    expect(await ownNamespace.secret(SECRET.name)).toBeUndefined();
    for (const kind of ['Secret', 'Pod', 'StatefulSet'] as const)
      await ownNamespace.remove(kind, SECRET.name);
  },

  'removes no object with another uid': async ownNamespace => {
    await ownNamespace.apply(serviceAccount({}));
    const uid = uidOf(await existing(ownNamespace, 'ServiceAccount'));
    await ownNamespace.remove('ServiceAccount', 'meshd-example', owner.uid);
    expect(uidOf(await existing(ownNamespace, 'ServiceAccount'))).toBe(uid);
    await ownNamespace.remove('ServiceAccount', 'meshd-example', uid);
    expect(await ownNamespace.get('ServiceAccount', 'meshd-example')).toBeUndefined();
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
