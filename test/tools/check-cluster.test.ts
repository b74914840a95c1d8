import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/api/problem.ts';
import { readDeclarations } from '../../src/tools/check/cluster.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import type { KubeErrorReason, KubeTransport } from '../../src/kubernetes/transport/transport.ts';
import { meshEndpoints } from '../support/objects.ts';
import { named } from '../support/declared.ts';

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
