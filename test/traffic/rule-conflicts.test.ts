import { describe, expect, it } from 'vitest';
import { endpoint } from '../support/objects.ts';
import { reportedIn, resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import type { Traffic } from '../support/traffic/resolve.ts';
import { backend, endpointsObject, httpRoute, tailnetObject } from '../support/traffic/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

/** An object for each list of endpoints, all of them backends of one rule; `b` is on a tailnet of its own. */
function rule(objects: Readonly<Record<string, readonly Fields[]>>): Traffic {
  const names = Object.keys(objects);
  return trafficOf(
    resourcesFrom([
      tailnetObject('first'),
      tailnetObject('second', { tailnet: 'other.ts.net' }),
      ...names.map(name => {
        const tailnet = name === 'b' ? 'other.ts.net' : 'example.ts.net';
        return endpointsObject(name, objects[name], { tailnet });
      }),
      httpRoute(
        'web',
        names.map(name => backend(name)),
      ),
    ]),
  );
}

function used({ rule }: Traffic): readonly string[] {
  return rule.backends.flatMap(({ endpoints }) =>
    endpoints.map(({ object, endpoint }) => `${object.metadata.name}/${endpoint.name}`),
  );
}

function refused({ rule }: Traffic): readonly string[] {
  return rule.unused.map(({ reason, object, endpoint }) => `${reason} ${object} ${endpoint}`);
}

const at = (name: string, meshIP: string, fields: Fields = {}) => endpoint({ name, meshIP, ...fields });
const [ONE, TWO] = ['100.64.0.1', '100.64.0.2'];

describe('endpoints of one rule with the same name and port', () => {
  const secure = (name: string, meshIP: string, fields: Fields = {}) =>
    at(name, meshIP, { protocol: 'HTTPS', meshFQDN: 'one.example.ts.net', ...fields });

  it('are used once where the proxy dials them by name', () => {
    const traffic = rule({ a: [secure('x', ONE), secure('y', TWO)], c: [secure('z', '100.64.0.3')] });
    expect(used(traffic)).toEqual(['a/x']);
    expect(reportedIn(traffic.rule.unused).map(({ reason, message }) => [reason, message])).toEqual([
      [
        'DuplicateAddress',
        'spec.rules[0].backendRefs[0]: endpoint y of MeshEndpoints default/a has the same meshFQDN and port as endpoint x of MeshEndpoints default/a, which is used, and endpoints with TLS are dialled by that name: give each its own meshFQDN, or remove one of them',
      ],
      [
        'DuplicateAddress',
        'spec.rules[0].backendRefs[1]: endpoint z of MeshEndpoints default/c has the same meshFQDN and port as endpoint x of MeshEndpoints default/a, which is used, and endpoints with TLS are dialled by that name: give each its own meshFQDN, or remove one of them',
      ],
    ]);
  });

  it.each<readonly [string, Fields, Fields]>([
    ['there is no TLS', { protocol: 'HTTP' }, { protocol: 'HTTP' }],
    ['one is reached by its address', {}, { tls: { serverName: 'shop.example.com' } }],
    ['ports differ', {}, { port: 8443 }],
  ])('are no duplicates where %s', (_, first, second) => {
    const a = [secure('x', ONE, first), secure('y', TWO, second)];
    const traffic = trafficOf(
      resourcesFrom([
        tailnetObject('first'),
        endpointsObject('a', a),
        httpRoute('web', [backend('a'), backend('a', { port: 8443 })]),
      ]),
    );
    expect(used(traffic)).toEqual(['a/x', 'a/y']);
  });

  it('prefer the endpoint whose object is not being deleted', () => {
    const going = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } };
    const traffic = trafficOf(
      resourcesFrom([
        tailnetObject('first'),
        endpointsObject('old', [secure('x', ONE)], going),
        endpointsObject('new', [secure('x', TWO)]),
        httpRoute('web', [backend('old'), backend('new')]),
      ]),
    );
    expect(used(traffic)).toEqual(['new/x']);
  });
});

describe('endpoints of one rule with the same address and port', () => {
  it('are used once: the first', () => {
    const traffic = rule({ a: [at('x', ONE), at('y', ONE), at('z', TWO)], c: [at('x', TWO)] });
    expect(used(traffic)).toEqual(['a/x', 'a/z']);
    expect(refused(traffic)).toEqual([
      'DuplicateAddress MeshEndpoints/default/a y',
      'DuplicateAddress MeshEndpoints/default/c x',
    ]);
  });

  it('are no duplicates where the port differs', () => {
    const traffic = rule({ a: [at('x', ONE), at('y', ONE, { port: 8081 })] });
    expect([used(traffic), refused(traffic)]).toEqual([['a/x'], []]);
  });

  it('are compared by canonical address', () => {
    const traffic = rule({
      a: [
        at('x', 'fd7a:115c:a1e0::1'),
        at('y', 'FD7A:115C:A1E0:0:0:0:0:1'),
        at('z', 'fd7a:115c:a1e0::0.0.0.1'),
        at('w', 'fd7a:115c:a1e0::2'),
      ],
    });
    expect(used(traffic)).toEqual(['a/x', 'a/w']);
    expect(traffic.rule.unused).toHaveLength(2);
  });

  it('are all unused where they are in two tailnets', () => {
    const traffic = rule({ a: [at('x', ONE), at('z', TWO)], b: [at('y', ONE)], c: [at('w', ONE)] });
    expect(used(traffic)).toEqual(['a/z']);
    expect(refused(traffic)).toEqual([
      'DuplicateAddress MeshEndpoints/default/a x',
      'DuplicateAddress MeshEndpoints/default/b y',
      'DuplicateAddress MeshEndpoints/default/c w',
    ]);
    expect(reportedIn(traffic.rule.unused).map(({ message }) => message)).toEqual([
      'spec.rules[0].backendRefs[0]: endpoint x of MeshEndpoints default/a has the same address and port as endpoint y of MeshEndpoints default/b in another tailnet, and Envoy keeps one endpoint per address, so neither is used: give them rules of their own',
      'spec.rules[0].backendRefs[1]: endpoint y of MeshEndpoints default/b has the same address and port as endpoint x of MeshEndpoints default/a in another tailnet, and Envoy keeps one endpoint per address, so neither is used: give them rules of their own',
      'spec.rules[0].backendRefs[2]: endpoint w of MeshEndpoints default/c has the same address and port as endpoint y of MeshEndpoints default/b in another tailnet, and Envoy keeps one endpoint per address, so neither is used: give them rules of their own',
    ]);
  });

  it('do not decide the protocol of the rule where they are unused', () => {
    const traffic = rule({ a: [at('x', ONE, { protocol: 'gRPC' }), at('z', TWO)], b: [at('y', ONE)] });
    expect(used(traffic)).toEqual(['a/z']);
    expect(traffic.rule.protocol).toBe('HTTP/1.1');
  });

  it('prefer the endpoint whose object is not being deleted', () => {
    const going = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } };
    const traffic = trafficOf(
      resourcesFrom([
        tailnetObject('first'),
        endpointsObject('old', [at('x', ONE), at('y', TWO)], going),
        endpointsObject('new', [at('x', ONE)]),
        httpRoute('web', [backend('old'), backend('new')]),
      ]),
    );
    expect(used(traffic)).toEqual(['old/y', 'new/x']);
    expect(refused(traffic)).toEqual(['DuplicateAddress MeshEndpoints/default/old x']);
  });

  it('are ignored if they are unused for another reason', () => {
    const traffic = rule({ a: [at('x', ONE, { protocol: 'TCP' }), at('y', ONE)] });
    expect(used(traffic)).toEqual(['a/y']);
    expect(refused(traffic)).toEqual(['ProtocolMismatch MeshEndpoints/default/a x']);
  });

  it('are allowed in different rules, and in clusters of single backends', () => {
    const resources = resourcesFrom([
      tailnetObject('first'),
      endpointsObject('a', [at('x', ONE)]),
      httpRoute('web', [backend('a'), backend('a')], [backend('a')]),
    ]);
    const clusters = ['rule/0', 'rule/0/backend/0', 'rule/0/backend/1', 'rule/1'];
    const all = clusters.map(cluster => trafficOf(resources, `httproute/default/web/${cluster}`));
    expect(all.map(used)).toEqual([['a/x'], ['a/x'], ['a/x'], ['a/x']]);
    expect(all.map(refused)).toEqual([['DuplicateAddress MeshEndpoints/default/a x'], [], [], []]);
  });
});
