import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ServedService } from '../../src/api/served-services.ts';
import { DRAIN_MS, hopTargets, NOTHING_SERVED, plan, stepsTo } from '../../src/serving/plan.ts';
import type { Input, Observed, Plan } from '../../src/serving/plan.ts';

const WEB: ServedService = {
  name: 'svc:web',
  port: 443,
  via: 'mesh',
  target: '100.64.0.7:8443',
  isAdvertised: true,
};
const API: ServedService = {
  name: 'svc:api',
  port: 80,
  via: 'direct',
  target: '192.0.2.7:8080',
  isAdvertised: true,
};
const HOP = '127.0.0.2:40001';
const FORWARDS = new Map([[WEB.target, HOP]]);
const WEB_CONFIG = { 'svc:web': { TCP: { 443: { TCPForward: HOP } } } };
const NONE: Observed = { config: {}, advertised: [] };

function planned(wanted: readonly ServedService[], before: Plan = NOTHING_SERVED, more: Partial<Input> = {}) {
  return plan({ ...before, wanted, isEnding: false, now: 0, ...more });
}

describe('the calls to a tailscaled', () => {
  it('serve a service before they advertise it, a device through its hop', () => {
    expect(stepsTo(planned([WEB, API]), NONE, FORWARDS)).toEqual([
      {
        do: 'serve',
        config: { Services: { ...WEB_CONFIG, 'svc:api': { TCP: { 80: { TCPForward: API.target } } } } },
      },
      { do: 'advertise', names: ['svc:api', 'svc:web'] },
    ]);
  });

  it('withdraw a service before they stop serving it', () => {
    const observed = { config: { Services: WEB_CONFIG }, advertised: ['svc:web'] };
    expect(stepsTo(planned([]), observed, FORWARDS)).toEqual([
      { do: 'advertise', names: [] },
      { do: 'serve', config: {} },
    ]);
  });

  it('withdraw a service whose target is not healthy, and go on serving it', () => {
    const observed = { config: { Services: WEB_CONFIG }, advertised: ['svc:web'] };
    const steps = stepsTo(planned([{ ...WEB, isAdvertised: false }]), observed, FORWARDS);
    expect(steps).toEqual([{ do: 'advertise', names: [] }]);
  });

  it.each<[string, unknown]>([
    ['a port of the device itself', { TCP: { 22: { TCPForward: '127.0.0.1:22' } }, Services: WEB_CONFIG }],
    ['another port', { Services: { 'svc:web': { TCP: { ...WEB_CONFIG['svc:web'].TCP, 22: {} } } } }],
    ['files', { Services: WEB_CONFIG, Web: { 'x:80': { Handlers: { '/': { Path: '/' } } } } }],
    ['all traffic of a service', { Services: { 'svc:web': { Tun: true } } }],
    ['nothing', null],
  ])('replace what others have configured: %s', (_, config) => {
    const steps = stepsTo(planned([WEB]), { config, advertised: ['svc:web'] }, FORWARDS);
    expect(steps).toEqual([{ do: 'serve', config: { Services: WEB_CONFIG } }]);
  });

  it('withdraw what others advertise', () => {
    const observed = { config: { Services: WEB_CONFIG }, advertised: ['svc:other', 'svc:web'] };
    expect(stepsTo(planned([WEB]), observed, FORWARDS)).toEqual([{ do: 'advertise', names: ['svc:web'] }]);
  });

  it('neither serve nor advertise a device without a hop', () => {
    expect(stepsTo(planned([WEB]), NONE, new Map())).toEqual([]);
  });
});

describe('a plan', () => {
  it('serves a service that is no longer wanted for 20 s more, withdrawn', () => {
    const first = planned([WEB, API]);
    const second = planned([API], first, { now: 1000 });
    expect([[...second.served.keys()], second.advertised]).toEqual([['svc:api', 'svc:web'], ['svc:api']]);
    expect([...hopTargets(second.served)]).toEqual([WEB.target]);
    const third = planned([API], second, { now: 999 + DRAIN_MS });
    expect([...third.served.keys()]).toEqual(['svc:api', 'svc:web']);
    expect([...planned([API], third, { now: 1000 + DRAIN_MS }).served.keys()]).toEqual(['svc:api']);
  });

  it('serves a service that is wanted again as it is wanted then', () => {
    const gone = planned([], planned([WEB]));
    const moved = { ...WEB, target: '100.64.0.8:8443' };
    expect(planned([moved], gone, { now: 5000 })).toEqual({ ...planned([moved]), draining: new Map() });
  });

  it('advertises nothing while the pod ends, and serves on', () => {
    const { served, advertised } = planned([WEB], planned([WEB]), { isEnding: true });
    expect([[...served.values()], advertised]).toEqual([[WEB], []]);
  });
});

/** A tailscaled that carries out calls. */
function carriedOut({ config, advertised }: Observed, steps: ReturnType<typeof stepsTo>): Observed {
  return steps.reduce<Observed>(
    (state, step) =>
      step.do === 'serve' ? { ...state, config: step.config } : { ...state, advertised: step.names },
    { config, advertised },
  );
}

const aService = fc.record({
  name: fc.constantFrom('svc:a', 'svc:b', 'svc:c'),
  port: fc.constantFrom(80, 443),
  via: fc.constantFrom('mesh' as const, 'direct' as const),
  target: fc.constantFrom('100.64.0.1:80', '100.64.0.2:80'),
  isAdvertised: fc.boolean(),
});
const someServices = fc.uniqueArray(aService, { selector: ({ name }) => name });

describe('after any changes', () => {
  it('a tailscaled serves what was wanted last, whatever it served before, and needs no further call', () => {
    const anObserved: fc.Arbitrary<Observed> = fc.record({
      config: fc.constantFrom<unknown>({}, null, { TCP: { 22: {} } }, { Services: { 'svc:x': {} } }),
      advertised: fc.subarray(['svc:a', 'svc:x', 'svc:y']),
    });
    const forwards = new Map([
      ['100.64.0.1:80', '127.0.0.2:1'],
      ['100.64.0.2:80', '127.0.0.2:2'],
    ]);
    fc.assert(
      fc.property(anObserved, fc.array(someServices, { minLength: 1, maxLength: 5 }), (found, changes) => {
        let state = found;
        let last = NOTHING_SERVED;
        for (const [index, wanted] of changes.entries()) {
          last = planned(wanted, last, { now: index * 15_000 });
          state = carriedOut(state, stepsTo(last, state, forwards));
        }
        const wanted = changes.at(-1) ?? [];
        const settled = planned(wanted, planned(wanted, last, { now: 100_000 }), { now: 200_000 });
        state = carriedOut(state, stepsTo(settled, state, forwards));
        expect(stepsTo(settled, state, forwards)).toEqual([]);
        // It has no configuration before it serves anything.
        const { Services = {} } = (state.config ?? {}) as { Services?: object };
        expect(Object.keys(Services).sort()).toEqual(wanted.map(({ name }) => name).sort());
        const advertised = wanted.filter(({ isAdvertised }) => isAdvertised).map(({ name }) => name);
        expect([...state.advertised].sort()).toEqual(advertised.sort());
      }),
      { numRuns: 40 },
    );
  });
});
