import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import type { ObjectEvent } from '../../../src/store/resources.ts';
import { createEventRecorder } from '../../../src/kubernetes/events/recorder.ts';
import type { KubeEvents } from '../../../src/kubernetes/events/recorder.ts';
import type { KubeRequest } from '../../../src/kubernetes/transport/transport.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { clientTransport } from '../../support/api-server/client-transport.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';

const client = kubeClient(sharedApiServer().access);
const run = randomUUID().slice(0, 8);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

function begin() {
  const requests: KubeRequest[] = [];
  const outcomes = { written: 0, dropped: 0, failed: 0 };
  const failures: unknown[] = [];
  const transport = clientTransport(client);
  const events: KubeEvents = createEventRecorder({
    transport: {
      send: async request => {
        requests.push(request);
        return await transport.send(request);
      },
    },
    clock: systemClock,
    now: () => new Date(),
    random: Math.random,
    record: { events: ({ outcome }, by = 1) => void (outcomes[outcome] += by) },
    controller: 'mesh-gateway.dev/operator',
    instance: 'operator-0',
    reportFailure: failure => failures.push(failure),
  });
  return { events, requests, outcomes, failures };
}

function anEvent(name: string, fields: Partial<ObjectEvent> = {}): ObjectEvent {
  const uid = randomUUID();
  return {
    regarding: { apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace, name, uid },
    type: 'Warning',
    reason: 'EndpointUnhealthy',
    action: 'Probe',
    note: 'web does not answer',
    ...fields,
  };
}

async function eventsOf(name: string, where = namespace): Promise<readonly KubeObject[]> {
  const all = await client.list({ apiVersion: 'events.k8s.io/v1', kind: 'Event', namespace: where });
  return all.filter(event => (event['regarding'] as { readonly name?: string }).name === name);
}

describe('an event', () => {
  it('is in the namespace of its object, as users list it', async () => {
    const { events, outcomes, failures } = begin();
    events.record(anEvent('one'));
    await events.close();
    expect(failures).toEqual([]);
    expect(outcomes).toEqual({ written: 1, dropped: 0, failed: 0 });
    const [event, ...more] = await eventsOf('one');
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      reason: 'EndpointUnhealthy',
      action: 'Probe',
      type: 'Warning',
      note: 'web does not answer',
      reportingController: 'mesh-gateway.dev/operator',
      reportingInstance: 'operator-0',
    });
    const selector = 'involvedObject.name=one,involvedObject.kind=MeshEndpoints';
    const asUsers = await client.list(
      { apiVersion: 'v1', kind: 'Event', namespace },
      { fieldSelector: selector },
    );
    expect(asUsers).toHaveLength(1);
  });

  it('that is recorded a hundred times is one object with a count', async () => {
    const { events, requests, outcomes } = begin();
    const one = anEvent('many');
    for (let i = 0; i < 100; i++) events.record(one);
    await expect.poll(() => outcomes.written, { timeout: 60_000 }).toBe(100);
    expect(requests.map(({ verb }) => verb)).toEqual(['create']);
    expect(await eventsOf('many')).toMatchObject([{ series: { count: 100 } }]);
    events.record(one);
    await events.close();
    expect(await eventsOf('many')).toMatchObject([{ series: { count: 101 } }]);
  });

  it('starts again after it was deleted', async () => {
    const { events, outcomes } = begin();
    const one = anEvent('deleted');
    events.record(one);
    await expect.poll(() => outcomes.written, { timeout: 60_000 }).toBe(1);
    const [event] = await eventsOf('deleted');
    const ref = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      namespace,
      name: event?.metadata.name ?? '',
    };
    await client.remove(ref);
    events.record(one);
    events.record(one);
    await events.close();
    expect(await eventsOf('deleted')).toMatchObject([{ series: { count: 2 } }]);
  });

  it('of an object without a namespace is in the default one', async () => {
    const { events, outcomes } = begin();
    const name = `tailnet-${run}`;
    events.record(anEvent(name, { regarding: { apiVersion: API_VERSION, kind: 'MeshTailnet', name } }));
    await events.close();
    expect(outcomes.written).toBe(1);
    const [event] = await eventsOf(name, 'default');
    expect(event).toMatchObject({ metadata: { namespace: 'default' } });
    const { metadata } = event ?? {};
    await client.remove({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      namespace: 'default',
      name: metadata?.name ?? '',
    });
  });

  it.each([
    ['a note that is too long', { note: 'é'.repeat(2000) }],
    ['a note with halves of characters and zeros', { note: `a\u0000${'\u{D83D}'.repeat(900)}` }],
    ['no words, or too many', { reason: '', action: 'x'.repeat(300) }],
    ['an empty note', { note: '' }],
  ])('with %s is taken all the same', async (what, fields) => {
    const { events, outcomes, failures } = begin();
    const name = what.replaceAll(/[^a-z]+/g, '-');
    events.record(anEvent(name, fields));
    await events.close();
    expect(failures).toEqual([]);
    expect(outcomes).toEqual({ written: 1, dropped: 0, failed: 0 });
    expect(await eventsOf(name)).toHaveLength(1);
  });

  it('of an object with the longest possible name is accepted', async () => {
    const { events, outcomes } = begin();
    const name = 'a'.repeat(253);
    events.record(anEvent(name));
    await events.close();
    expect(outcomes.written).toBe(1);
    expect(await eventsOf(name)).toHaveLength(1);
  });

  it('in a missing namespace fails, and is counted', async () => {
    const { events, outcomes, failures } = begin();
    events.record(
      anEvent('lost', {
        regarding: { apiVersion: 'v1', kind: 'Service', namespace: 'nowhere', name: 'lost' },
      }),
    );
    await events.close();
    expect(outcomes).toEqual({ written: 0, dropped: 0, failed: 1 });
    expect(failures).toHaveLength(1);
  });
});
