import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_VERSION } from '../../src/api/generated/kinds.ts';
import { LABELS } from '../../src/api/names.ts';
import { applyAll } from '../../src/lab/cluster/kube-apply.ts';
import { kubeClient } from '../../src/lab/cluster/kube-client.ts';
import { readManifests } from '../../src/lab/cluster/kube-manifests.ts';
import type { KubeRequest } from '../../src/resources/kubernetes/transport.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { pathOf } from '../../src/workloads/kinds.ts';
import { workloadsOn } from '../../src/workloads/kubernetes.ts';
import type { WorkloadKind, WorkloadObject, WorkloadSet } from '../../src/workloads/workloads.ts';
import { describeWorkloads } from '../contract/workloads.ts';
import type { Found } from '../contract/workloads.ts';
import { clientTransport } from '../support/cluster/client-transport.ts';
import { testCluster } from '../support/cluster/cluster.ts';
import { createNamespace, removeNamespace } from '../support/cluster/namespace.ts';
import type { Beside } from '../support/cluster/writing.ts';
import { meshTailnet } from '../support/objects.ts';
import { workload } from '../support/workloads.ts';

const client = kubeClient(testCluster().access);
const run = randomUUID().slice(0, 8);
const owners: string[] = [];
let namespace: string;
beforeAll(async () => {
  await applyAll(client, readManifests('dist/crds'));
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await Promise.all(owners.map(name => client.remove(tailnetRef(name))));
  await removeNamespace(client, namespace);
});

function tailnetRef(name: string) {
  return { apiVersion: API_VERSION, kind: 'MeshTailnet', name };
}

async function owner(prefix: string): Promise<WorkloadSet['owner']> {
  const name = `${prefix}-${run}`;
  owners.push(name);
  const created = await client.create({
    ...tailnetRef(name),
    ...meshTailnet(),
    metadata: { name },
  });
  return { ...tailnetRef(name), uid: created.metadata.uid ?? '' };
}

/** Workloads, and all that they ask; `beside` happens before each request. */
function open(beside?: Beside) {
  const asked: KubeRequest[] = [];
  const transport = clientTransport(client);
  const ask = async (request: KubeRequest) => {
    asked.push(request);
    await beside?.(request);
    return await transport.ask(request);
  };
  return { asked, workloads: workloadsOn({ transport: { ask }, clock: systemClock, random: () => 0 }) };
}

async function create(object: WorkloadObject): Promise<void> {
  await client.create(object, { fieldManager: 'kubectl-create' });
}

async function change(kind: WorkloadKind, name: string, merge: object): Promise<void> {
  const contentType = 'application/merge-patch+json';
  const path = `${pathOf(kind, namespace, name)}?fieldManager=kubectl-edit`;
  const { status, body } = await client.request('PATCH', path, merge, { contentType });
  if (status >= 300) throw new Error(JSON.stringify(body));
}

async function look(kind: WorkloadKind, name: string): Promise<Found | undefined> {
  const { status, body } = await client.request('GET', pathOf(kind, namespace, name));
  return status === 404 ? undefined : (body as Found);
}

describeWorkloads('workloads on an API server', unique => {
  const { workloads } = open();
  return Promise.resolve({ workloads, namespace, unique, owner, others: { create, change }, look });
});

describe('workloads on an API server, beyond what all do', () => {
  const object = (name: string, fields = {}) => workload('ConfigMap', `${namespace}/${name}`, fields);
  const setOf = async (name: string) => {
    const who = await owner(name);
    return (...objects: readonly WorkloadObject[]): WorkloadSet => ({
      owner: who,
      inventory: who.name,
      namespace,
      objects,
    });
  };

  it('ask for nothing but lists by their label in their namespace, where nothing has changed', async () => {
    const set = await setOf('idle');
    const { workloads, asked } = open();
    await workloads.apply(set(object('idle')));
    const before = asked.length;
    await workloads.apply(set(object('idle')));
    const again = asked.slice(before);
    expect(again).toHaveLength(8);
    const labelSelector = `${LABELS.owner}=${set().inventory}`;
    for (const { verb, path, query } of again) {
      expect({ verb, query }).toEqual({ verb: 'list', query: { labelSelector } });
      expect(path).toContain(`/namespaces/${namespace}/`);
      expect(path).not.toContain('secrets');
    }
    await workloads.apply(set(object('idle', { data: { color: 'red' } })));
    expect(asked.filter(({ verb }) => verb === 'apply')).toHaveLength(2);
  });

  it('write nothing anew after a restart of ours', async () => {
    const set = await setOf('restart');
    await open().workloads.apply(set(object('restart')));
    const before = await look('ConfigMap', 'restart');
    const { workloads, asked } = open();
    expect(await workloads.apply(set(object('restart')))).toMatchObject({ created: [], changed: [] });
    expect(asked.filter(({ verb }) => verb === 'apply')).toHaveLength(1);
    expect(await look('ConfigMap', 'restart')).toEqual(before);
  });

  it.each([
    ['says otherwise', { color: 'theirs' }],
    ['says the same', { color: 'blue' }],
    ['says something else', { other: 'theirs' }],
  ])('leave alone what others make at the very moment, which %s', async (what, data) => {
    const name = `race-${what.replaceAll(' ', '-')}`;
    const set = await setOf(name);
    const beside: Beside = async ({ verb }) => {
      if (verb === 'apply' && !(await look('ConfigMap', name))) {
        await client.create({
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { namespace, name },
          data,
        });
      }
    };
    const applied = open(beside).workloads.apply(set(object(name)));
    await expect(applied).rejects.toMatchObject({ reason: 'Unavailable' });
    const theirs = await look('ConfigMap', name);
    expect(theirs?.['data']).toEqual(data);
    expect(theirs?.metadata).not.toHaveProperty('ownerReferences');
    expect(theirs?.metadata).not.toHaveProperty('labels');
    await expect(open().workloads.apply(set(object(name)))).rejects.toMatchObject({ reason: 'Refused' });
  });

  it('leave alone what others made in the place of an object of ours while it was looked at', async () => {
    const set = await setOf('swapped');
    await open().workloads.apply(set(object('swapped')));
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'swapped' };
    const beside: Beside = async ({ verb }) => {
      if (verb !== 'apply' && verb !== 'delete') return;
      await client.remove(ref);
      const { apiVersion, kind, name } = ref;
      await client.create({
        apiVersion,
        kind,
        metadata: { namespace, name },
        data: { color: 'theirs' },
      });
    };
    const applied = open(beside).workloads.apply(set(object('swapped', { data: { color: 'red' } })));
    await expect(applied).rejects.toMatchObject({ reason: 'Unavailable' });
    await expect(applied).rejects.toThrow('ConfigMap/swapped is another one by now');
    expect((await look('ConfigMap', 'swapped'))?.['data']).toEqual({ color: 'theirs' });
    await client.remove(ref);
    await open().workloads.apply(set(object('swapped')));
    await open(beside).workloads.apply(set());
    expect((await look('ConfigMap', 'swapped'))?.['data']).toEqual({ color: 'theirs' });
  });

  it('wait for what is being deleted, and do not delete it twice', async () => {
    const set = await setOf('dying');
    const { workloads, asked } = open();
    await workloads.apply(set(object('dying')));
    await change('ConfigMap', 'dying', { metadata: { finalizers: ['example.com/theirs'] } });
    expect(await workloads.apply(set())).toMatchObject({ removed: ['ConfigMap/dying'] });
    expect(await workloads.apply(set())).toMatchObject({ removed: [] });
    expect(asked.filter(({ verb }) => verb === 'delete')).toHaveLength(1);
    const applied = workloads.apply(set(object('dying')));
    await expect(applied).rejects.toMatchObject({ reason: 'Unavailable' });
    await expect(applied).rejects.toThrow('ConfigMap/dying is being deleted');
    await change('ConfigMap', 'dying', { metadata: { finalizers: null } });
    expect(await workloads.apply(set(object('dying')))).toMatchObject({ created: ['ConfigMap/dying'] });
  });

  it('name a field that the kind does not have, and do not wait for it', async () => {
    const set = await setOf('unknown');
    const applied = open().workloads.apply(set(object('unknown', { unheard: 'of' })));
    await expect(applied).rejects.toMatchObject({ reason: 'Refused' });
    await expect(applied).rejects.toThrow(/ConfigMap\/unknown: .*\.unheard: field not declared in schema/);
  });

  it('remove nothing while they cannot see everything', async () => {
    const set = await setOf('blind');
    await open().workloads.apply(set(object('blind'), object('blind-old')));
    const beside: Beside = ({ path, verb }) =>
      verb === 'list' && path.endsWith('/roles') ? Promise.reject(new Error('cut')) : Promise.resolve();
    await expect(open(beside).workloads.apply(set(object('blind')))).rejects.toThrow('cut');
    expect(await look('ConfigMap', 'blind-old')).toBeDefined();
  });

  it('go with their owner', async () => {
    const set = await setOf('collected');
    await open().workloads.apply(set(object('collected')));
    await client.remove(tailnetRef(set().owner.name));
    await expect.poll(() => look('ConfigMap', 'collected'), { timeout: 120_000 }).toBeUndefined();
  });
});
