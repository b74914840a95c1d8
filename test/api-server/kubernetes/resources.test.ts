import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Ref, ResourceKind } from '../../../src/api/key.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject, KubeRef } from '../../../lab/kube/object.ts';
import { openKubernetes } from '../../../src/kubernetes/connect.ts';
import { restConfigSource } from '../../../src/kubernetes/auth/config-source.ts';
import { SERVED } from '../../../src/kubernetes/served-kinds.ts';
import type { ServedKind } from '../../../src/kubernetes/served-kinds.ts';
import { openTransport } from '../../../src/kubernetes/transport/open-transport.ts';
import { isServed } from '../../../src/kubernetes/reflector/responses.ts';
import type { KubeTransport } from '../../../src/kubernetes/transport/transport.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { sourceMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { describeResources } from '../../contract/resources.ts';
import { ApiPart } from '../../support/api-server/api-part.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';

const { access, kubeconfig } = sharedApiServer();
const client = kubeClient(access);
const kinds = Object.keys(SERVED) as ResourceKind[];

let transport: KubeTransport;
beforeAll(async () => {
  const ports = { clock: systemClock, now: () => new Date() };
  const found = await restConfigSource({ ...ports, kubeconfig, environment: {} });
  transport = openTransport({ ...ports, configSource: found });
});
afterAll(() => transport.close());

/** Other users of the cluster do not interfere: each case has a part of it. */
describeResources('a cluster', async ({ indexes, first, reportFailure }) => {
  const prefix = `part-${randomUUID().slice(0, 8)}-`;
  const part = new ApiPart(prefix);
  const made = new Map<string, KubeRef>();
  const put = async (object: object) => {
    const stored = await client.apply(part.outside(object) as KubeObject);
    if (stored.metadata.namespace === undefined)
      made.set(`${stored.kind}/${stored.metadata.name}`, refTo(stored));
  };
  for (const name of ['default', 'team-a'])
    await put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  for (const object of first) await put(object);
  const kubernetes = openKubernetes({
    transport: part.seenThrough(transport),
    kinds,
    indexes,
    reportFailure,
    clock: systemClock,
    random: Math.random,
    telemetry: {
      log: createLog({ level: 'error' }),
      metrics: createRegistry({ metrics: sourceMetrics, version: 'test' }),
      activities: createActivities(),
    },
  });
  return {
    ...kubernetes,
    author: { put, remove: ref => client.remove(outside(part, ref)) },
    start: () => {
      kubernetes.start();
      return Promise.resolve();
    },
    close: async () => {
      await kubernetes.close();
      for (const namespace of ['default', 'team-a']) await letGo(`${prefix}${namespace}`);
      for (const ref of made.values()) await client.remove(ref);
    },
  };
});

function outside(part: ApiPart, ref: Ref): KubeRef {
  const { kind, namespace, name } = part.refOutside(ref);
  const { group, versions } = SERVED[kind];
  const apiVersion = group === '' ? (versions[0] ?? '') : `${group}/${versions[0]}`;
  return { apiVersion, kind, name, ...(namespace === '' ? {} : { namespace }) };
}

function refTo({ apiVersion, kind, metadata: { name = '' } }: KubeObject): KubeRef {
  return { apiVersion, kind, name };
}

/** A namespace is deleted only after its objects. */
async function letGo(namespace: string): Promise<void> {
  const [version] = SERVED.MeshEndpoints.versions;
  const type = { apiVersion: `${SERVED.MeshEndpoints.group}/${version}`, kind: 'MeshEndpoints', namespace };
  for (const { metadata } of await client.list(type)) {
    const path = await client.pathOf({ ...type, name: metadata.name ?? '' });
    const contentType = 'application/merge-patch+json';
    await client.request('PATCH', path, { metadata: { finalizers: null } }, { contentType });
  }
}

it.each<[string, ServedKind, boolean]>([
  ['a kind of mesh-gateway', SERVED.MeshEndpoints, true],
  ['a kind of its own', SERVED.Namespace, true],
  ['a kind in its second version', { ...SERVED.HTTPRoute, versions: ['v0', 'v1beta1'] }, true],
  ['a kind in a version that is not served', { ...SERVED.HTTPRoute, versions: ['v0'] }, false],
  ['a kind that its group does not have', { ...SERVED.HTTPRoute, plural: 'nothings' }, false],
  ['a group that is not there', { ...SERVED.HTTPRoute, group: 'example.com' }, false],
])('a cluster reports whether it serves %s', async (_what, kind, answer) => {
  expect(await isServed(kind, path => transport.send({ verb: 'get', path }))).toBe(answer);
});
