import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createEventRecorder } from '../../src/kubernetes/events/recorder.ts';
import type { ObjectEvent } from '../../src/store/resources.ts';
import { EventServer } from '../support/kubernetes/event-server.ts';
import type { ServerBehaviour } from '../support/kubernetes/event-server.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** The same in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const HOUR_MS = 3_600_000;

function begin() {
  const clock = new VirtualClock();
  const server = new EventServer();
  const outcomes = { written: 0, dropped: 0, failed: 0 };
  const failures: unknown[] = [];
  let count = 0;
  const events = createEventRecorder({
    transport: server,
    clock,
    now: () => new Date(Date.UTC(2026, 0, 31) + clock.now()),
    random: () => (count++ % 1000) / 1000,
    record: { events: ({ outcome }, by = 1) => void (outcomes[outcome] += by) },
    controller: 'example.com/operator',
    instance: 'operator-0',
    reportFailure: failure => failures.push(failure),
  });
  return { clock, server, outcomes, failures, events };
}

function event(fields: Partial<ObjectEvent> = {}, name = 'web'): ObjectEvent {
  return {
    regarding: { apiVersion: 'v1', kind: 'Service', namespace: 'default', name, uid: `uid-${name}` },
    type: 'Normal',
    reason: 'Seen',
    action: 'See',
    note: 'it was seen',
    ...fields,
  };
}

/** An event about an object of another namespace; of a cluster-scoped one where that is empty. */
function eventIn(namespace: string, name: string): ObjectEvent {
  return event({ regarding: { ...event({}, name).regarding, namespace } });
}

function bytes(text: string): number {
  return Buffer.byteLength(text);
}

describe('an event', () => {
  it('is written at once, with all required fields', async () => {
    const { clock, server, events, outcomes } = begin();
    events.record(event());
    await clock.settle();
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatchObject({
      verb: 'create',
      path: '/apis/events.k8s.io/v1/namespaces/default/events',
      body: {
        value: {
          apiVersion: 'events.k8s.io/v1',
          kind: 'Event',
          metadata: { namespace: 'default', name: expect.stringMatching(/^web\.[0-9a-f]+$/) as string },
          eventTime: '2026-01-31T00:00:00.000000Z',
          reportingController: 'example.com/operator',
          reportingInstance: 'operator-0',
          ...event(),
        },
      },
    });
    expect(outcomes).toEqual({ written: 1, dropped: 0, failed: 0 });
  });

  it('about a cluster-scoped object is in the default namespace', async () => {
    const { clock, server, events } = begin();
    events.record(event({ regarding: { apiVersion: 'v1', kind: 'Node', name: 'a' } }));
    events.record(event({ regarding: { apiVersion: 'v1', kind: 'Node', namespace: '', name: 'b' } }));
    await clock.settle();
    const path = '/apis/events.k8s.io/v1/namespaces/default/events';
    expect(server.requests.map(request => request.path)).toEqual([path, path]);
  });

  it.each([
    ['a long note', { note: 'x'.repeat(5000) }],
    ['a note of long characters', { note: '€'.repeat(700) }],
    ['a note of halves of characters', { note: '\u{D83D}'.repeat(700) }],
    ['a note of characters of two halves', { note: 'a' + '\u{1F600}'.repeat(700) }],
    ['long words', { reason: 'é'.repeat(100), action: 'x'.repeat(500) }],
    ['no words', { reason: '', action: '' }],
  ])('with %s is cut to the limits', async (_what, fields) => {
    const { clock, server, events } = begin();
    events.record(event(fields));
    await clock.settle();
    const { note, reason, action } = server.requests[0]?.body?.value as ObjectEvent;
    expect(bytes(note)).toBeLessThanOrEqual(1024);
    for (const word of [reason, action]) {
      expect(bytes(word)).toBeGreaterThan(0);
      expect(bytes(word)).toBeLessThanOrEqual(128);
    }
    expect([note, reason, action].join('')).not.toMatch(/\p{Surrogate}/u);
    if ('note' in fields) expect(note).toMatch(/.{200}\.\.\.$/su);
  });

  it('contains no secret, and has a valid name', async () => {
    const { clock, server, events } = begin();
    events.record(event({ note: 'asked with Authorization: Bearer abcdefghijklmnop' }, '../../Secrets?x'));
    await clock.settle();
    const { note, metadata } = server.requests[0]?.body?.value as ObjectEvent & {
      metadata: { name: string };
    };
    expect(note).not.toContain('abcdefghijklmnop');
    expect(metadata.name).toMatch(/^object\.[0-9a-f]+$/);
  });
});

describe('equal events', () => {
  it('are one object with a count, and a hundred at once need one request', async () => {
    const { clock, server, events, outcomes } = begin();
    for (let i = 0; i < 100; i++) events.record(event());
    await clock.advance(5000);
    expect(server.requests.map(({ verb }) => verb)).toEqual(['create']);
    expect([...server.stored.values()].map(({ series }) => series?.count)).toEqual([100]);
    expect(outcomes).toEqual({ written: 100, dropped: 0, failed: 0 });
  });

  it('for an hour need few requests, and the final count is correct', async () => {
    const { clock, server, events } = begin();
    for (let second = 0; second < 3600; second++) {
      events.record(event());
      await clock.advance(1000);
    }
    await clock.advance(HOUR_MS);
    expect(server.stored.size).toBe(1);
    expect(server.recorded).toBe(3600);
    expect(server.requests.length).toBeLessThanOrEqual(20);
    expect(clock.timers).toBe(0);
  });

  it.each([
    ['type', { type: 'Warning' }],
    ['reason', { reason: 'Other' }],
    ['action', { action: 'Other' }],
    ['note', { note: 'other' }],
    ['object', { regarding: { ...event().regarding, kind: 'Other' } }],
    ['uid of its object', { regarding: { ...event().regarding, uid: 'other' } }],
  ] as const)('have the same %s', async (_what, fields) => {
    const { clock, server, events } = begin();
    for (const fieldsOf of [{}, fields, {}, fields]) events.record(event(fieldsOf));
    await clock.advance(5000);
    expect([...server.stored.values()].map(({ series }) => series?.count)).toEqual([2, 2]);
  });

  it('become a new object after 6 minutes without one, and after the object was deleted', async () => {
    const { clock, server, events } = begin();
    events.record(event());
    await clock.advance(HOUR_MS);
    events.record(event());
    await clock.advance(2000);
    expect(server.stored.size).toBe(2);
    server.stored.clear();
    events.record(event());
    events.record(event());
    await clock.advance(20_000);
    expect([...server.stored.values()].map(({ series }) => series?.count)).toEqual([2]);
  });
});

describe('a flood of events', () => {
  it('is rate limited, and counted', async () => {
    const { clock, server, events, outcomes } = begin();
    for (let i = 0; i < 10_000; i++) events.record(event({}, `web-${i}`));
    await clock.advance(1000);
    expect(server.stored.size).toBe(100);
    expect(outcomes).toEqual({ written: 100, dropped: 9900, failed: 0 });
    await clock.advance(60_000);
    for (let i = 0; i < 1000; i++) events.record(event({ note: `${i}` }));
    await clock.advance(1000);
    expect(server.stored.size).toBe(161);
  });
});

describe('a namespace with more events than its share', () => {
  const floods = (namespaces: readonly string[], events: ReturnType<typeof begin>['events'], each = 1000) => {
    for (let i = 0; i < each; i++) for (const one of namespaces) events.record(eventIn(one, `web-${i}`));
  };
  const noisyOnes = (count: number) => Array.from({ length: count }, (_, index) => `noisy-${index}`);
  const storedIn = (server: EventServer, namespace: string) =>
    [...server.stored.keys()].filter(path => path.includes(`/namespaces/${namespace}/`)).length;

  it.each(['quiet', 'mesh-system', ''])('leaves all of its own to namespace "%s"', async quiet => {
    const { clock, server, events } = begin();
    for (let minute = 0; minute < 10; minute++) {
      floods(['noisy'], events);
      await clock.advance(60_000);
    }
    floods(['noisy'], events);
    floods([quiet], events, 100);
    await clock.advance(1000);
    expect(storedIn(server, quiet === '' ? 'default' : quiet)).toBe(100);
  });

  it('leaves a share to another one also where many do the same for an hour', async () => {
    const { clock, server, events } = begin();
    for (let minute = 0; minute < 60; minute++) {
      floods(noisyOnes(30), events, 60);
      await clock.advance(60_000);
    }
    floods(noisyOnes(30), events, 100);
    floods(['quiet'], events, 10);
    await clock.advance(60_000);
    expect(storedIn(server, 'quiet')).toBe(10);
  });

  it('does not delay those of another one while the server has it wait', async () => {
    const { clock, server, events } = begin();
    server.busyNamespace = 'noisy';
    floods(['noisy'], events, 100);
    events.record(eventIn('quiet', 'web'));
    await clock.settle();
    expect(storedIn(server, 'quiet')).toBe(1);
  });

  it('has no more series than its share, so that memory is bounded and others begin theirs', async () => {
    const { clock, server, events, outcomes } = begin();
    server.behaviour = 'hangs';
    for (let second = 0; second < 3600; second++) {
      floods(['noisy'], events, 1);
      events.record(eventIn('noisy', `more-${second}`));
      await clock.advance(1000);
    }
    const { dropped } = outcomes;
    floods(['quiet'], events, 100);
    expect(outcomes.dropped).toBe(dropped);
  });
});

describe('a server that is down', () => {
  it('costs few requests, is reported once, and later events are written', async () => {
    const { clock, server, events, outcomes, failures } = begin();
    server.behaviour = 'is-down';
    for (let second = 0; second < 3600; second++) {
      for (let i = 0; i < 3; i++) events.record(event({}, `web-${second}-${i}`));
      await clock.advance(1000);
    }
    expect(server.requests.length).toBeLessThan(3800);
    expect(failures).toHaveLength(1);
    expect(clock.timers).toBe(0);
    server.behaviour = 'answers';
    await clock.advance(60_000);
    events.record(event());
    await clock.advance(1000);
    expect(server.stored.size).toBe(1);
    expect(outcomes.written + outcomes.dropped + outcomes.failed).toBe(3 * 3600 + 1);
  });

  it('and never responds costs two requests and bounded memory', async () => {
    const { clock, server, events, outcomes } = begin();
    server.behaviour = 'hangs';
    for (let second = 0; second < 3600; second++) {
      events.record(event({}, `web-${second}`));
      await clock.advance(1000);
    }
    expect(server.requests).toHaveLength(2);
    expect(outcomes.dropped).toBe(2600);
  });
});

describe('a busy server', () => {
  it('gets the event after Retry-After', async () => {
    const { clock, server, events, outcomes } = begin();
    server.behaviour = 'is-busy';
    events.record(event());
    await clock.settle();
    server.behaviour = 'answers';
    await clock.advance(2000);
    expect(outcomes).toEqual({ written: 1, dropped: 0, failed: 0 });
  });
});

describe('a server that refuses', () => {
  it('gets no second request for the same event', async () => {
    const { clock, server, events, outcomes, failures } = begin();
    server.behaviour = 'refuses';
    for (let i = 0; i < 5; i++) events.record(event({}, `web-${i}`));
    await clock.advance(HOUR_MS);
    expect(server.requests).toHaveLength(5);
    expect(outcomes).toEqual({ written: 0, dropped: 0, failed: 5 });
    expect(failures).toHaveLength(1);
  });
});

describe('closing', () => {
  it('writes what is pending, and drops new events', async () => {
    const { clock, server, events, outcomes } = begin();
    for (let i = 0; i < 7; i++) events.record(event());
    await clock.settle();
    await events.close();
    expect(server.recorded).toBe(7);
    events.record(event());
    await clock.advance(HOUR_MS);
    expect(outcomes).toEqual({ written: 7, dropped: 1, failed: 0 });
    expect(clock.timers).toBe(0);
  });

  it('writes what was recorded while a request was open', async () => {
    const { server, events, outcomes } = begin();
    events.record(event());
    await Promise.resolve();
    events.record(event());
    await events.close();
    expect(server.recorded).toBe(2);
    expect(outcomes).toEqual({ written: 2, dropped: 0, failed: 0 });
  });

  it('creates the event again where it was deleted', async () => {
    const { clock, server, events, outcomes } = begin();
    events.record(event());
    await clock.settle();
    server.stored.clear();
    for (let i = 0; i < 2; i++) events.record(event());
    await events.close();
    expect([...server.stored.values()].map(({ series }) => series?.count)).toEqual([2]);
    expect(outcomes).toEqual({ written: 3, dropped: 0, failed: 0 });
  });

  it.each(['hangs', 'is-down'] as const)('ends within its timeout though the server %s', async behaviour => {
    const { clock, server, events, outcomes } = begin();
    server.behaviour = behaviour;
    for (let i = 0; i < 7; i++) events.record(event({}, `web-${i}`));
    await clock.advance(500);
    let isClosed = false;
    void events.close().then(() => (isClosed = true));
    await clock.advance(2000);
    expect(isClosed).toBe(true);
    expect(clock.timers).toBe(0);
    expect(outcomes.written + outcomes.dropped + outcomes.failed).toBe(7);
  });
});

describe('in any sequence', () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ tell: fc.nat(6), times: fc.integer({ min: 1, max: 40 }) }) },
    { weight: 4, arbitrary: fc.record({ wait: fc.constantFrom(0, 100, 1500, 20_000, 400_000) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        server: fc.constantFrom<ServerBehaviour>('answers', 'refuses', 'is-down', 'is-busy', 'hangs'),
      }),
    },
    { weight: 1, arbitrary: fc.constant('delete' as const) },
  );

  it('each event is written, dropped or failed once, with few timers and requests', async () => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
      const { clock, server, events, outcomes } = begin();
      let all = 0;
      for (const one of steps) {
        if (one === 'delete') server.stored.clear();
        else if ('server' in one) server.behaviour = one.server;
        else if ('wait' in one) await clock.advance(one.wait);
        else {
          all += one.times;
          for (let i = 0; i < one.times; i++)
            events.record(event({ note: `${one.tell}` }, `web-${one.tell % 3}`));
        }
      }
      let isClosed = false;
      void events.close().then(() => (isClosed = true));
      await clock.advance(2000);
      expect(isClosed).toBe(true);
      await clock.advance(HOUR_MS);
      expect(outcomes.written + outcomes.dropped + outcomes.failed).toBe(all);
      expect(clock.timers).toBe(0);
      expect(server.requests.length).toBeLessThanOrEqual(2 * all + 10);
    });
    await fc.assert(property, { seed, numRuns: 300 });
  });
});
