import { statSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { gatewayObject, named, route } from '../../support/declared.ts';
import { makeFolders } from '../../support/files/folder.ts';
import { generatedIn } from '../../support/standalone/generated.ts';
import { endpoint, meshBinding, meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

import { filesOf, naming, secret, startGatewayFiles, web } from '../../support/standalone/gateway-files.ts';
import type { Shown } from '../../support/standalone/gateway-files.ts';

describe('the folder of Envoy Gateway', () => {
  it('has a part for each object of a supported kind, with mode 0600', async () => {
    const { put, names, generated, contentOf } = await startGatewayFiles(makeFolders());
    await put(
      'all.yaml',
      route('HTTPRoute', 'web'),
      web(),
      secret,
      meshTailnet(),
      gatewayObject('GatewayClass', 'mesh', { controllerName: 'example.com/one' }),
    );
    await eventually(() =>
      expect(names()).toEqual([
        'GatewayClass//mesh',
        'HTTPRoute/default/web',
        'MeshEndpoints/default/web',
        'Secret/default/cert',
      ]),
    );
    expect(statSync(generated).mode & 0o777).toBe(0o700);
    expect(filesOf(generated).map(({ mode }) => mode)).toEqual([0o600, 0o600]);
    expect(contentOf('MeshEndpoints/default/web')).toMatchObject({
      metadata: { namespace: 'default', generation: 1 },
      spec: { tailnet: 'example.ts.net' },
    });
    expect(contentOf('GatewayClass//mesh')['metadata']).toEqual({ name: 'mesh' });
  });

  it('keeps fields that mesh-gateway does not read: matches, filters and unknown ones', async () => {
    const { put, names, contentOf } = await startGatewayFiles(makeFolders());
    const rules = [
      {
        matches: [{ path: { type: 'Exact', value: '/a' } }],
        filters: [{ type: 'URLRewrite', urlRewrite: { hostname: 'x' } }],
        retry: { attempts: 3 },
        backendRefs: [],
      },
    ];
    await put('route.yaml', route('HTTPRoute', 'web', { rules }));
    await eventually(() => expect(names()).toEqual(['HTTPRoute/default/web']));
    expect(contentOf('HTTPRoute/default/web')).toMatchObject({ spec: { rules } });
  });

  it('follows changes and removals, and writes nothing that has not changed', async () => {
    const { put, remove, names, contentOf, generated } = await startGatewayFiles(makeFolders());
    await put('a.yaml', web(), secret);
    await put('naming.yaml', naming);
    await eventually(() => expect(names()).toHaveLength(3));
    const before = filesOf(generated);
    await put('a.yaml', web(), { ...secret, metadata: { ...secret.metadata, resourceVersion: '6' } });
    await put('b.yaml', route('HTTPRoute', 'wrong', { rules: 7 }));
    await eventually(() => expect(names()).toHaveLength(3));
    expect(filesOf(generated)).toEqual(before);
    await put('a.yaml', web(9090), { ...secret, metadata: { ...secret.metadata, resourceVersion: '7' } });
    await eventually(() =>
      expect(contentOf('MeshEndpoints/default/web')).toMatchObject({ metadata: { generation: 2 } }),
    );
    await remove('a.yaml');
    await eventually(() => expect(names()).toEqual(['GRPCRoute/default/naming']));
  });

  it('has no MeshEndpoints that only L4 routes refer to', async () => {
    const { put, names } = await startGatewayFiles(makeFolders());
    await put('a.yaml', web(), route('TCPRoute', 'web'), secret);
    await eventually(() => expect(names()).toHaveLength(2));
    expect(names()).toEqual(['Secret/default/cert', 'TCPRoute/default/web']);
    await put('b.yaml', naming);
    await eventually(() => expect(names()).toContain('MeshEndpoints/default/web'));
    await put('b.yaml', { ...secret, metadata: { name: 'other' } });
    await eventually(() => expect(names()).not.toContain('GRPCRoute/default/naming'));
    expect(names()).toContain('MeshEndpoints/default/web');
  });

  it('keeps the last valid version of an invalid object, and follows the rest of its file', async () => {
    const { put, names, contentOf } = await startGatewayFiles(makeFolders());
    await put('a.yaml', route('HTTPRoute', 'web'), secret);
    await eventually(() => expect(names()).toHaveLength(2));
    const before = contentOf('HTTPRoute/default/web');
    await put('a.yaml', route('HTTPRoute', 'web', { rules: 'wrong' }), {
      ...secret,
      stringData: { key: 'next' },
    });
    await eventually(() =>
      expect(contentOf('Secret/default/cert')).toMatchObject({ stringData: { key: 'next' } }),
    );
    expect(contentOf('HTTPRoute/default/web')).toEqual(before);
  });

  it('never has an object that was never valid', async () => {
    const { put, names } = await startGatewayFiles(makeFolders());
    await put(
      'a.yaml',
      route('HTTPRoute', 'bad', { rules: 'wrong' }),
      meshEndpoints({ endpoints: [endpoint({ port: 0 })] }),
      secret,
    );
    await eventually(() => expect(names()).toEqual(['Secret/default/cert']));
  });

  it('omits kinds that Envoy Gateway does not read, and logs why, once', async () => {
    const { put, names, lines } = await startGatewayFiles(makeFolders());
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'plain' }, spec: {} };
    const badName = { apiVersion: 'v1', kind: 'Secret', metadata: { name: '../up' } };
    await put('a.yaml', service, badName, secret);
    await eventually(() => expect(names()).toEqual(['Secret/default/cert']));
    await put('a.yaml', { ...service, spec: { type: 'ClusterIP' } }, badName, {
      ...secret,
      stringData: { key: 'next' },
    });
    await put('b.yaml', web(), naming);
    await eventually(() => expect(names()).toHaveLength(3));
    expect(lines.map(({ object }) => object).sort()).toEqual([
      'Secret/default/../up',
      'Service/default/plain',
    ]);
    expect(lines.find(({ object }) => object?.startsWith('Service'))?.why).toContain('Backend');
  });

  it('has a MeshBinding only after the objects of its revision', async () => {
    const { put, names, directory, contentOf } = await startGatewayFiles(makeFolders());
    const seen: boolean[] = [];
    const { read, write } = directory;
    read.subscribe(({ key }) => {
      if (key !== 'HTTPRoute/default/web') return;
      void write.apply({ ...(named(meshBinding(), 'default/public') as Parameters<typeof write.apply>[0]) });
    });
    const timer = setInterval(() => {
      if (names().some(name => name.startsWith('MeshBinding')))
        seen.push(names().includes('HTTPRoute/default/web'));
    }, 0);
    onTestFinished(() => clearInterval(timer));
    await put(
      'a.yaml',
      route('HTTPRoute', 'web'),
      ...Array.from({ length: 200 }, (_, at) => named(secret, `cert-${at}`)),
    );
    await eventually(() => expect(names()).toHaveLength(202));
    await eventually(() => expect(seen.length).toBeGreaterThan(0));
    expect(seen).not.toContain(false);
    expect(contentOf('MeshBinding/default/public')).toMatchObject({ spec: { attempt: 0 } });
  });

  it('changes one file for all changes of a moment, except kinds of which Envoy Gateway reads one per file', async () => {
    const { put, names, generated } = await startGatewayFiles(makeFolders());
    const proxies = ['one', 'two'].map(name => ({
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'EnvoyProxy',
      metadata: { name },
      spec: {},
    }));
    await put('a.yaml', ...proxies, ...Array.from({ length: 100 }, (_, at) => named(secret, `cert-${at}`)));
    await eventually(() => expect(names()).toHaveLength(102));
    const files = filesOf(generated).map(({ name }) => name.replace(/-[0-9a-f]{16}/, '-*'));
    expect(files.sort()).toEqual(['EnvoyProxy-*.yaml', 'EnvoyProxy-*.yaml', 'mesh-gateway.yaml']);
    const before = filesOf(generated);
    await put('a.yaml', ...proxies, ...Array.from({ length: 99 }, (_, at) => named(secret, `cert-${at}`)));
    await eventually(() => expect(names()).toHaveLength(101));
    const changed = filesOf(generated).filter((one, at) => one.writtenMs !== before[at]?.writtenMs);
    expect(changed.map(({ name }) => name)).toEqual(['mesh-gateway.yaml']);
  });

  it('logs the fields that Envoy Gateway keeps of an object that is referred to by name', async () => {
    const { put, contentOf, names, lines } = await startGatewayFiles(makeFolders());
    const filter = (spec: object) => ({
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'HTTPRouteFilter',
      metadata: { name: 'web' },
      spec,
    });
    const [urlRewrite, directResponse] = [{ hostname: { type: 'Backend' } }, { statusCode: 404 }];
    await put('a.yaml', filter({ urlRewrite }));
    await eventually(() => expect(names()).toHaveLength(1));
    await put('a.yaml', filter({ directResponse }));
    await eventually(() => expect(lines.at(-1)?.why).toContain('it keeps spec.urlRewrite'));
    await put('a.yaml', filter({ directResponse, urlRewrite }));
    await eventually(() =>
      expect(contentOf('HTTPRouteFilter/default/web')).toHaveProperty('spec.urlRewrite'),
    );
    expect(lines).toHaveLength(1);
  });

  it('renames a route that lost a field, and writes both names for some seconds', async () => {
    const clock = new VirtualClock();
    const { put, remove, generated, names } = await startGatewayFiles(makeFolders(), clock);
    const [full, less] = [
      route('HTTPRoute', 'web', { hostnames: ['a.example.com'] }),
      route('HTTPRoute', 'web'),
    ];
    const shown = () => {
      const text = generatedIn(generated).get('HTTPRoute/default/web') ?? '';
      const all = text.split('\n---\n').map(one => JSON.parse(one) as Shown);
      return all.map(({ metadata, spec }) => `${metadata.name} ${spec.hostnames?.join() ?? 'any'}`);
    };
    const becomes = (...wanted: readonly string[]) => eventually(() => expect(shown()).toEqual(wanted));
    const other = 'web.1.mesh-gateway.dev';
    await put('a.yaml', full);
    await eventually(() => expect(names()).toHaveLength(1));
    await put('a.yaml', less);
    await becomes(`${other} any`, 'web any');
    await put('a.yaml', full);
    await becomes(`${other} a.example.com`, 'web a.example.com');
    await put('a.yaml', less);
    await clock.advance(5150);
    await becomes(`${other} a.example.com`);
    await clock.advance(2150);
    await becomes('web any', `${other} any`);
    await clock.advance(5150);
    await becomes('web any');
    await remove('a.yaml');
    await eventually(() => expect(names()).toEqual([]));
    expect(clock.timers).toBe(0);
  });

  it('writes both names for longer the more objects Envoy Gateway has to read', async () => {
    const clock = new VirtualClock();
    const { put, generated, names } = await startGatewayFiles(makeFolders(), clock);
    const others = Array.from({ length: 99 }, (_, index) => route('HTTPRoute', `other-${index}`));
    await put('others.yaml', ...others);
    await put('a.yaml', route('HTTPRoute', 'web', { hostnames: ['a.example.com'] }));
    await eventually(() => expect(names()).toHaveLength(100));
    await put('a.yaml', route('HTTPRoute', 'web'));
    const count = () => (generatedIn(generated).get('HTTPRoute/default/web') ?? '').split('\n---\n').length;
    await eventually(() => expect(count()).toBe(2));
    await clock.advance(19_999);
    expect(count()).toBe(2);
    await clock.advance(1);
    await eventually(() => expect(count()).toBe(1));
  });

  it('uses the first of two files that define one object, as the store does', async () => {
    const { put, remove, names, contentOf } = await startGatewayFiles(makeFolders());
    const with_ = (value: string) => ({ ...secret, stringData: { key: value } });
    await put('b.yaml', with_('second'));
    await put('a.yaml', with_('first'));
    await eventually(() =>
      expect(names().length === 1 && contentOf('Secret/default/cert')).toMatchObject({
        stringData: { key: 'first' },
      }),
    );
    await remove('a.yaml');
    await eventually(() =>
      expect(contentOf('Secret/default/cert')).toMatchObject({ stringData: { key: 'second' } }),
    );
  });
});
