import { describe, expect, it } from 'vitest';
import type { RouteKind } from '../../src/api/key.ts';
import { named, route } from '../support/declared.ts';
import { endpoint, meshRoutePolicy } from '../support/objects.ts';
import { reportedIn, resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import {
  backend,
  backendObject,
  endpointsObject,
  httpRoute,
  service,
  serviceObject,
  sliceObject,
  tailnetObject,
} from '../support/traffic/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

const EU_A = { region: 'eu', zone: 'a' };
const EU_B = { region: 'eu', zone: 'b' };
const US = { region: 'us', zone: 'a' };

/** Endpoints 100.64.0.1 and on, with this metadata. */
const withMetadata = (...all: readonly (Fields | undefined)[]) =>
  all.map((metadata, index) => {
    const [name, meshIP] = [`e${index + 1}`, `100.64.0.${index + 1}`];
    return endpoint({ name, meshIP, meshFQDN: `${name}.example.ts.net`, ...(metadata && { metadata }) });
  });

const match = (matchLabels: Fields) => ({ matchLabels });

/** A policy of HTTPRoute web, or of other targets. */
const policy = (name: string, spec: Fields, metadata: Fields = {}) =>
  named(meshRoutePolicy(spec), `default/${name}`, metadata);

const target = (sectionName?: string, kind: RouteKind = 'HTTPRoute') => ({
  group: 'gateway.networking.k8s.io',
  ...{ kind, name: 'web' },
  ...(sectionName !== undefined && { sectionName }),
});

/** The endpoints of a cluster by priority, each with the last number of its address. */
function prioritiesOf(objects: readonly object[], cluster?: string): readonly string[] {
  const { through } = trafficOf(resourcesFrom([tailnetObject(), ...objects]), cluster);
  return through.Direct.assignment.localities
    .toSorted((a, b) => a.priority - b.priority)
    .map(({ priority, endpoints }) => {
      const last = endpoints.map(({ address }) => address.replace(/^.*\./, ''));
      return `${priority}: ${last.join(' ')}`;
    });
}

const WEB = [
  endpointsObject('web', withMetadata(EU_A, EU_B, US, undefined)),
  httpRoute('web', [backend('web')]),
];

describe('endpoints.require', () => {
  it.each([
    ['one key', { region: 'eu' }, ['0: 1 2']],
    ['several keys, which all must match', { region: 'eu', zone: 'b' }, ['0: 2']],
    ['no key selects all, also those without metadata', {}, ['0: 1 2 3 4']],
    ['a value that none has', { region: 'asia' }, []],
    ['a key that every object has in JavaScript', { constructor: 'x' }, []],
  ])('keeps the endpoints that match: %s', (_, labels, expected) => {
    const spec = { endpoints: { require: match(labels) } };
    expect(prioritiesOf([...WEB, policy('p', spec)])).toEqual(expected);
  });

  it('gives the weight of a backend without matching endpoints to the others', () => {
    const objects = [
      endpointsObject('a', withMetadata(US)),
      endpointsObject(
        'b',
        withMetadata(EU_A).map(each => ({ ...each, meshIP: '100.64.0.9' })),
      ),
      httpRoute('web', [backend('a', { weight: 9 }), backend('b')]),
      policy('p', { endpoints: { require: match({ region: 'eu' }) } }),
    ];
    expect(prioritiesOf(objects)).toEqual(['0: 9']);
  });

  it('reports nothing as unused, and changes no setting of the cluster', () => {
    const without = trafficOf(resourcesFrom([tailnetObject(), ...WEB]));
    const all = [...WEB, policy('p', { endpoints: { require: match({ region: 'asia' }) } })];
    const { settings, rule, through } = trafficOf(resourcesFrom([tailnetObject(), ...all]));
    expect(settings).toEqual(without.settings);
    expect([rule.unused, through.Proxy.unused]).toEqual([[], []]);
  });
});

describe('endpoints.prefer', () => {
  it('orders endpoints by the first entry that they match, and those without a match last', () => {
    const spec = { endpoints: { prefer: [match(EU_A), match({ region: 'eu' })] } };
    expect(prioritiesOf([...WEB, policy('p', spec)])).toEqual(['0: 1', '1: 2', '2: 3 4']);
  });

  it('leaves no gap where an entry matches nothing', () => {
    const spec = { endpoints: { prefer: [match({ region: 'asia' }), match(US)] } };
    expect(prioritiesOf([...WEB, policy('p', spec)])).toEqual(['0: 3', '1: 1 2 4']);
  });

  it('comes before the priority of endpoints, which decides among equal ones', () => {
    const endpoints = withMetadata(EU_A, EU_A, US, US).map((each, index) => ({
      ...each,
      priority: index % 2 === 0 ? 9 : 0,
    }));
    const objects = [endpointsObject('web', endpoints), httpRoute('web', [backend('web')])];
    const spec = { endpoints: { prefer: [match({ region: 'eu' })] } };
    expect(prioritiesOf([...objects, policy('p', spec)])).toEqual(['0: 2', '1: 1', '2: 4', '3: 3']);
  });

  it('is matched by no Service and no Backend, and require leaves them out neither', () => {
    const fallback = { fallback: true, endpoints: [{ ip: { address: '10.1.1.77', port: 3000 } }] };
    const objects = [
      endpointsObject('web', withMetadata(EU_A, US)),
      serviceObject('shop'),
      sliceObject('shop', [{ addresses: ['10.0.0.66'], conditions: { ready: true } }]),
      backendObject('legacy', fallback),
      httpRoute('web', [
        backend('web'),
        service(),
        { group: 'gateway.envoyproxy.io', kind: 'Backend', name: 'legacy' },
      ]),
    ];
    const spec = { endpoints: { prefer: [match(EU_A)], require: match({ zone: 'a' }) } };
    expect(prioritiesOf([...objects, policy('p', spec)])).toEqual(['0: 1', '1: 2', '1: 66', '2: 77']);
  });
});

describe('the policy of a rule', () => {
  const older = { creationTimestamp: '2026-01-01T00:00:00Z' };
  const newer = { creationTimestamp: '2026-02-01T00:00:00Z' };
  const only = (region: string, targetRefs: readonly object[] = [target()]) => ({
    targetRefs,
    endpoints: { require: match({ region }) },
  });
  const rules = (...names: readonly (string | undefined)[]) =>
    route('HTTPRoute', 'web', {
      rules: names.map(name => ({ ...(name !== undefined && { name }), backendRefs: [backend('web')] })),
    });
  const endpoints = endpointsObject('web', withMetadata(EU_A, US));
  const inRules = (objects: readonly object[]) =>
    [0, 1].map(rule => prioritiesOf([endpoints, ...objects], `httproute/default/web/rule/${rule}`));

  it('is that of the route for all of its rules', () => {
    expect(inRules([rules('a', undefined), policy('p', only('us'))])).toEqual([['0: 2'], ['0: 2']]);
  });

  it('is one that names the rule before an older one that names the route', () => {
    const objects = [policy('p', only('us'), older), policy('q', only('eu', [target('b')]), newer)];
    expect(inRules([rules('a', 'b'), ...objects])).toEqual([['0: 2'], ['0: 1']]);
  });

  it('is the oldest of several', () => {
    const objects = [policy('p', only('us'), newer), policy('q', only('eu'), older)];
    expect(inRules([rules('a', 'b'), ...objects])).toEqual([['0: 1'], ['0: 1']]);
  });

  it.each([
    ['of another route', { ...target(), name: 'other' }],
    ['of another kind', target(undefined, 'GRPCRoute')],
    ['of a rule that does not exist', target('c')],
  ])('is none %s', (_, other) => {
    const objects = [rules('a', 'b'), policy('p', only('us', [other]))];
    expect(inRules(objects)).toEqual([['0: 1 2'], ['0: 1 2']]);
  });

  it('is none of another namespace', () => {
    const elsewhere = named(meshRoutePolicy(only('us')), 'team/p');
    expect(inRules([rules('a', 'b'), elsewhere])).toEqual([['0: 1 2'], ['0: 1 2']]);
  });

  it.each([
    ['its only rule', ['db'], ['0: 2']],
    ['one of several rules, which share a cluster', ['db', 'other'], ['0: 1 2']],
  ])('of a TCPRoute may name %s', (_, names, expected) => {
    const tcp = endpointsObject('web', [
      ...withMetadata(EU_A, US).map(each => ({ ...each, protocol: 'TCP' })),
    ]);
    const backends = route('TCPRoute', 'web', {
      rules: names.map(name => ({ name, backendRefs: [backend('web')] })),
    });
    const given = policy('p', only('us', [target('db', 'TCPRoute')]));
    const cluster = 'tcproute/default/web/rule/-1';
    const { through } = trafficOf(resourcesFrom([tailnetObject(), tcp, backends, given]), cluster);
    const found = through.Direct.assignment.localities.map(({ endpoints: list }) =>
      list.map(({ address }) => address.at(-1)).join(' '),
    );
    // Two rules with one backend name each address twice, and the second counts as a duplicate.
    expect(found.map(text => `0: ${text}`)).toEqual(expected);
  });
});

describe('the priorities of a rule', () => {
  it('are 16 at most, and those beyond are not used, with the reason', () => {
    const endpoints = Array.from({ length: 20 }, (_, index) =>
      endpoint({
        name: `e${index}`,
        meshIP: `100.64.0.${index + 1}`,
        meshFQDN: `e${index}.example.ts.net`,
        priority: index % 10,
        metadata: { tier: index < 10 ? 'a' : 'b' },
      }),
    );
    const objects = [
      endpointsObject('web', endpoints),
      httpRoute('web', [backend('web')]),
      policy('p', { endpoints: { prefer: [match({ tier: 'a' })] } }),
    ];
    const { Direct } = trafficOf(resourcesFrom([tailnetObject(), ...objects])).through;
    expect(Direct.assignment.localities.map(({ priority }) => priority)).toEqual([...Array(16).keys()]);
    expect(Direct.unused.map(({ reason }) => reason)).toEqual(['TooManyPriorities']);
    expect(reportedIn(Direct.unused)[0]?.message).toMatch(
      /^spec\.rules\[0\]\.backendRefs\[0\]: endpoints of MeshEndpoints default\/web would be in priority 17 or later/,
    );
  });
});

describe('failover.healthyPercent', () => {
  it.each([
    [undefined, undefined],
    [100, 100],
    [72, 139],
    [50, 200],
    [1, 10_000],
  ])('%s is the factor %s of Envoy', (healthyPercent, factor) => {
    const spec = { failover: { ...(healthyPercent !== undefined && { healthyPercent }) } };
    const { through } = trafficOf(resourcesFrom([tailnetObject(), ...WEB, policy('p', spec)]));
    expect(through.Direct.assignment.overprovisioningFactor).toBe(factor);
  });
});
