import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ManifestKey } from '../../src/files/manifests.ts';
import { eventually } from '../support/eventually.ts';
import { gatewayObject, named, route } from '../support/declared.ts';
import { makeFolders, openAndRead, removeFile, writeWhole } from '../support/files/folder.ts';
import type { Folders } from '../support/files/folder.ts';
import { meshEndpoints } from '../support/objects.ts';

const GATEWAY = 'gateway.networking.k8s.io';

/** A directory with onManifests, and what the store had at each call. */
async function open(folders: Folders = makeFolders()) {
  await mkdir(folders.folder, { recursive: true });
  const reported: { readonly key: ManifestKey; readonly isInStore: boolean }[] = [];
  const opened = await openAndRead(folders, {
    onManifests: keys => {
      for (const key of keys) reported.push({ key, isInStore: isInStore(key) });
    },
  });
  const { read, manifests } = opened;
  function isInStore(key: ManifestKey): boolean {
    const [, kind = '', namespace = '', name = ''] = key.split('|');
    return kind !== 'HTTPRoute' || read.get({ kind, namespace, name }) !== undefined;
  }
  const put = (file: string, ...objects: readonly unknown[]) =>
    writeWhole(join(folders.folder, file), objects.map(object => JSON.stringify(object)).join('\n---\n'));
  return { ...opened, manifests, reported, put };
}

const config = (data = 'a') => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c' },
  data: { data },
});

describe('a manifest in a directory', () => {
  it('is every object of another group with all of its fields', async () => {
    const { put, manifests } = await open();
    const content = gatewayObject('HTTPRoute', 'web', { rules: [{ filters: [{ type: 'X' }] }] }, 'v1beta1');
    await put(
      'a.yaml',
      content,
      config(),
      named(meshEndpoints(), 'web'),
      gatewayObject('GatewayClass', 'g', { controllerName: 'a.b/c' }),
    );
    await eventually(() => expect(manifests.keys()).toHaveLength(3));
    expect([...manifests.keys()].sort()).toEqual(
      [`${GATEWAY}|GatewayClass||g`, `${GATEWAY}|HTTPRoute|default|web`, '|ConfigMap|default|c'].sort(),
    );
    expect(manifests.get(`${GATEWAY}|HTTPRoute|default|web`)).toMatchObject({
      file: 'a.yaml',
      object: { content },
    });
  });

  it('is a Pod too, which only a cluster can run', async () => {
    const { put, manifests, read, problems } = await open();
    const pods = ['a', 'b'].map(name => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name } }));
    await put('a.yaml', ...pods, { apiVersion: 'v1', kind: 'Pod', metadata: { generateName: 'c-' } });
    await put('b.yaml', ...pods);
    await eventually(() =>
      expect([...manifests.keys()].sort()).toEqual(['|Pod|default|a', '|Pod|default|b']),
    );
    expect(read.list('Pod')).toEqual([]);
    expect(problems()).toEqual([]);
  });

  it('is reported after the store has changed', async () => {
    const { put, reported } = await open();
    await put('a.yaml', ...Array.from({ length: 50 }, (_, at) => route('HTTPRoute', `web-${at}`)), config());
    await eventually(() => expect(reported).toHaveLength(51));
    expect(reported.filter(({ isInStore }) => !isInStore)).toEqual([]);
  });

  it('is reported once when it changes, moves or is deleted', async () => {
    const { put, reported, manifests, folder } = await open();
    await put('a.yaml', config());
    await eventually(() => expect(reported).toHaveLength(1));
    await put('a.yaml', config('b'));
    await eventually(() =>
      expect(manifests.get('|ConfigMap|default|c')?.object.content).toMatchObject({ data: { data: 'b' } }),
    );
    await put('b.yaml', config('b'));
    await removeFile(join(folder, 'a.yaml'));
    await eventually(() => expect(manifests.get('|ConfigMap|default|c')?.file).toBe('b.yaml'));
    await removeFile(join(folder, 'b.yaml'));
    await eventually(() => expect(manifests.keys()).toEqual([]));
  });

  it('stays while a file is not YAML, empty or has an invalid object', async () => {
    const { put, manifests, folder } = await open();
    await put('a.yaml', config(), route('HTTPRoute', 'web'));
    await eventually(() => expect(manifests.keys()).toHaveLength(2));
    const before = manifests.get(`${GATEWAY}|HTTPRoute|default|web`)?.object;
    for (const text of ['{ broken', '', JSON.stringify(route('HTTPRoute', 'web', { rules: 1 }))]) {
      await writeFile(join(folder, 'a.yaml'), text);
      await put('b.yaml', { ...config(text), metadata: { name: 'other' } });
      await eventually(() =>
        expect(manifests.get('|ConfigMap|default|other')?.object.content).toMatchObject({
          data: { data: text },
        }),
      );
      expect(manifests.get(`${GATEWAY}|HTTPRoute|default|web`)?.object).toBe(before);
    }
    expect(manifests.hasUnread()).toBe(false);
  });

  it.each([
    ['v1', 'Secret'],
    ['gateway.envoyproxy.io/v1alpha1', 'BackendTrafficPolicy'],
    ['gateway.envoyproxy.io/v1alpha1', 'EnvoyProxy'],
  ])('is deleted when a file of kinds that are not read is emptied: %s %s', async (apiVersion, kind) => {
    const { put, manifests, folder } = await open();
    await put('a.yaml', { ...config(), apiVersion, kind });
    await eventually(() => expect(manifests.keys()).toHaveLength(1));
    await writeFile(join(folder, 'a.yaml'), '');
    await eventually(() => expect(manifests.keys()).toEqual([]));
  });

  it('is unknown while its file could never be read', async () => {
    const folders = makeFolders();
    await mkdir(folders.folder);
    await writeFile(join(folders.folder, 'a.yaml'), '{ broken');
    const { put, manifests } = await open(folders);
    expect(manifests.hasUnread()).toBe(true);
    await put('a.yaml', config());
    await eventually(() => expect(manifests.hasUnread()).toBe(false));
  });

  it('is not kept without onManifests', async () => {
    const folders = makeFolders();
    await mkdir(folders.folder);
    await writeFile(join(folders.folder, 'a.yaml'), JSON.stringify(config()));
    const { manifests } = await openAndRead(folders);
    expect(manifests.keys()).toEqual([]);
  });

  it.each([
    ['no metadata', { apiVersion: 'v1', kind: 'ConfigMap' }],
    ['no name', { apiVersion: 'v1', kind: 'ConfigMap', metadata: {} }],
    ['a name that is none', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 7 } }],
    ['a list', { apiVersion: 'v1', kind: 'ConfigMap', metadata: ['name'] }],
    ['a text', 'a text'],
  ])('is undefined for an object with %s', async (_what, object) => {
    const { put, manifests } = await open();
    await put('a.yaml', object, config());
    await eventually(() => expect(manifests.keys()).toEqual(['|ConfigMap|default|c']));
  });
});
