import { describe, expect, it } from 'vitest';
import { parseTrust } from '../../../src/api/trust.ts';
import type { ReadReferenced } from '../../../src/store/referenced.ts';
import { sharedIndexes } from '../../../src/store/indexes.ts';
import { ResourceError } from '../../../src/store/resources.ts';
import { trustController } from '../../../src/controllers/mesh-trust/controller.ts';
import { readCaBundle } from '../../../src/traffic/upstream-tls.ts';
import { MemoryNamespace } from '../../support/controllers/mesh-tailnet/namespace.ts';
import { endpoint } from '../../support/objects.ts';
import { Runtime } from '../../support/runtime/runtime.ts';
import { CERTIFICATE, OTHER_CERTIFICATE } from '../../support/traffic/certificates.ts';
import { endpointsObject } from '../../support/traffic/objects.ts';

const SYNC_MS = 30_000;

const https = (name: string, caRef: object) =>
  endpointsObject(name, [endpoint({ port: 443, protocol: 'HTTPS', tls: { caRef } })]);

/** The controller, the ConfigMaps of users, and an API server that may be away. */
class Scene {
  readonly runtime = new Runtime([], sharedIndexes);
  readonly ownNamespace = new MemoryNamespace();
  readonly configMaps = new Map<string, Readonly<Record<string, string>>>();
  readonly away = new Set<string>();
  readonly reads: string[] = [];

  static async start(...objects: readonly object[]): Promise<Scene> {
    const scene = new Scene();
    const { memory, clock } = scene.runtime;
    await memory.start();
    const { ownNamespace, referenced } = scene;
    const mirrored = new Proxy(ownNamespace, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return name === 'apply' ? scene.apply : (value.bind(target) as unknown);
      },
    });
    const { log } = scene.runtime.telemetry;
    const deps = { caBundle: readCaBundle, referenced, ownNamespace: mirrored, clock, log };
    const controller = trustController({ ...deps, syncPeriodMs: SYNC_MS });
    scene.runtime.start(controller, { syncPeriodMs: SYNC_MS });
    await scene.put(...objects);
    return scene;
  }

  /** The watch of the operator has what it wrote. */
  readonly apply: MemoryNamespace['apply'] = async object => {
    await this.ownNamespace.apply(object);
    const metadata = { ...object.metadata, namespace: this.ownNamespace.namespace };
    await this.runtime.memory.author.put({ ...object, metadata });
  };

  readonly referenced: ReadReferenced = {
    configMap: (namespace, name) => {
      const key = `${namespace}/${name}`;
      this.reads.push(key);
      if (this.away.has(key)) return Promise.reject(new ResourceError('Unavailable', 'no response'));
      const data = this.configMaps.get(key);
      return Promise.resolve(data && { version: undefined, data });
    },
    secret: () => Promise.reject(new Error('the controller reads no Secret')),
  };

  async put(...objects: readonly object[]): Promise<void> {
    for (const object of objects) await this.runtime.memory.author.put(object);
    await this.pause();
  }

  /** After a run that has read or published, the next is a second later. */
  async pause(): Promise<void> {
    await this.runtime.clock.advance(1000);
  }

  async remove(name: string): Promise<void> {
    await this.runtime.memory.author.remove({ kind: 'MeshEndpoints', namespace: 'default', name });
    await this.pause();
  }

  /** The published references, with the first certificate or the reason. */
  published(): Readonly<Record<string, string>> | undefined {
    const stored = this.ownNamespace.find('ConfigMap', 'mesh-trust');
    const trust = stored && parseTrust(stored['data'] as Readonly<Record<string, string>>);
    return (
      trust &&
      Object.fromEntries([...trust].map(([ref, ca]) => [ref, ca.is === 'found' ? ca.pem : ca.reason]))
    );
  }

  get version(): string | undefined {
    return this.ownNamespace.find('ConfigMap', 'mesh-trust')?.metadata.resourceVersion;
  }
}

describe('the controller of mesh-trust', () => {
  it('writes nothing while no MeshEndpoints has a caRef', async () => {
    const scene = await Scene.start(endpointsObject('web'));
    expect(scene.published()).toBeUndefined();
  });

  it('publishes the certificates of a caRef, and why another has none', async () => {
    const scene = await Scene.start();
    scene.configMaps.set('default/ca', { 'ca.crt': `comment\n${CERTIFICATE}` });
    await scene.put(https('web', { name: 'ca' }), https('api', { name: 'none' }));
    expect(scene.published()).toEqual({
      'default/ca/ca.crt': CERTIFICATE,
      'default/none/ca.crt': 'CertificateNotFound',
    });
  });

  it('reads a ConfigMap once for all endpoints and keys that name it', async () => {
    const scene = await Scene.start();
    const tls = { caRef: { name: 'ca' } };
    const other = { caRef: { name: 'ca', key: 'other' } };
    const endpoints = [tls, tls, other].map((each, at) =>
      endpoint({ name: `e${at}`, meshIP: `100.64.0.${at + 1}`, port: 443, protocol: 'HTTPS', tls: each }),
    );
    await scene.put(endpointsObject('web', endpoints));
    scene.reads.length = 0;
    await scene.runtime.clock.advance(SYNC_MS);
    expect(scene.reads).toEqual(['default/ca']);
  });

  it('publishes a replaced certificate within the sync period, and writes nothing else', async () => {
    const scene = await Scene.start();
    scene.configMaps.set('default/ca', { 'ca.crt': CERTIFICATE });
    await scene.put(https('web', { name: 'ca' }));
    const { version } = scene;
    await scene.runtime.clock.advance(10 * SYNC_MS);
    expect(scene.version).toBe(version);
    scene.configMaps.set('default/ca', { 'ca.crt': OTHER_CERTIFICATE });
    await scene.runtime.clock.advance(SYNC_MS);
    expect(scene.published()).toEqual({ 'default/ca/ca.crt': OTHER_CERTIFICATE });
    scene.configMaps.clear();
    await scene.runtime.clock.advance(SYNC_MS);
    expect(scene.published()).toEqual({ 'default/ca/ca.crt': 'CertificateNotFound' });
  });

  it('keeps what is published while a ConfigMap cannot be read, and publishes the others', async () => {
    const scene = await Scene.start();
    scene.configMaps.set('default/ca', { 'ca.crt': CERTIFICATE });
    await scene.put(https('web', { name: 'ca' }));
    scene.away.add('default/ca').add('default/new');
    scene.configMaps.set('default/other', { 'ca.crt': OTHER_CERTIFICATE });
    await scene.put(https('api', { name: 'other' }), https('new', { name: 'new' }));
    await scene.runtime.clock.advance(3 * SYNC_MS);
    expect(scene.published()).toEqual({
      'default/ca/ca.crt': CERTIFICATE,
      'default/other/ca.crt': OTHER_CERTIFICATE,
    });
    expect(scene.runtime.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: 'ConfigMaps of tls.caRef cannot be read', count: 2 }),
    );
    scene.away.clear();
    await scene.runtime.clock.advance(SYNC_MS);
    expect(scene.published()).toHaveProperty(['default/new/ca.crt'], 'CertificateNotFound');
  });

  it('removes certificates a minute after their last reference', async () => {
    const scene = await Scene.start();
    scene.configMaps.set('default/ca', { 'ca.crt': CERTIFICATE });
    await scene.put(https('web', { name: 'ca' }));
    await scene.remove('web');
    await scene.runtime.clock.advance(59_000);
    expect(scene.published()).toEqual({ 'default/ca/ca.crt': CERTIFICATE });
    await scene.runtime.clock.advance(60_000);
    expect(scene.published()).toEqual({});
  });

  it('writes the ConfigMap again after others have changed or deleted it', async () => {
    const scene = await Scene.start();
    scene.configMaps.set('default/ca', { 'ca.crt': CERTIFICATE });
    await scene.put(https('web', { name: 'ca' }));
    await scene.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mesh-trust' }, data: {} });
    await scene.pause();
    expect(scene.published()).toEqual({ 'default/ca/ca.crt': CERTIFICATE });
    await scene.ownNamespace.remove('ConfigMap', 'mesh-trust');
    await scene.runtime.memory.author.remove({
      kind: 'ConfigMap',
      namespace: 'mesh-system',
      name: 'mesh-trust',
    });
    await scene.pause();
    expect(scene.published()).toEqual({ 'default/ca/ca.crt': CERTIFICATE });
  });

  it('reads 200 ConfigMaps a second, in turns by namespace', async () => {
    const scene = await Scene.start();
    const many = Array.from({ length: 450 }, (_, at) =>
      endpoint({ name: `e${at}`, port: 443, protocol: 'HTTPS', tls: { caRef: { name: `ca-${at}` } } }),
    );
    const author = scene.runtime.memory.author;
    await author.put(endpointsObject('many', many));
    await scene.runtime.clock.settle();
    expect(scene.reads).toHaveLength(200);
    scene.reads.length = 0;
    await author.put(https('quiet/api', { name: 'quiet' }));
    await scene.pause();
    expect(scene.reads).toHaveLength(200);
    expect(scene.reads.slice(0, 2)).toContain('quiet/quiet');
    scene.reads.length = 0;
    await scene.pause();
    await scene.pause();
    expect(scene.reads).toHaveLength(51);
  });

  it('reads 256 KB of new certificates of a namespace a second, and others meanwhile', async () => {
    const scene = await Scene.start();
    const endpoints = Array.from({ length: 20 }, (_, at) => {
      scene.configMaps.set(`default/ca-${at}`, { 'ca.crt': CERTIFICATE.repeat(200 + at) });
      return endpoint({ name: `e${at}`, port: 443, protocol: 'HTTPS', tls: { caRef: { name: `ca-${at}` } } });
    });
    scene.configMaps.set('quiet/ca', { 'ca.crt': CERTIFICATE });
    await scene.put(endpointsObject('many', endpoints));
    expect(Object.keys(scene.published() ?? {}).length).toBeLessThan(10);
    await scene.put(https('quiet/api', { name: 'ca' }));
    expect(scene.published()).toHaveProperty(['quiet/ca/ca.crt'], CERTIFICATE);
    expect(scene.reads.length).toBeLessThan(20);
    await scene.runtime.clock.advance(20_000);
    expect(new Set(scene.reads).size).toBe(21);
    expect(scene.published()).toHaveProperty(['default//'], 'TooManyTlsSettings');
  });

  it('publishes at most once a second, however often objects change', async () => {
    const scene = await Scene.start(https('web', { name: 'ca' }));
    const versions = new Set<string | undefined>();
    for (let at = 0; at < 50; at++) {
      await scene.runtime.memory.author.put(https('web', { name: `ca-${at}` }));
      await scene.runtime.clock.advance(100);
      versions.add(scene.version);
    }
    expect(versions.size).toBeLessThanOrEqual(6);
    await scene.pause();
    expect(scene.published()).toHaveProperty(['default/ca-49/ca.crt'], 'CertificateNotFound');
  });
});
