import { describe, expect, it } from 'vitest';
import { resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointList,
  endpointsObject,
  httpRoute,
  routeObject,
  service,
  tailnetObject,
} from '../support/traffic/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

const HEALTHY = { status: 'Healthy' };
const UNHEALTHY = { status: 'Unhealthy', reason: 'CheckFailed', error: 'connection refused' };
const UNDECIDED = { status: 'Unhealthy', reason: 'NotCheckedYet', error: 'wait' };

/** An endpoint for each entry: its entry in status.endpoints, and its check. */
type Entry = { readonly entry?: Fields; readonly check?: Fields };

type World = {
  readonly udp?: boolean;
  readonly metadata?: Fields;
  readonly withStatus?: boolean;
  /** Other backends in the rule. */
  readonly others?: readonly Fields[];
};

function verdicts(entries: readonly Entry[], world: World = {}) {
  const { udp = false, metadata = {}, withStatus = true, others = [] } = world;
  const listed = endpointList(entries.length, udp ? { protocol: 'UDP' } : {});
  const type = udp ? 'UDP' : 'HTTP';
  const endpoints = listed.map((one, at) => {
    const check = entries[at]?.check;
    return check ? { ...one, healthCheck: { enabled: true, type, ...check } } : one;
  });
  const reported = entries.flatMap(({ entry }, at) => (entry ? [{ name: `e${at + 1}`, ...entry }] : []));
  const web = endpointsObject('web', endpoints, {
    metadata,
    ...(withStatus && { status: { endpoints: reported } }),
  });
  const backends = [backend('web'), ...others];
  const route = udp ? routeObject('UDPRoute', 'web', backends) : httpRoute('web', backends);
  const cluster = udp ? 'udproute/default/web/rule/-1' : 'httproute/default/web/rule/0';
  const { through } = trafficOf(resourcesFrom([tailnetObject(), web, route]), cluster);
  return through.Direct.assignment.localities.flatMap(({ endpoints }) =>
    endpoints.map(({ health }) => health),
  );
}

/** Two different checks, so that Envoy makes none. */
const [A, B] = [{ path: '/a' }, { path: '/b' }];
const ON = {};

describe('the health status of endpoints', () => {
  it.each<readonly [string, readonly Entry[], readonly string[]]>([
    ['that are not checked', [{}, { entry: HEALTHY }], ['HEALTHY', 'HEALTHY']],
    [
      'that were checked once, and are no more',
      [{ entry: UNHEALTHY }, { entry: UNDECIDED }],
      ['HEALTHY', 'HEALTHY'],
    ],
    [
      'that Envoy checks too',
      [
        { check: ON, entry: HEALTHY },
        { check: ON, entry: UNHEALTHY },
        { check: ON, entry: UNDECIDED },
        { check: ON },
      ],
      ['HEALTHY', 'UNHEALTHY', 'UNKNOWN', 'UNKNOWN'],
    ],
    [
      'that only the operator checks',
      [
        { check: A, entry: HEALTHY },
        { check: B, entry: UNHEALTHY },
        { check: B, entry: UNDECIDED },
        { check: B },
      ],
      ['HEALTHY', 'UNHEALTHY', 'UNHEALTHY', 'UNHEALTHY'],
    ],
    [
      'that are all unhealthy, and Envoy checks too',
      [
        { check: ON, entry: UNHEALTHY },
        { check: ON, entry: UNHEALTHY },
      ],
      ['UNKNOWN', 'UNKNOWN'],
    ],
    [
      'that are all unhealthy, and Envoy does not check',
      [
        { check: A, entry: UNHEALTHY },
        { check: B, entry: UNHEALTHY },
      ],
      ['UNHEALTHY', 'UNHEALTHY'],
    ],
    [
      'of which one is not checked and all others are unhealthy',
      [{}, { check: ON, entry: UNHEALTHY }],
      ['HEALTHY', 'UNHEALTHY'],
    ],
    [
      'of which one is undecided and all others are unhealthy',
      [{ check: ON }, { check: ON, entry: UNHEALTHY }],
      ['UNKNOWN', 'UNHEALTHY'],
    ],
    [
      'that are unhealthy without an error',
      [{ check: ON, entry: { status: 'Unhealthy' } }, {}],
      ['UNHEALTHY', 'HEALTHY'],
    ],
  ])('%s', (_, entries, reported) => {
    expect(verdicts(entries)).toEqual(reported);
  });

  it('ignores a status entry of an earlier address', () => {
    const [one] = endpointList(1);
    const here = `${String(one?.['meshIP'])}:${String(one?.['port'])}`;
    const reported = (entry: Fields, address: string) =>
      verdicts([
        { check: A, entry: { ...entry, address, lastChecked: '2026-01-01T00:00:00Z' } },
        { check: B },
      ]);
    expect(reported(HEALTHY, here)).toEqual(['HEALTHY', 'UNHEALTHY']);
    expect(reported(HEALTHY, '100.99.99.99:8080')).toEqual(['UNHEALTHY', 'UNHEALTHY']);
    const unhealthy = (address: string) =>
      verdicts([
        { check: ON, entry: { ...UNHEALTHY, address } },
        { check: ON, entry: HEALTHY },
      ]);
    expect(unhealthy(here)).toEqual(['UNHEALTHY', 'HEALTHY']);
    expect(unhealthy('100.99.99.99:8080')).toEqual(['UNKNOWN', 'HEALTHY']);
    expect(unhealthy('nonsense')).toEqual(['UNHEALTHY', 'HEALTHY']);
  });

  it('of UDP is UNKNOWN without entries in status.endpoints', () => {
    expect(verdicts([{ check: ON }, {}], { udp: true, withStatus: false })).toEqual(['UNKNOWN', 'HEALTHY']);
    expect(verdicts([{ check: ON }, {}], { udp: true })).toEqual(['UNKNOWN', 'HEALTHY']);
    const others = [{ check: ON, entry: HEALTHY }, { check: ON }, { entry: UNDECIDED }];
    expect(verdicts(others, { udp: true })).toEqual(['HEALTHY', 'UNHEALTHY', 'HEALTHY']);
    expect(verdicts([{ check: ON, entry: UNHEALTHY }, {}], { udp: true })).toEqual(['UNHEALTHY', 'HEALTHY']);
  });

  it.each([
    ['has a relay port', { status: 'Healthy', relayPort: 20_001 }, 'HEALTHY'],
    ['has none', { status: 'Unhealthy', error: 'all ports are in use' }, 'UNHEALTHY'],
    ['moved', { status: 'Healthy', relayPort: 20_001, address: '100.9.9.9:1' }, 'UNHEALTHY'],
  ])('of a checked UDP endpoint that %s is that of its entry', (_, fields, reported) => {
    expect(verdicts([{ check: ON, entry: { protocol: 'UDP', ...fields } }], { udp: true })).toEqual([
      reported,
    ]);
  });

  it('of a new endpoint is UNHEALTHY beside entries of others, whether those are checked or not', () => {
    expect(verdicts([{ check: A }, { check: B }, { entry: HEALTHY }])).toEqual([
      'UNHEALTHY',
      'UNHEALTHY',
      'HEALTHY',
    ]);
  });

  it('is UNKNOWN without status.endpoints, since there may be no operator', () => {
    expect(verdicts([{ check: A }, { check: B }], { withStatus: false })).toEqual(['UNKNOWN', 'UNKNOWN']);
    expect(verdicts([{ check: ON }], { withStatus: false })).toEqual(['UNKNOWN']);
    expect(verdicts([{ check: A }, {}], { withStatus: false, others: [service()] })).toEqual([
      'UNKNOWN',
      'HEALTHY',
    ]);
  });

  it('in a mixed rule is that of the operator alone, also if all mesh endpoints are unhealthy', () => {
    const entries = [
      { check: ON, entry: UNHEALTHY },
      { check: ON, entry: UNDECIDED },
    ];
    expect(verdicts(entries)).toEqual(['UNHEALTHY', 'UNKNOWN']);
    expect(verdicts(entries, { others: [service()] })).toEqual(['UNHEALTHY', 'UNHEALTHY']);
    const all = [{ check: ON, entry: UNHEALTHY }];
    expect(verdicts(all)).toEqual(['UNKNOWN']);
    expect(verdicts(all, { others: [service()] })).toEqual(['UNHEALTHY']);
  });

  it('of endpoints that Envoy checks is UNKNOWN only if those of all objects of the rule are unhealthy', () => {
    const [a, b] = endpointList(2, { healthCheck: { enabled: true } });
    const healthOf = (second: Fields) => {
      const status = (name: string, entry: Fields) => ({ status: { endpoints: [{ name, ...entry }] } });
      const objects = [
        tailnetObject(),
        endpointsObject('one', [a ?? {}], status('e1', UNHEALTHY)),
        endpointsObject('two', [b ?? {}], status('e2', second)),
        httpRoute('web', [backend('one'), backend('two')]),
      ];
      const { localities } = trafficOf(resourcesFrom(objects)).through.Proxy.assignment;
      return localities.map(({ endpoints }) => endpoints[0]?.health);
    };
    expect(healthOf(HEALTHY)).toEqual(['UNHEALTHY', 'HEALTHY']);
    expect(healthOf(UNDECIDED)).toEqual(['UNHEALTHY', 'UNKNOWN']);
    expect(healthOf(UNHEALTHY)).toEqual(['UNKNOWN', 'UNKNOWN']);
  });

  it('does not depend on the pool, which may be away', () => {
    const away = {
      type: 'PoolReady',
      status: 'False',
      reason: 'CrashLoop',
      message: 'meshd ends',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const healthWith = (status: Fields) => {
      const tailnet = tailnetObject('main', { pool: {}, status });
      const web = endpointsObject('web', endpointList(2, { healthCheck: { enabled: true, path: '/a' } }), {
        status: {
          endpoints: [
            { name: 'e1', ...HEALTHY },
            { name: 'e2', ...UNHEALTHY },
          ],
        },
      });
      const resources = resourcesFrom([tailnet, web, httpRoute('web', [backend('web')])]);
      const { localities } = trafficOf(resources).through.Proxy.assignment;
      return localities.flatMap(({ endpoints }) => endpoints.map(({ health }) => health));
    };
    const proxyAddress = '10.96.0.7:1055';
    expect(healthWith({ pool: { ready: 2, proxyAddress } })).toEqual(['HEALTHY', 'UNHEALTHY']);
    expect(healthWith({ pool: { ready: 0, proxyAddress }, conditions: [away] })).toEqual([
      'HEALTHY',
      'UNHEALTHY',
    ]);
  });

  it('of an endpoint that cannot be checked, because a reference of it is wrong, is UNHEALTHY', () => {
    const headersFrom = [{ name: 'Authorization', secretKeyRef: { name: 's', key: 'k' } }];
    const entry = { status: 'Unhealthy', error: 'Secret s does not exist' };
    expect(verdicts([{ check: { headersFrom }, entry }])).toEqual(['UNHEALTHY']);
  });

  it('of a deleted object is DRAINING', () => {
    const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x'] };
    const entries = [{ check: ON, entry: UNHEALTHY }, { check: ON, entry: HEALTHY }, {}];
    expect(verdicts(entries, { metadata })).toEqual(['DRAINING', 'DRAINING', 'DRAINING']);
  });

  it('of other endpoints does not depend on draining ones', () => {
    const check = { enabled: true };
    const [a, b] = endpointList(2, { healthCheck: check });
    const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x'] };
    const status = { endpoints: [{ name: 'e2', ...UNHEALTHY }] };
    const objects = [
      tailnetObject(),
      endpointsObject('going', [a ?? {}], { metadata }),
      endpointsObject('staying', [b ?? {}], { status }),
      httpRoute('web', [backend('going'), backend('staying')]),
    ];
    const { localities } = trafficOf(resourcesFrom(objects)).through.Direct.assignment;
    expect(localities.map(({ endpoints }) => endpoints[0]?.health)).toEqual(['DRAINING', 'UNKNOWN']);
  });

  it('is UNKNOWN if all endpoints of all priorities are unhealthy and Envoy checks them', () => {
    const check = { enabled: true };
    const endpoints = endpointList(2, { healthCheck: check }).map((one, priority) => ({ ...one, priority }));
    const status = (second: Fields) => ({
      endpoints: [
        { name: 'e1', ...UNHEALTHY },
        { name: 'e2', ...second },
      ],
    });
    const reported = (second: Fields) => {
      const web = endpointsObject('web', endpoints, { status: status(second) });
      const { through } = trafficOf(
        resourcesFrom([tailnetObject(), web, httpRoute('web', [backend('web')])]),
      );
      return through.Direct.assignment.localities.map(({ endpoints: [one] }) => one?.health);
    };
    expect(reported(HEALTHY)).toEqual(['UNHEALTHY', 'HEALTHY']);
    expect(reported(UNHEALTHY)).toEqual(['UNKNOWN', 'UNKNOWN']);
  });
});
