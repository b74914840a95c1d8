import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eventsOn } from '../../../src/resources/kubernetes/events.ts';
import type { Told } from '../../../src/resources/events.ts';
import { EventServer } from '../../support/event-server.ts';
import type { Behaviour } from '../../support/event-server.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** The same in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const HOUR_MS = 3_600_000;

function begin() {
  const clock = new VirtualClock();
  const server = new EventServer();
  const outcomes = { written: 0, dropped: 0, failed: 0 };
  const failures: unknown[] = [];
  let count = 0;
  const events = eventsOn({
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

function told(fields: Partial<Told> = {}, name = 'web'): Told {
  return {
    regarding: { apiVersion: 'v1', kind: 'Service', namespace: 'default', name, uid: `uid-${name}` },
    type: 'Normal',
    reason: 'Seen',
    action: 'See',
    note: 'it was seen',
    ...fields,
  };
}

function bytes(text: string): number {
  return Buffer.byteLength(text);
}

describe('an event', () => {
  it('is written at once, with all that a server wants to know', async () => {
    const { clock, server, events, outcomes } = begin();
    events.tell(told());
    await clock.settle();
    expect(server.asked).toHaveLength(1);
    expect(server.asked[0]).toMatchObject({
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
          ...told(),
        },
      },
    });
    expect(outcomes).toEqual({ written: 1, dropped: 0, failed: 0 });
  });

  it('of what is in no namespace is in the default one', async () => {
    const { clock, server, events } = begin();
    events.tell(told({ regarding: { apiVersion: 'v1', kind: 'Node', name: 'a' } }));
    events.tell(told({ regarding: { apiVersion: 'v1', kind: 'Node', namespace: '', name: 'b' } }));
    await clock.settle();
    const path = '/apis/events.k8s.io/v1/namespaces/default/events';
    expect(server.asked.map(request => request.path)).toEqual([path, path]);
  });

  it.each([
    ['a long note', { note: 'x'.repeat(5000) }],
    ['a note of long characters', { note: '€'.repeat(700) }],
    ['a note of halves of characters', { note: '\u{D83D}'.repeat(700) }],
    ['a note of characters of two halves', { note: 'a' + '\u{1F600}'.repeat(700) }],
    ['long words', { reason: 'é'.repeat(100), action: 'x'.repeat(500) }],
    ['no words', { reason: '', action: '' }],
  ])('with %s is bounded', async (_what, fields) => {
    const { clock, server, events } = begin();
    events.tell(told(fields));
    await clock.settle();
    const { note, reason, action } = server.asked[0]?.body?.value as Told;
    expect(bytes(note)).toBeLessThanOrEqual(1024);
    for (const word of [reason, action]) {
      expect(bytes(word)).toBeGreaterThan(0);
      expect(bytes(word)).toBeLessThanOrEqual(128);
    }
    expect([note, reason, action].join('')).not.toMatch(/\p{Surrogate}/u);
    if ('note' in fields) expect(note).toMatch(/.{200}\.\.\.$/su);
  });

  it('never shows a secret, nor has an object with no proper name', async () => {
    const { clock, server, events } = begin();
    events.tell(told({ note: 'asked with Authorization: Bearer abcdefghijklmnop' }, '../../Secrets?x'));
    await clock.settle();
    const { note, metadata } = server.asked[0]?.body?.value as Told & { metadata: { name: string } };
    expect(note).not.toContain('abcdefghijklmnop');
    expect(metadata.name).toMatch(/^object\.[0-9a-f]+$/);
  });
});

describe('equal events', () => {
  it('a hundred of them are one object with a count, and two requests', async () => {
    const { clock, server, events, outcomes } = begin();
    for (let i = 0; i < 100; i++) events.tell(told());
    await clock.advance(5000);
    expect(server.asked.map(({ verb }) => verb)).toEqual(['create', 'patch']);
    expect([...server.kept.values()].map(({ series }) => series?.count)).toEqual([100]);
    expect(outcomes).toEqual({ written: 100, dropped: 0, failed: 0 });
  });

  it('that go on for an hour take few requests, and the count is right at the end', async () => {
    const { clock, server, events } = begin();
    for (let second = 0; second < 3600; second++) {
      events.tell(told());
      await clock.advance(1000);
    }
    await clock.advance(HOUR_MS);
    expect(server.kept.size).toBe(1);
    expect(server.told).toBe(3600);
    expect(server.asked.length).toBeLessThanOrEqual(20);
    expect(clock.timers).toBe(0);
  });

  it.each([
    ['type', { type: 'Warning' }],
    ['reason', { reason: 'Other' }],
    ['action', { action: 'Other' }],
    ['note', { note: 'other' }],
    ['object', { regarding: { ...told().regarding, kind: 'Other' } }],
    ['life of its object', { regarding: { ...told().regarding, uid: 'other' } }],
  ] as const)('are not those with another %s', async (_what, fields) => {
    const { clock, server, events } = begin();
    for (const fieldsOf of [{}, fields, {}, fields]) events.tell(told(fieldsOf));
    await clock.advance(5000);
    expect([...server.kept.values()].map(({ series }) => series?.count)).toEqual([2, 2]);
  });

  it('are news again after a silence, and after somebody deleted the event', async () => {
    const { clock, server, events } = begin();
    events.tell(told());
    await clock.advance(HOUR_MS);
    events.tell(told());
    await clock.advance(2000);
    expect(server.kept.size).toBe(2);
    server.kept.clear();
    events.tell(told());
    events.tell(told());
    await clock.advance(20_000);
    expect([...server.kept.values()].map(({ series }) => series?.count)).toEqual([2]);
  });
});

describe('a flood', () => {
  it('of one object is cut, counted, and leaves room for others', async () => {
    const { clock, server, events, outcomes } = begin();
    for (let i = 0; i < 1000; i++) events.tell(told({ note: `${i}` }));
    events.tell(told({}, 'other'));
    await clock.advance(1000);
    expect(server.kept.size).toBe(26);
    expect(outcomes).toEqual({ written: 26, dropped: 975, failed: 0 });
    await clock.advance(300_000);
    events.tell(told({ note: 'later' }));
    await clock.advance(1000);
    expect(server.kept.size).toBe(27);
  });

  it('of many objects is cut, and counted', async () => {
    const { clock, server, events, outcomes } = begin();
    for (let i = 0; i < 10_000; i++) events.tell(told({}, `web-${i}`));
    await clock.advance(1000);
    expect(server.kept.size).toBe(100);
    expect(outcomes).toEqual({ written: 100, dropped: 9900, failed: 0 });
  });
});

describe('a server that is down', () => {
  it('costs bounded memory and few requests, is reported once, and what is told later comes through', async () => {
    const { clock, server, events, outcomes, failures } = begin();
    server.behaviour = 'is-down';
    for (let second = 0; second < 3600; second++) {
      for (let i = 0; i < 3; i++) events.tell(told({}, `web-${second}-${i}`));
      await clock.advance(1000);
    }
    expect(server.asked.length).toBeLessThan(3600);
    expect(failures).toHaveLength(1);
    expect(clock.timers).toBeLessThanOrEqual(1);
    server.behaviour = 'answers';
    await clock.advance(60_000);
    const waited = server.kept.size;
    expect(waited).toBeGreaterThan(0);
    expect(waited).toBeLessThanOrEqual(256);
    events.tell(told());
    await clock.advance(1000);
    expect(server.kept.size).toBe(waited + 1);
    expect(outcomes.written + outcomes.dropped + outcomes.failed).toBe(3 * 3600 + 1);
  });

  it('that comes back in time has all of them', async () => {
    const { clock, server, events, outcomes } = begin();
    server.behaviour = 'is-down';
    for (let i = 0; i < 5; i++) events.tell(told({}, `web-${i}`));
    await clock.advance(5000);
    server.behaviour = 'answers';
    await clock.advance(30_000);
    expect(outcomes).toEqual({ written: 5, dropped: 0, failed: 0 });
    expect(server.told).toBe(5);
  });

  it('that loses its answers has each of them once', async () => {
    const { clock, server, events } = begin();
    server.behaviour = 'loses-answers';
    events.tell(told());
    events.tell(told());
    await clock.advance(1000);
    server.behaviour = 'answers';
    events.tell(told());
    await clock.advance(60_000);
    expect([...server.kept.values()].map(({ series }) => series?.count)).toEqual([3]);
  });
});

describe('a server that refuses', () => {
  it('is not asked twice for the same event', async () => {
    const { clock, server, events, outcomes, failures } = begin();
    server.behaviour = 'refuses';
    for (let i = 0; i < 5; i++) events.tell(told({}, `web-${i}`));
    await clock.advance(HOUR_MS);
    expect(server.asked).toHaveLength(5);
    expect(outcomes).toEqual({ written: 0, dropped: 0, failed: 5 });
    expect(failures).toHaveLength(1);
  });
});

describe('closing', () => {
  it('writes what has not been written, and takes no more', async () => {
    const { clock, server, events, outcomes } = begin();
    for (let i = 0; i < 7; i++) events.tell(told());
    await clock.settle();
    await events.close();
    expect(server.told).toBe(7);
    events.tell(told());
    await clock.advance(HOUR_MS);
    expect(outcomes).toEqual({ written: 7, dropped: 1, failed: 0 });
    expect(clock.timers).toBe(0);
  });

  it.each(['hangs', 'is-down'] as const)('ends soon though the server %s', async behaviour => {
    const { clock, server, events, outcomes } = begin();
    server.behaviour = behaviour;
    for (let i = 0; i < 7; i++) events.tell(told({}, `web-${i}`));
    await clock.advance(500);
    let isClosed = false;
    void events.close().then(() => (isClosed = true));
    await clock.advance(2000);
    expect(isClosed).toBe(true);
    expect(clock.timers).toBe(0);
    expect(outcomes.written + outcomes.dropped + outcomes.failed).toBe(7);
  });
});

describe('whatever happens', () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ tell: fc.nat(6), times: fc.integer({ min: 1, max: 40 }) }) },
    { weight: 4, arbitrary: fc.record({ wait: fc.constantFrom(0, 100, 1500, 20_000, 400_000) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        server: fc.constantFrom<Behaviour>('answers', 'refuses', 'is-down', 'loses-answers', 'hangs'),
      }),
    },
    { weight: 1, arbitrary: fc.constant('delete' as const) },
  );

  it('each event is written, dropped or failed once, and few timers and requests are spent on it', async () => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
      const { clock, server, events, outcomes } = begin();
      let all = 0;
      for (const one of steps) {
        if (one === 'delete') server.kept.clear();
        else if ('server' in one) server.behaviour = one.server;
        else if ('wait' in one) await clock.advance(one.wait);
        else {
          all += one.times;
          for (let i = 0; i < one.times; i++)
            events.tell(told({ note: `${one.tell}` }, `web-${one.tell % 3}`));
        }
      }
      let isClosed = false;
      void events.close().then(() => (isClosed = true));
      await clock.advance(2000);
      expect(isClosed).toBe(true);
      await clock.advance(HOUR_MS);
      expect(outcomes.written + outcomes.dropped + outcomes.failed).toBe(all);
      expect(clock.timers).toBe(0);
      expect(server.asked.length).toBeLessThanOrEqual(2 * all + 10);
    });
    await fc.assert(property, { seed, numRuns: 300 });
  });
});
