import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { check } from '../../src/tools/check/check.ts';
import { Catalog, readObjects } from '../../src/tools/check/objects.ts';
import { trackingOf } from '../../src/tools/check/traffic.ts';
import { parseRequest } from '../../src/tools/trace/request.ts';
import { routeTracer } from '../../src/tools/trace/routes.ts';
import { trace } from '../../src/tools/trace/trace.ts';
import { findingText } from '../support/tools/checked.ts';
import { all, firstBroken, routeOf } from '../support/tools/traced.ts';
import { gatewayObject, meshBackend, openGateway } from '../support/declared.ts';

const toWeb = routeOf({ rules: [{ backendRefs: [meshBackend()] }] });

/** The objects of a request, with a GatewayClass of this controller. */
function objectsWith(controllerName: string): readonly object[] {
  return [...all, toWeb, gatewayObject('GatewayClass', 'mesh', { controllerName })];
}

const found = (objects: readonly object[]) => {
  const text = objects.map(object => stringify(object)).join('---\n');
  const declarations = readObjects([{ name: 'all.yaml', text }]);
  const catalog = new Catalog(declarations);
  const [route] = routeTracer(trackingOf(catalog), {}, catalog)();
  return {
    errors: check(declarations)
      .findings.map(findingText)
      .filter(each => each.startsWith('error')),
    reaches: route?.outcome.rules[0]?.reaches,
  };
};

const FOREIGN =
  'NotEnvoyGateway: spec.parentRefs: Gateway default/public is of GatewayClass mesh, whose controller example.com/other is not Envoy Gateway and knows no MeshEndpoints';

const UNSEEN =
  'NotSeen: Envoy Gateway reports BackendNotFound for HTTPRoute default/web though its MeshEndpoints exist';

/** Objects with a status: ResolvedRefs of the route, and Programmed of its MeshEndpoints. */
function objectsReported(resolved: string, programmed: string): readonly object[] {
  const route = { type: 'ResolvedRefs', status: 'False', reason: resolved };
  const endpoints = { type: 'Programmed', status: 'False', reason: programmed, message: 'why' };
  const at = { lastTransitionTime: '2026-01-15T12:00:00Z' };
  return [
    ...all.map(object =>
      'kind' in object && object.kind === 'MeshEndpoints'
        ? { ...object, status: { conditions: [{ ...endpoints, ...at }] } }
        : object,
    ),
    { ...toWeb, status: { parents: [{ conditions: [{ ...route, ...at }] }] } },
  ];
}

describe('a route whose MeshEndpoints Envoy Gateway does not see', () => {
  it('gets no traffic, in all tools, once the operator has found that out', () => {
    const objects = objectsReported('BackendNotFound', 'NotSeen');
    expect(found(objects)).toEqual({
      errors: [expect.stringMatching(`^error ${UNSEEN}, .*rollout restart`)],
      reaches: 'none',
    });
    expect(firstBroken(objects, 'http://web.example.com/')).toEqual([expect.stringContaining(UNSEEN)]);
  });

  it('has traffic as soon as it reports that they are resolved, and while a backend may just be new', () => {
    expect(found(objectsReported('ResolvedRefs', 'NotSeen')).errors).toEqual([]);
    expect(found(objectsReported('BackendNotFound', 'NotReported')).errors).toEqual([]);
  });
});

describe('a route to MeshEndpoints at a Gateway', () => {
  it('of another implementation gets no traffic, in all tools', () => {
    const objects = objectsWith('example.com/other');
    expect(found(objects)).toEqual({
      errors: [`error ${FOREIGN}: name a Gateway of Envoy Gateway`],
      reaches: 'none',
    });
    expect(firstBroken(objects, 'http://web.example.com/')).toEqual([expect.stringContaining(FOREIGN)]);
  });

  it('of Envoy Gateway beside one of another implementation is fine there', () => {
    const other = openGateway('default/other', { gatewayClassName: 'other' });
    const toBoth = routeOf({
      parentRefs: [{ name: 'public' }, { name: 'other' }],
      rules: [{ backendRefs: [meshBackend()] }],
    });
    const foreign = gatewayObject('GatewayClass', 'other', { controllerName: 'example.com/other' });
    const text = [...all, other, foreign, toBoth].map(object => stringify(object)).join('---\n');
    const request = parseRequest('http://web.example.com/', { method: 'GET', headers: [] });
    const ways = trace(readObjects([{ name: 'all.yaml', text }]), request, undefined);
    expect(ways.map(({ gateway, reaches }) => [gateway, reaches])).toEqual([
      ['default/public', 'all'],
      ['default/other', 'none'],
    ]);
  });

  it('of Envoy Gateway is fine', () => {
    const objects = objectsWith('gateway.envoyproxy.io/gatewayclass-controller');
    expect(found(objects)).toEqual({ errors: [], reaches: 'all' });
    expect(firstBroken(objects, 'http://web.example.com/')).toEqual([]);
  });

  it('of a GatewayClass that is elsewhere is not judged', () => {
    expect(found([...all, toWeb])).toEqual({ errors: [], reaches: 'all' });
  });
});
