import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/api/problem.ts';
import { readDeclarations } from '../../src/tools/check/cluster.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import type { KubeErrorReason, KubeTransport } from '../../src/kubernetes/transport/transport.ts';
import { meshEndpoints } from '../support/objects.ts';
import { gatewayObject, named } from '../support/declared.ts';
import { findingText } from '../support/tools/checked.ts';

const WEB = named(meshEndpoints(), 'default/web');

/** A cluster whose only object is a MeshEndpoints, and in which lists at some paths fail. */
function clusterWhere(reasonAt: (path: string) => KubeErrorReason | undefined): KubeTransport {
  return {
    send: ({ path }) => {
      const reason = reasonAt(path);
      if (reason) return Promise.reject(new KubeError(reason, `list ${path}: ${reason}`));
      return Promise.resolve({ items: path.endsWith('/meshendpoints') ? [WEB] : [] });
    },
    stream: () => Promise.reject(new Error('nothing is watched')),
    close: () => Promise.resolve(),
  };
}

/** What is read of a cluster; objects by their kinds. */
async function readFrom(transport: KubeTransport, namespace?: string) {
  const { objects, findings, complete } = await readDeclarations(transport, {
    namespace,
    onKind: () => undefined,
  });
  const kinds = objects.map(({ fields }) => fields['kind']);
  return {
    kinds,
    findings: findings.map(formatProblem),
    has: (kind: 'MeshEndpoints' | 'MeshTailnet') => complete?.has(kind),
  };
}

describe('a kind of a cluster', () => {
  it('that is not served has no objects, and all of them are known', async () => {
    const transport = clusterWhere(path => (path.includes('meshtailnets') ? 'NotFound' : undefined));
    const { kinds, findings, has } = await readFrom(transport);
    expect([kinds, findings, has('MeshTailnet')]).toEqual([['MeshEndpoints'], [], true]);
  });

  it('that may not be listed is named in a finding, and the others are read', async () => {
    const transport = clusterWhere(path => (path.includes('meshtailnets') ? 'Forbidden' : undefined));
    const { kinds, findings, has } = await readFrom(transport, 'default');
    expect(kinds).toEqual(['MeshEndpoints']);
    expect(findings).toEqual([expect.stringMatching(/^meshtailnets cannot be read, so nothing/)]);
    expect([has('MeshTailnet'), has('MeshEndpoints')]).toEqual([false, true]);
  });

  it('that may be listed in one namespace alone is read there, and others may be elsewhere', async () => {
    const ofAll = (path: string) => path.endsWith('/meshendpoints') && !path.includes('/namespaces/');
    const transport = clusterWhere(path => (ofAll(path) ? 'Forbidden' : undefined));
    const { kinds, findings, has } = await readFrom(transport, 'default');
    expect([kinds, findings, has('MeshEndpoints')]).toEqual([['MeshEndpoints'], [], false]);
  });

  it('of which the API server returns a list in pages is read to its end', async () => {
    const pages = new Map<unknown, unknown>([
      [undefined, { items: [WEB], metadata: { continue: 'next' } }],
      ['next', { items: [named(meshEndpoints(), 'default/other')], metadata: {} }],
    ]);
    const transport = clusterWhere(() => undefined);
    const { kinds } = await readFrom({
      ...transport,
      send: request =>
        request.path.endsWith('/meshendpoints')
          ? Promise.resolve(pages.get(request.query?.['continue']))
          : transport.send(request),
    });
    expect(kinds).toEqual(['MeshEndpoints', 'MeshEndpoints']);
  });

  it.each<readonly [string, KubeErrorReason, KubeErrorReason | undefined]>([
    ['in all namespaces', 'Failed', undefined],
    ['in the one that may be read', 'Forbidden', 'Failed'],
  ])(
    'that the API server fails to list %s ends the check, and counts not as forbidden',
    async (_, first, then) => {
      const transport = clusterWhere(path => {
        if (!path.endsWith('/meshendpoints')) return undefined;
        return path.includes('/namespaces/') ? then : first;
      });
      await expect(readFrom(transport, 'default')).rejects.toMatchObject({ reason: 'Failed' });
    },
  );
});

/** A cluster with one HTTPRoute, and a CRD with one field and one rule, or why that cannot be read. */
function clusterWithRoute(spec: Readonly<Record<string, unknown>>, why?: KubeErrorReason): KubeTransport {
  const empty = clusterWhere(path => (path.includes('customresourcedefinitions') ? why : undefined));
  const route = gatewayObject('HTTPRoute', 'default/web', spec);
  const parts = {
    properties: { hostnames: { type: 'array', items: { type: 'string' } }, parentRefs: OPEN },
    'x-kubernetes-validations': [{ rule: 'has(self.hostnames)', message: 'hostnames are required here' }],
  };
  const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'object', ...parts } } };
  const crd = { spec: { versions: [{ name: 'v1', schema: { openAPIV3Schema } }] } };
  return {
    ...empty,
    send: request =>
      why === undefined &&
      request.path.endsWith('/customresourcedefinitions/httproutes.gateway.networking.k8s.io')
        ? Promise.resolve(crd)
        : request.path.endsWith('/v1/httproutes')
          ? Promise.resolve({ items: [route] })
          : empty.send(request),
  };
}

const OPEN = { 'x-kubernetes-preserve-unknown-fields': true };

describe('an object of Gateway API in a cluster', () => {
  const read = async (transport: KubeTransport) => {
    const { objects, findings } = await readDeclarations(transport, {
      namespace: undefined,
      onKind: () => undefined,
    });
    const routes = objects.filter(({ resource }) => resource?.kind === 'HTTPRoute');
    return { read: routes.length, findings: findings.map(findingText) };
  };
  const parentRefs = [{ name: 'public' }];

  it('that the CRD of the cluster refuses counts, with a warning', async () => {
    expect(await read(clusterWithRoute({ parentRefs }))).toEqual({
      read: 1,
      findings: [
        'warning Invalid: spec: hostnames are required here: the CRDs refuse the next change of the object',
      ],
    });
  });

  it('is right where that CRD accepts it, whatever newer ones have', async () => {
    const found = await read(clusterWithRoute({ parentRefs, hostnames: ['web.example.com'] }));
    expect(found).toEqual({ read: 1, findings: [] });
  });

  it.each(['Forbidden', 'NotFound'] as const)(
    'is not validated where its CRD is %s, with one note',
    async why => {
      const { read: count, findings } = await read(clusterWithRoute({ parentRefs }, why));
      expect(count).toBe(1);
      expect(findings).toEqual([expect.stringMatching(/^note NotRead: CRDs cannot be read, so objects/)]);
    },
  );
});
