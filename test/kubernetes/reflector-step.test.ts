import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KubeErrorReason } from '../../src/kubernetes/transport/transport.ts';
import { NEW, DEFAULT_TIMING } from '../../src/kubernetes/reflector/state.ts';
import type {
  StepContext,
  ReflectorEvent,
  Next,
  ReflectorState,
  Step,
} from '../../src/kubernetes/reflector/state.ts';
import { step } from '../../src/kubernetes/reflector/step.ts';
import { runs } from '../support/runs.ts';

const REASONS: readonly KubeErrorReason[] = [
  ...(['Unauthorized', 'Forbidden', 'NotFound', 'Conflict', 'Expired', 'Invalid'] as const),
  ...(['Busy', 'Failed', 'Unreachable', 'Malformed', 'Aborted'] as const),
];

const versions = fc.constantFrom('', '5', '10', '11', '200', 'abc');
const tokens = fc.constantFrom('', '', 'a', 'b', 'c');
const objects = fc.array(fc.constantFrom<unknown>({}, null, 7, 'x'), { maxLength: 2 });
const reasons = fc.constantFrom(...REASONS);

const failures: fc.Arbitrary<ReflectorEvent> = fc
  .tuple(reasons, fc.constantFrom(undefined, 0, 1000, 1e9))
  .map(([reason, retryAfterMs]) => ({
    event: 'failure',
    reason,
    message: 'no',
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }));

const anything: fc.Arbitrary<ReflectorEvent> = fc.oneof(
  fc.constantFrom<ReflectorEvent>(
    { event: 'due' },
    { event: 'opened' },
    { event: 'ended' },
    { event: 'idle' },
  ),
  fc.tuple(objects, versions, tokens).map(([page, version, token]): ReflectorEvent => {
    return { event: 'page', objects: page, version, token };
  }),
  fc.boolean().map((isServed): ReflectorEvent => ({ event: 'discovered', isServed })),
  fc.tuple(fc.constantFrom('put', 'remove'), versions).map(([change, version]): ReflectorEvent => {
    return { event: 'change', change, object: {}, version };
  }),
  versions.map((version): ReflectorEvent => ({ event: 'bookmark', version })),
  failures,
);

const rolls = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

function given(now: number, random = 0.5, versionCount = 2): StepContext {
  return { now, random, versions: versionCount, timing: DEFAULT_TIMING };
}

function isRequest({ do: what }: Next): boolean {
  return what === 'list' || what === 'watch' || what === 'discover';
}

/** The least time until the next event. */
function timeOf(next: Next, event: ReflectorEvent): number {
  if (next.do === 'wait') return next.ms;
  return event.event === 'idle' ? DEFAULT_TIMING.idleTimeoutMs : 0;
}

const LIST = { event: 'page', objects: [], version: '7', token: '' } as const;
const SERVED: ReflectorEvent = { event: 'discovered', isServed: true };
const UNSERVED: ReflectorEvent = { event: 'discovered', isServed: false };

function failure(reason: KubeErrorReason, retryAfterMs?: number): ReflectorEvent {
  return { event: 'failure', reason, message: 'no', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

/** Requests per second within an hour to a server that responds at once. */
function requestsPerSecond(answer: (next: Next, state: ReflectorState) => ReflectorEvent): number {
  let { state, next } = step(NEW, { event: 'due' }, given(0));
  let now = 0;
  let requests = 1;
  while (now < 3_600_000 && requests < 100_000) {
    const event: ReflectorEvent = next.do === 'wait' ? { event: 'due' } : answer(next, state);
    now += timeOf(next, event);
    ({ state, next } = step(state, event, given(now)));
    if (isRequest(next)) requests++;
  }
  return requests / (now / 1000);
}

/** The last of the steps for a sequence of events. */
function after(all: readonly ReflectorEvent[], now = 0): Step {
  return all.reduce<Step>(({ state }, event) => step(state, event, given(now)), {
    state: NEW,
    effects: [],
    next: { do: 'stop' },
  });
}

const GO: ReflectorEvent = { event: 'due' };
const EMPTY = { do: 'remove-all' } as const;
const WATCHED: readonly ReflectorEvent[] = [GO, LIST, { event: 'opened' }];
const list = { do: 'list', versionIndex: 0, token: '', halvings: 0 } as const;
const wait = { do: 'wait', ms: expect.any(Number) as number };
const watch = { do: 'watch', versionIndex: 0, resourceVersion: '7', forMs: 450_000 };

describe('the next action', () => {
  it.each<[string, readonly ReflectorEvent[], unknown]>([
    ['starting leads to a list', [GO], list],
    ['a page with a token leads to the next page', [GO, page('a')], { ...list, token: 'a' }],
    [
      'the last page leads to a watch from the version of the first',
      [GO, page('a'), { ...LIST, version: '9' }],
      watch,
    ],
    ['404 leads to the next version', [GO, failure('NotFound')], { ...list, versionIndex: 1 }],
    [
      '404 in the last version leads to discovery',
      [GO, failure('NotFound'), failure('NotFound')],
      { do: 'discover' },
    ],
    ['404 on a later page leads to a wait', [GO, page('a'), failure('NotFound')], wait],
    ['410 on a page leads to a list', [GO, page('a'), failure('Expired')], list],
    ['a second 410 leads to a wait', [GO, failure('Expired'), failure('Expired')], wait],
    ['403 leads to a wait', [GO, failure('Forbidden')], wait],
    ['a list after garbage has smaller pages', [GO, failure('Malformed'), GO], { ...list, halvings: 1 }],
    [
      'pages stay smaller for the whole list',
      [GO, page('a'), failure('Malformed'), GO, page('a')],
      { ...list, token: 'a', halvings: 1 },
    ],
    [
      'pages do not become smaller than a 32nd',
      [GO, ...Array.from({ length: 9 }, () => [failure('Malformed'), GO]).flat()],
      { ...list, halvings: 5 },
    ],
    [
      'pages have their full size after a complete list',
      [GO, failure('Malformed'), GO, LIST, failure('Expired')],
      list,
    ],
    [
      'a list after one that timed out has smaller pages',
      [GO, { ...failure('Unreachable'), tookMs: 30_000 } as ReflectorEvent, GO],
      { ...list, halvings: 1 },
    ],
    ['other failures do not make pages smaller', [GO, failure('Unreachable'), GO], list],
    ['the wait after a failed list leads to a list', [GO, failure('Failed'), GO], list],
    [
      '429 leads to a wait of Retry-After and the backoff',
      [GO, failure('Busy', 2000)],
      { do: 'wait', ms: 2100 },
    ],
    ['Retry-After counts up to half a minute', [GO, failure('Busy', 1e9)], { do: 'wait', ms: 30_100 }],
    ['a change leads to the next line', [...WATCHED, change('8')], { do: 'read-watch' }],
    [
      'the end of a short watch with changes leads to the shortest wait',
      [...WATCHED, change('8'), { event: 'ended' }],
      wait,
    ],
    ['an idle timeout leads to a watch', [...WATCHED, { event: 'idle' }], watch],
    [
      'a watch after a change starts from it',
      [...WATCHED, change('8'), { event: 'idle' }],
      { ...watch, resourceVersion: '8' },
    ],
    ['two idle timeouts lead to a list', [...WATCHED, { event: 'idle' }, { event: 'idle' }], list],
    [
      'an idle timeout between changes leads to a watch',
      [...WATCHED, { event: 'idle' }, change('8'), { event: 'idle' }],
      { ...watch, resourceVersion: '8' },
    ],
    ['410 of a watch leads to a list', [...WATCHED, failure('Expired')], list],
    [
      '410 of the next watch leads to a wait',
      [...WATCHED, failure('Expired'), LIST, failure('Expired')],
      wait,
    ],
    ['the wait after a failed watch leads to a watch', [...WATCHED, failure('Failed'), GO], watch],
    ['the wait after a watch that is refused leads to a list', [...WATCHED, failure('Forbidden'), GO], list],
    ['garbage twice leads to a list', [...WATCHED, failure('Malformed'), GO, failure('Malformed'), GO], list],
    ['an older bookmark leads to a list', [...WATCHED, { event: 'bookmark', version: '6' }], list],
    ['an older change leads to a list', [...WATCHED, change('6')], list],
  ])('%s', (_sentence, event, next) => {
    expect(after(event).next).toEqual(next);
  });

  it('five failed watches in a row lead to a list', () => {
    const failing = [failure('Unreachable'), GO];
    expect(after([...WATCHED, ...Array.from({ length: 4 }, () => failing).flat()]).next).toEqual(watch);
    expect(after([...WATCHED, ...Array.from({ length: 5 }, () => failing).flat()]).next).toEqual(list);
  });

  it('a watch that was open for five seconds leads to a watch at once, and resets failures', () => {
    const { state } = after([...WATCHED, failure('Failed'), GO, { event: 'opened' }]);
    const done = step(state, { event: 'ended' }, given(5000));
    expect(done.next).toEqual(watch);
    expect(done.state.watchFailures).toBe(0);
  });
});

describe('the effects on the store', () => {
  const lost = [failure('NotFound'), failure('NotFound')];
  it.each<[string, readonly ReflectorEvent[], readonly unknown[]]>([
    [
      'pages are stored, and missing objects are removed after the last',
      [GO, page('a'), LIST],
      [
        { do: 'put-page', objects: [], isInInitialList: true },
        { do: 'end-list', version: '7', isInInitialList: true },
        { do: 'report-synced' },
      ],
    ],
    [
      'a later list is live',
      [...WATCHED, failure('Expired'), LIST],
      [
        { do: 'begin-list', version: '7' },
        { do: 'put-page', objects: [], isInInitialList: false },
        { do: 'end-list', version: '7', isInInitialList: false },
      ],
    ],
    ['404 removes nothing', [...WATCHED, failure('Expired'), ...lost], []],
    ['404 removes nothing where the kind is served', [...WATCHED, failure('Expired'), ...lost, SERVED], []],
    [
      '404 removes nothing where discovery is not found',
      [...WATCHED, failure('Expired'), ...lost, failure('NotFound')],
      [],
    ],
    [
      '404 removes nothing where discovery is forbidden',
      [...WATCHED, failure('Expired'), ...lost, failure('Forbidden')],
      [],
    ],
    [
      'all objects are removed when the kind is not served',
      [...WATCHED, failure('Expired'), ...lost, UNSERVED],
      [{ do: 'remove-all' }],
    ],
    ['a kind that was never served is synced', [GO, ...lost, UNSERVED], [EMPTY, { do: 'report-synced' }]],
    [
      'the objects of an incomplete list are removed too',
      [GO, page('a'), failure('Failed'), GO, ...lost, UNSERVED],
      [EMPTY, { do: 'report-synced' }],
    ],
    [
      'a new kind is synced where discovery is forbidden',
      [GO, ...lost, failure('Forbidden')],
      [EMPTY, { do: 'report-synced' }],
    ],
    ['a broken proxy does not make a kind synced', [GO, ...lost, failure('NotFound')], []],
    [
      'a kind that is still not served is not discovered again',
      [GO, ...lost, UNSERVED, GO, ...lost],
      [EMPTY],
    ],
  ])('%s', (_sentence, event, effects) => {
    expect(after(event).effects).toEqual(effects);
  });
});

function page(token: string): ReflectorEvent {
  return { event: 'page', objects: [{}], version: '7', token };
}

function change(version: string): ReflectorEvent {
  return { event: 'change', change: 'put', object: {}, version };
}

describe('a step', () => {
  it('leads on from any state with any event', () => {
    const property = fc.property(
      fc.array(fc.tuple(anything, rolls, fc.nat(10_000)), { maxLength: 60 }),
      all => {
        let state = NEW;
        let now = 0;
        for (const [event, random, later] of all) {
          now += later;
          const done = step(state, event, given(now, random));
          expect(done.state.is).not.toBe('closed');
          expect(done.next.do).not.toBe('stop');
          if (done.next.do === 'read-watch') expect(done.state.is).toBe('watching');
          if (done.next.do === 'wait') expect(done.next.ms).toBeGreaterThanOrEqual(100);
          if (done.next.do === 'wait') expect(done.next.ms).toBeLessThanOrEqual(90_000);
          state = done.state;
        }
      },
    );
    fc.assert(property, runs(2000));
  });

  it('has a bounded rate of requests with any responses', () => {
    const script = fc.array(fc.tuple(anything, rolls), { minLength: 1, maxLength: 40 });
    const property = fc.property(script, answers => {
      let { state, next } = step(NEW, { event: 'due' }, given(0));
      let now = 0;
      let requests = 1;
      let pages = 0;
      for (let heards = 0; heards < 3000 && now < 600_000; heards++) {
        const [answer, random] = answers[heards % answers.length] ?? [{ event: 'ended' }, 0];
        const event: ReflectorEvent = next.do === 'wait' ? { event: 'due' } : answer;
        now += timeOf(next, event);
        if (event.event === 'page' && state.is === 'listing' && event.objects.length > 0) pages++;
        ({ state, next } = step(state, event, given(now, random)));
        if (isRequest(next)) requests++;
      }
      // At most a list of two versions and a watch between two pauses of at least 0.1 s, and pages that had objects.
      expect(requests - pages).toBeLessThanOrEqual(20 + (now / 100) * 6);
    });
    fc.assert(property, runs(300));
  });

  it.each<[string, (next: Next) => ReflectorEvent]>([
    ['410', () => failure('Expired')],
    ['404', () => failure('NotFound')],
    ['403', () => failure('Forbidden')],
    ['429', () => failure('Busy')],
    ['a reset', () => failure('Unreachable')],
    ['garbage', () => failure('Malformed')],
    ['the end', () => ({ event: 'ended' })],
    ['an unexpected event', () => ({ event: 'discovered', isServed: true })],
    ['a list, and 410 to each watch', next => (next.do === 'list' ? LIST : failure('Expired'))],
    ['a list, and the end of each watch', next => (next.do === 'list' ? LIST : { event: 'ended' })],
    ['a list, and 403 to each watch', next => (next.do === 'list' ? LIST : failure('Forbidden'))],
    ['a list, and 500 to each watch', next => (next.do === 'list' ? LIST : failure('Failed'))],
    ['endless pages', () => ({ ...LIST, objects: [{}], token: 'again' })],
    ['empty pages', () => ({ ...LIST, token: String(Math.random()) })],
    ['404, and discovers the kind', next => (next.do === 'discover' ? SERVED : failure('NotFound'))],
    ['404, and does not discover it', next => (next.do === 'discover' ? UNSERVED : failure('NotFound'))],
  ])('sends less than one request per second to a server that always answers %s', (_what, answer) => {
    expect(requestsPerSecond(answer)).toBeLessThan(1);
  });

  it('sends at most ten requests per second to a server that ends each watch after a change', () => {
    let version = 7;
    const perSecond = requestsPerSecond((next, state) => {
      if (next.do === 'list') return LIST;
      if (next.do !== 'read-watch') return { event: 'opened' };
      const hasNews = state.is === 'watching' && state.hasNews;
      return hasNews ? { event: 'ended' } : { event: 'bookmark', version: String(++version) };
    });
    expect(perSecond).toBeLessThan(10.1);
    expect(perSecond).toBeGreaterThan(5);
  });

  it('is closed from any state, and stays so', () => {
    const property = fc.property(fc.array(anything, { maxLength: 20 }), anything, (all, last) => {
      let state: ReflectorState = NEW;
      for (const event of all) ({ state } = step(state, event, given(0)));
      const done = step(state, { event: 'close' }, given(0));
      expect([done.state.is, done.next, done.effects]).toEqual(['closed', { do: 'stop' }, []]);
      expect(step(done.state, last, given(0)).next).toEqual({ do: 'stop' });
    });
    fc.assert(property, runs(100));
  });
});
