import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { formatProblem } from '../../src/api/problem.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import type { Reading } from '../../src/tools/doctor/observed.ts';
import { readObjects } from '../../src/tools/check/objects.ts';
import { compareRule } from '../../src/tools/envoy/compare.ts';
import { stateOf } from '../../src/tools/envoy/state.ts';
import { envoysStatusOf } from '../../src/tools/status/envoys.ts';
import { stepsWithEnvoys, withEnvoys } from '../../src/tools/trace/envoys.ts';
import { parseRequest } from '../../src/tools/trace/request.ts';
import { trace } from '../../src/tools/trace/trace.ts';
import { named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';
import { envoyResponses } from '../support/tools/envoy.ts';
import type { EnvoyParts, Host } from '../support/tools/envoy.ts';

const CLUSTER = 'httproute/default/web/rule/0';
const PROXY = '10.0.0.1:1055';
const tailnet = named(meshTailnet({ pool: { mode: 'External', addresses: [PROXY] } }), 'example');

/** The objects, with what the operator has found about the endpoints: checks are off without it. */
function declared(verdicts: Readonly<Record<string, 'Healthy' | 'Unhealthy'>> = {}) {
  const healthCheck = { enabled: Object.keys(verdicts).length > 0 };
  const endpoints = [
    endpoint({ healthCheck }),
    endpoint({
      name: 'far',
      meshIP: 'fd7a:115c:a1e0:0::2',
      meshFQDN: 'far.example.ts.net',
      priority: 1,
      healthCheck,
    }),
  ];
  const status = {
    endpoints: Object.entries(verdicts).map(([name, verdict]) => ({
      name,
      status: verdict,
      error: 'refused',
    })),
  };
  const web = { ...named(meshEndpoints({ endpoints }), 'default/web'), status };
  const objects = [web, tailnet, openGateway('default/public'), route('HTTPRoute', 'default/web')];
  return readObjects([{ name: 'all.yaml', text: objects.map(object => stringify(object)).join('---\n') }]);
}

function tracedIn(declarations: ReturnType<typeof declared>) {
  const request = parseRequest('http://web.example.com/', { method: 'GET', headers: [] });
  const [way] = trace(declarations, request, undefined);
  if (!way?.traffic) throw new Error('no rule was traced');
  return { ...way, traffic: way.traffic };
}

/** The pod of an Envoy of a Gateway. */
const podOf = (gateway: string, name: string) => ({
  metadata: {
    name,
    namespace: 'envoy-gateway-system',
    labels: {
      'gateway.envoyproxy.io/owning-gateway-namespace': 'default',
      'gateway.envoyproxy.io/owning-gateway-name': gateway,
    },
  },
  status: { phase: 'Running' },
});
const near = { address: '100.64.0.1', proxy: PROXY };
const far = { address: 'fd7a:115c:a1e0::2', priority: 1, proxy: PROXY };
const envoy = (hosts: readonly Host[], more: Partial<EnvoyParts> = {}) =>
  stateOf(envoyResponses({ clusters: { [CLUSTER]: hosts }, ...more }));

const WAIT = 'wait a few seconds for the update, then see mesh-gateway doctor';
const FAILING = { failed_active_health_check: true, active_hc_timeout: true };

/** What Envoy has, what the operator has found, and the difference. */
const DIFFERENCES: readonly (readonly [
  string,
  ReturnType<typeof envoy>,
  Parameters<typeof declared>[0],
  string,
])[] = [
  ['a missing endpoint', envoy([near]), {}, `has no endpoint far at [fd7a:115c:a1e0::2]:8080: ${WAIT}`],
  [
    'an endpoint that is not among the objects',
    envoy([near, far, { address: '100.64.0.9' }]),
    {},
    `has endpoints that the objects do not have, 100.64.0.9:8080: ${WAIT}`,
  ],
  [
    'rejected updates',
    envoy([near], { rejected: { [`cluster.${CLUSTER}.update_rejected`]: 2 } }),
    {},
    'has no endpoint far at [fd7a:115c:a1e0::2]:8080: it has rejected updates of them (2), with the reasons in mesh-gateway status',
  ],
  [
    'the health that EDS sends',
    envoy([{ ...near, health: { eds_health_status: 'UNHEALTHY' } }, far]),
    {},
    `has web at 100.64.0.1:8080 as UNHEALTHY instead of HEALTHY: ${WAIT}`,
  ],
  [
    'priority and proxy',
    envoy([near, { address: 'fd7a:115c:a1e0::2' }]),
    {},
    `has far at [fd7a:115c:a1e0::2]:8080 at priority 0 instead of 1, and through no proxy instead of ${PROXY}: ${WAIT}`,
  ],
  [
    'weights',
    envoy([near, { ...far, weight: 3, backendWeight: 90 }]),
    {},
    `has far at [fd7a:115c:a1e0::2]:8080 with weight 3 instead of 1, and of a backend with weight 90 instead of 1: ${WAIT}`,
  ],
  [
    "Envoy's own checks",
    envoy([{ ...near, health: FAILING }, far]),
    { web: 'Healthy', far: 'Healthy' },
    'does not use web at 100.64.0.1:8080 (failed_active_health_check), which is HEALTHY by the objects: its own health check fails there, so compare healthCheck with what the service answers to Envoy; if it uses no endpoint at all, see mesh-gateway doctor for NetworkPolicies between Envoy and mesh pods',
  ],
  [
    'all endpoints being unhealthy, so that Envoy decides',
    envoy([near, { ...far, health: FAILING }]),
    { web: 'Unhealthy', far: 'Unhealthy' },
    'uses web at 100.64.0.1:8080, which is UNHEALTHY for the operator: see status.endpoints of its MeshEndpoints',
  ],
  [
    'an update that waits for endpoints',
    envoy([near, far], { warming: [CLUSTER] }),
    {},
    `has an update of ${CLUSTER} that waits for endpoints: see mesh-gateway doctor for port 5005`,
  ],
  [
    'a cluster that is missing',
    stateOf(envoyResponses({ clusters: { [`${CLUSTER}0`]: [near] } })),
    {},
    `has no cluster ${CLUSTER}: see mesh-gateway status for whether Envoy Gateway has translated the Gateway, and mesh-gateway doctor`,
  ],
];

const differencesOf = (...args: Parameters<typeof compareRule>) =>
  compareRule(...args).differences.map(formatProblem);

describe('an Envoy differs from the objects by', () => {
  it.each(DIFFERENCES)('%s', (_, state, verdicts, difference) => {
    expect(differencesOf(tracedIn(declared(verdicts)).traffic, state)).toEqual([difference]);
  });
});

describe('an Envoy differs in a rule that is divided', () => {
  it('by an endpoint that the cluster of its backend lacks', () => {
    const divided = stateOf(envoyResponses({ clusters: { [`${CLUSTER}/backend/0`]: [near] } }));
    expect(differencesOf(tracedIn(declared({})).traffic, divided)).toEqual([
      `has no endpoint far at [fd7a:115c:a1e0::2]:8080: ${WAIT}`,
    ]);
  });

  it('by the cluster of a backend that is missing', () => {
    const divided = stateOf(envoyResponses({ clusters: { [`${CLUSTER}/backend/1`]: [near] } }));
    expect(differencesOf(tracedIn(declared({})).traffic, divided)).toEqual([
      expect.stringContaining(`has no cluster ${CLUSTER}/backend/0`),
    ]);
  });

  it('by nothing of a cluster that stays with Envoy Gateway', () => {
    const { traffic } = tracedIn(declared({}));
    const shares = {
      total: 2,
      mesh: [{ cluster: `${CLUSTER}/backend/0`, weight: 1 }],
      others: [{ cluster: CLUSTER, weight: 1 }],
      isApart: true,
    } as const;
    const both = { [CLUSTER]: [{ address: '10.0.0.9' }], [`${CLUSTER}/backend/0`]: [near, far] };
    const state = stateOf(envoyResponses({ clusters: both }));
    expect(differencesOf({ ...traffic, rule: { ...traffic.rule, shares } }, state)).toEqual([]);
  });
});

describe('an Envoy does not differ', () => {
  it('by a rule that Envoy Gateway has divided, with the endpoints in the cluster of their backend', () => {
    const divided = stateOf(envoyResponses({ clusters: { [`${CLUSTER}/backend/0`]: [near, far] } }));
    const { differences, lines } = compareRule(tracedIn(declared({})).traffic, divided);
    expect(differences).toEqual([]);
    expect(lines[0]).toBe(`has cluster ${CLUSTER}/backend/0 of version 7: 2 of 2 endpoints in use`);
  });

  const draining = { ...near, health: { eds_health_status: 'UNHEALTHY' } };
  it.each([
    ['where all is as the objects are', envoy([near, far]), {}],
    ['where both find the same', envoy([draining, far]), { web: 'Unhealthy', far: 'Healthy' }],
  ] as const)('%s', (_, state, verdicts) => {
    expect(differencesOf(tracedIn(declared(verdicts)).traffic, state)).toEqual([]);
  });
});

describe('trace --envoy', () => {
  const way = tracedIn(declared());
  const { steps, traffic } = way;
  const read = (pod: string, state: ReturnType<typeof envoy>) => ({ pod, gateway: 'default/public', state });
  const linesOf = (...args: Parameters<typeof stepsWithEnvoys>) =>
    stepsWithEnvoys(...args)
      .filter(({ name }) => name === 'envoy')
      .map(({ is, text, problem }) => `${is} ${[text, problem?.fix ?? []].flat().join(': ')}`);

  it('shows differences before the steps, and what Envoys have after them', () => {
    const all = stepsWithEnvoys(steps, traffic, [read('envoy-1', envoy([near]))]);
    expect(all.map(({ is, name }) => `${is} ${name}`)).toEqual([
      'broken envoy',
      ...steps.map(({ is, name }) => `${is} ${name}`),
      ...['ok envoy', 'ok envoy'],
    ]);
  });

  it('names Envoys that are alike once', () => {
    const envoys = ['envoy-1', 'envoy-2', 'envoy-3'].map(pod => read(pod, envoy([near, far])));
    const [first, ...others] = linesOf(steps, traffic, [...envoys, read('envoy-4', envoy([near]))]);
    expect(first).toBe(`broken envoy-4 has no endpoint far at [fd7a:115c:a1e0::2]:8080: ${WAIT}`);
    expect(others.slice(0, 3)).toEqual([
      `ok envoy-1 and 2 more has cluster ${CLUSTER} of version 7: 2 of 2 endpoints in use`,
      `ok envoy-1 and 2 more has endpoint web at 100.64.0.1:8080 through ${PROXY}: HEALTHY`,
      `ok envoy-1 and 2 more has endpoint far at [fd7a:115c:a1e0::2]:8080 through ${PROXY}: HEALTHY`,
    ]);
  });

  it('shows weights that are not 1', () => {
    const weighed = envoy([{ ...near, weight: 3, backendWeight: 90 }, far]);
    expect(linesOf(steps, traffic, [read('envoy-1', weighed)])).toContain(
      `ok envoy-1 has endpoint web at 100.64.0.1:8080 through ${PROXY}: HEALTHY, weight 3, backend weight 90`,
    );
  });

  it.each<readonly [string, Reading, string]>([
    [
      'reads the Envoys of the Gateway and of no other',
      { items: [podOf('public', 'envoy-1'), podOf('other', 'envoy-2')] },
      'unknown envoy-1: refused',
    ],
    [
      'shows the steps where it may list no pods',
      { why: 'no right to list pods' },
      'unknown no right to list pods',
    ],
  ])('%s', async (_, envoys, last) => {
    const refusing = () => Promise.reject(new KubeError('Unreachable', 'refused'));
    const [shown] = await withEnvoys(
      [way],
      { declarations: declared(), settings: {} },
      envoys,
      { read: [] },
      refusing,
    );
    expect(shown?.steps.slice(0, -1)).toEqual(steps);
    expect(shown?.steps.slice(-1).map(({ is, text }) => `${is} ${text}`)).toEqual([last]);
  });

  it('names what it could not read', () => {
    const unread = { pod: 'envoy-1', gateway: 'default/public', why: 'refused' };
    expect(linesOf(steps, traffic, [unread])).toEqual(['unknown envoy-1: refused']);
    expect(linesOf(steps, traffic, [])).toEqual([expect.stringMatching(/^unknown no running pod has/)]);
  });
});

describe('status --envoy', () => {
  const statusOf = (...states: readonly ReturnType<typeof envoy>[]) =>
    envoysStatusOf(
      { declarations: declared(), settings: {} },
      states.map((state, index) => ({ pod: `envoy-${index}`, gateway: 'default/public', state })),
    );

  it('has figures of each Envoy', () => {
    const rejected = { 'cluster_manager.cds.update_rejected': 1, [`cluster.${CLUSTER}.update_rejected`]: 2 };
    const { envoys, differences } = statusOf(envoy([near, { ...far, health: FAILING }], { rejected }));
    expect(envoys).toEqual([
      {
        ...{ pod: 'envoy-0', gateway: 'default/public', expected: 1, rejected: 3 },
        version: expect.stringMatching(/^[0-9a-f]{8}$/) as string,
        clusters: [{ name: CLUSTER, version: '7', endpoints: { used: 1, total: 2 }, rejected: 2 }],
      },
    ]);
    expect(differences).toMatchObject([{ reason: 'EnvoyDiffers', about: { kind: 'Pod', name: 'envoy-0' } }]);
  });

  it('names Envoys of a Gateway with different clusters', () => {
    const { differences } = statusOf(envoy([near, far]), envoy([near, far], { version: '8' }));
    expect(differences).toMatchObject([
      { reason: 'EnvoyDiffers', about: { kind: 'Gateway', namespace: 'default', name: 'public' } },
    ]);
    expect(differences.map(formatProblem)).toEqual([
      expect.stringMatching(
        /^Envoys of default\/public have different clusters \(\w{8} in envoy-0, \w{8} in envoy-1\): /,
      ),
    ]);
  });

  it('names what Envoy still rejects', () => {
    const { differences } = statusOf(envoy([near, far], { error: 'cannot bind port 80' }));
    expect(differences.map(formatProblem)).toEqual([
      'envoy-0 has rejected default/public/http: cannot bind port 80',
    ]);
  });
});
