import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextText } from '../../../src/files/gateway/removed-fields.ts';
import type { NextText } from '../../../src/files/gateway/removed-fields.ts';
import type { Phase } from '../../../src/files/gateway/route-renames.ts';

const OTHER = 'web.1.mesh-gateway.dev';
const text = (fields: object, name = 'web') =>
  `${JSON.stringify({ apiVersion: 'v1', kind: 'Any', metadata: { name, namespace: 'default' }, ...fields }, undefined, 2)}\n`;
const spec = (of: object, name?: string) => text({ spec: of }, name);
const both = (first: string, second: string) => `${first}---\n${second}`;

const [FULL, LESS, MORE] = [
  { hostnames: ['a'], rules: [1] },
  { rules: [1] },
  { hostnames: ['a'], rules: [2] },
];
const fileOf = (kind: string) => `${kind}/default/web`;

type Case = {
  readonly what: string;
  readonly now: string;
  readonly wanted: string;
  readonly phase?: Phase;
  readonly next: NextText;
};

const ROUTES: readonly Case[] = [
  {
    what: 'stays under its name while nothing is removed',
    now: spec(FULL),
    wanted: spec(MORE),
    next: { text: spec(MORE) },
  },
  {
    what: 'gets another name when something is removed, and is there under both',
    now: spec(FULL),
    wanted: spec(LESS),
    next: { text: both(spec(LESS, OTHER), spec(LESS)), enter: 'both' },
  },
  {
    what: 'gets its own name back at the next time',
    now: spec(FULL, OTHER),
    wanted: spec(LESS),
    next: { text: both(spec(LESS), spec(LESS, OTHER)), enter: 'both' },
  },
  {
    what: 'keeps its other name while nothing is removed',
    now: spec(LESS, OTHER),
    wanted: spec(FULL),
    next: { text: spec(FULL, OTHER) },
  },
  {
    what: 'follows changes under both names',
    now: both(spec(LESS, OTHER), spec(LESS)),
    wanted: spec(MORE),
    phase: 'both',
    next: { text: both(spec(MORE, OTHER), spec(MORE)) },
  },
  {
    what: 'keeps what is removed while both names are there',
    now: both(spec(FULL, OTHER), spec(FULL)),
    wanted: spec(LESS),
    phase: 'both',
    next: { text: both(spec(FULL, OTHER), spec(FULL)) },
  },
  {
    what: 'loses the old name, and no more at that moment',
    now: both(spec(FULL, OTHER), spec(FULL)),
    wanted: spec(LESS),
    phase: 'retire',
    next: { text: spec(FULL, OTHER), enter: 'cooldown' },
  },
  {
    what: 'does not take up a name that may still be known',
    now: spec(FULL, OTHER),
    wanted: spec(LESS),
    phase: 'cooldown',
    next: { text: spec(FULL, OTHER) },
  },
  {
    what: 'restarts the time in which both exist, after a restart',
    now: both(spec(LESS, OTHER), spec(LESS)),
    wanted: spec(LESS),
    next: { text: both(spec(LESS, OTHER), spec(LESS)), enter: 'both' },
  },
  {
    what: 'is overwritten where another program has written',
    now: '{ broken',
    wanted: spec(LESS),
    next: { text: spec(LESS) },
  },
];

describe('the file of a route', () => {
  it.each(ROUTES)('$what', ({ now, wanted, phase = 'idle', next }) => {
    expect(nextText(fileOf('HTTPRoute'), now, wanted, phase)).toEqual(next);
  });

  it('keeps a name that is too long to be changed, and returns the kept fields', () => {
    const long = 'a'.repeat(250);
    const next = nextText('HTTPRoute/default/long', spec(FULL, long), spec(LESS, long), 'idle');
    expect(next).toEqual({ text: spec(LESS, long), kept: ['spec.hostnames'] });
  });
});

describe('the file of another kind', () => {
  const KINDS: readonly (readonly [kind: string, next: NextText])[] = [
    ['SecurityPolicy', { text: spec(LESS, OTHER) }],
    ['BackendTLSPolicy', { text: spec(LESS, OTHER) }],
    ['Gateway', { text: spec(LESS), kept: ['spec.hostnames'] }],
    ['EnvoyProxy', { text: spec(LESS), kept: ['spec.hostnames'] }],
    ['MeshEndpoints', { text: spec(LESS) }],
  ];

  it.each(KINDS)('of a %s, when something is removed', (kind, next) => {
    expect(nextText(fileOf(kind), spec(FULL), spec(LESS), 'idle')).toEqual(next);
  });

  it('increments the number in the name of a policy', () => {
    const { text: next } = nextText(fileOf('SecurityPolicy'), spec(FULL, OTHER), spec(LESS), 'idle');
    expect(next).toBe(spec(LESS, 'web.2.mesh-gateway.dev'));
  });

  it('writes null for a removed key of a Secret until it comes back', () => {
    const file = fileOf('Secret');
    const [two, one] = [text({ data: { a: 'x', b: 'y' } }), text({ data: { a: 'x' } })];
    const gone = text({ data: { a: 'x', b: null } });
    expect(nextText(file, two, one, 'idle')).toEqual({ text: gone });
    expect(nextText(file, gone, one, 'idle')).toEqual({ text: gone });
    expect(nextText(file, gone, two, 'idle')).toEqual({ text: two });
    expect(nextText(file, two, text({}), 'idle')).toEqual({ text: text({ data: { a: null, b: null } }) });
  });
});

/** The objects of Envoy Gateway after it has read a text: each is merged into the one of that name. */
function merged(known: ReadonlyMap<string, object>, of: string): ReadonlyMap<string, object> {
  const read = of
    .split('\n---\n')
    .map(one => JSON.parse(one) as { metadata: { name: string }; spec: object });
  return new Map(read.map(({ metadata: { name }, spec: next }) => [name, { ...known.get(name), ...next }]));
}

/** The same in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

describe('after any sequence of removals', () => {
  const specs = fc.record({ a: fc.nat(2), b: fc.nat(2), c: fc.nat(2) }, { requiredKeys: [] });
  const steps = fc.array(fc.oneof(specs, fc.constant('time' as const)), { maxLength: 20 });

  it.each(['HTTPRoute', 'SecurityPolicy'])('%s ends up as it was written last', kind => {
    fc.assert(
      fc.property(specs, steps, (first, all) => {
        let [now, phase] = [spec(first), 'idle' as Phase];
        let [last, known] = [first, merged(new Map(), now)];
        const write = () => {
          const next = nextText(fileOf(kind), now, spec(last), phase);
          [now, phase] = [next.text, next.enter ?? phase];
          known = merged(known, now);
        };
        for (const step of [...all, 'time', 'time', 'time', 'time', 'time', 'time'] as const) {
          if (step === 'time') phase = phase === 'both' ? 'retire' : 'idle';
          else last = step;
          write();
        }
        expect([...known.values()]).toEqual([last]);
      }),
      { seed },
    );
  });
});
