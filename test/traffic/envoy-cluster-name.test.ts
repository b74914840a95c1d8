import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RouteKind } from '../../src/api/key.ts';
import { formatEnvoyClusterName, parseEnvoyClusterName } from '../../src/traffic/envoy-cluster-name.ts';

/** The same values in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const KINDS: readonly RouteKind[] = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'];

describe('an Envoy cluster name', () => {
  it.each([
    ['httproute/shop/web/rule/0', { kind: 'HTTPRoute', namespace: 'shop', name: 'web', rule: 0 }],
    ['grpcroute/shop/web/rule/15', { kind: 'GRPCRoute', namespace: 'shop', name: 'web', rule: 15 }],
    ['tlsroute/shop/web/rule/-1', { kind: 'TLSRoute', namespace: 'shop', name: 'web', rule: 'only' }],
    ['tcproute/shop/a.b/rule/-1', { kind: 'TCPRoute', namespace: 'shop', name: 'a.b', rule: 'only' }],
    ['udproute/shop/web/rule/-1', { kind: 'UDPRoute', namespace: 'shop', name: 'web', rule: 'only' }],
    [
      'httproute/shop/web/rule/2/backend/1',
      { kind: 'HTTPRoute', namespace: 'shop', name: 'web', rule: 2, backend: 1 },
    ],
    [
      'httproute/shop/web.1.mesh-gateway.dev/rule/2',
      { kind: 'HTTPRoute', namespace: 'shop', name: 'web', rule: 2 },
    ],
  ])('%s is parsed', (text, parts) => {
    expect(parseEnvoyClusterName(text)).toEqual({ text, ...parts });
  });

  it.each([
    '',
    '/',
    'xds_cluster',
    'prometheus_stats',
    'service/shop/web/80',
    'httproute',
    'httproute/',
    'httproute/shop/web',
    'httproute/shop/web/rule',
    'httproute/shop/web/rule/',
    'httproute//web/rule/0',
    'httproute/shop//rule/0',
    'httproute/shop/web/rule/0/',
    'httproute/shop/web/rule/0/backend',
    'httproute/shop/web/rule/0/backend/',
    'httproute/shop/web/rule/0/backend/-1',
    'httproute/shop/web/rule/0/backend/0/x',
    'httproute/shop/web/rule/0/backend/0/',
    'httproute/shop/web/rule/0/other/0',
    'httproute/shop/web/rule/00',
    'httproute/shop/web/rule/+1',
    'httproute/shop/web/rule/1e3',
    'httproute/shop/web/rule/ 1',
    'httproute/shop/web/rule/-2',
    'httproute/shop/web/rule/99999999999999999999',
    'httproute/shop/web/rule/0-mirror-0',
    'HTTPRoute/shop/web/rule/0',
    'constructor/shop/web/rule/0',
    '__proto__/shop/web/rule/0',
    'httproute/shop/web.2.mesh-gateway.dev/rule/0',
    'httproute/shop/web.999999999.mesh-gateway.dev/rule/0',
    ' httproute/shop/web/rule/0',
    'httproute/shop/web/rule/0\n',
  ])('%j is not the name of a rule', text => {
    expect(parseEnvoyClusterName(text)).toBeUndefined();
  });

  it('is formatted as by Envoy Gateway', () => {
    expect(formatEnvoyClusterName('HTTPRoute', 'shop', 'web', 0)).toBe('httproute/shop/web/rule/0');
    expect(formatEnvoyClusterName('TCPRoute', 'shop', 'web', 'only')).toBe('tcproute/shop/web/rule/-1');
    expect(formatEnvoyClusterName('HTTPRoute', 'shop', 'web', 1, 2)).toBe(
      'httproute/shop/web/rule/1/backend/2',
    );
  });

  it('parses to what it was formatted from', () => {
    const part = fc.stringMatching(/^[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?$/);
    const rule = fc.oneof(fc.nat(99), fc.constant('only' as const));
    const backend = fc.option(fc.nat(99), { nil: undefined });
    const property = fc.property(
      fc.constantFrom(...KINDS),
      part,
      part,
      rule,
      backend,
      (kind, namespace, name, rule, backend) => {
        const text = formatEnvoyClusterName(kind, namespace, name, rule, backend);
        expect(parseEnvoyClusterName(text)).toEqual({ text, kind, namespace, name, rule, backend });
      },
    );
    fc.assert(property, { seed, numRuns: 300 });
  });

  it('formats to the text that it was parsed from', () => {
    const number = fc.constantFrom('0', '1', '12', '-1', '01', '-0', '1.', '1e1', '0x1', '', '9'.repeat(9));
    const name = fc.constantFrom('a', 'a.b', '', '-', ' ', '%2F', '\u0000');
    const text = fc
      .record({
        kind: fc.constantFrom('httproute', 'tcproute', 'tcpRoute', ''),
        names: fc.tuple(name, name),
        rule: fc.tuple(fc.constantFrom('rule', 'rule', 'rules'), number),
        rest: fc.constantFrom([], [], ['backend'], ['backend', '0'], ['backend', '1', '2'], ['x', '0'], ['']),
      })
      .map(({ kind, names, rule, rest }) => [kind, ...names, ...rule, ...rest].join('/'));
    let parsed = 0;
    const property = fc.property(text, text => {
      const clusterName = parseEnvoyClusterName(text);
      if (!clusterName) return;
      parsed++;
      const { kind, namespace, name, rule, backend } = clusterName;
      expect(formatEnvoyClusterName(kind, namespace, name, rule, backend)).toBe(text);
    });
    fc.assert(property, { seed, numRuns: 3000 });
    expect(parsed).toBeGreaterThan(100);
  });
});
