import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { Catalog, readObjects } from '../../src/tools/check/objects.ts';
import { trackingOf } from '../../src/tools/check/traffic.ts';
import { routeTracer } from '../../src/tools/trace/routes.ts';
import { check } from '../../src/tools/check/check.ts';
import { findingText } from '../support/tools/checked.ts';
import { gatewayObject, meshBackend } from '../support/declared.ts';
import { invalidObjects } from '../support/tools/gateway-api-faults.ts';
import { misspelledObjects, validObjects } from '../support/tools/gateway-api-objects.ts';
import { all, gateway, routeOf, tailnet, web } from '../support/tools/traced.ts';

const toWeb = routeOf({ rules: [{ backendRefs: [meshBackend()] }] });

/** The other objects that an object of a kind is used with. */
const around = (kind: unknown) => [web, tailnet, ...(kind === 'Gateway' ? [] : [gateway])];

const declarationsOf = (objects: readonly object[]) =>
  readObjects([{ name: 'all.yaml', text: objects.map(object => stringify(object)).join('---\n') }]);

const findingsOf = (object: object, kind: unknown) =>
  check(declarationsOf([...around(kind), object])).findings.map(findingText);

describe('check finds what the CRDs refuse', () => {
  it.each(invalidObjects)('$what', ({ object, at, text }) => {
    expect(findingsOf(object, object.kind)).toEqual([`error Invalid: ${at}: ${text}`]);
  });

  it.each(invalidObjects)('$what: trace leaves the object out', ({ object }) => {
    const left = declarationsOf([object]).objects.filter(({ resource }) => resource);
    expect(left).toEqual([]);
  });
});

describe('check warns of a field that the CRDs do not have', () => {
  it.each(misspelledObjects)('$what', ({ object, at, meant, release = 'Gateway API v1.6.1' }) => {
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    expect(findingsOf(object, object.kind)).toEqual([
      `warning UnknownField: ${at}: is not a field of ${object.kind} in ${release}, whose CRDs let the API server drop it${hint}`,
    ]);
  });
});

describe('check accepts', () => {
  it.each(validObjects)('$what', ({ object }) => {
    expect(declarationsOf([object]).findings).toEqual([]);
  });
});

describe('an invalid object', () => {
  it('is the only one that is reported, and no route is traced by it', () => {
    const wrong = routeOf({ rules: [{ timeouts: 5, backendRefs: [meshBackend()] }] });
    const declarations = declarationsOf([...all, wrong]);
    expect(check(declarations).findings.map(findingText)).toEqual([
      'error Invalid: spec.rules[0].timeouts: 5 is not an object with fields',
    ]);
    const catalog = new Catalog(declarations);
    expect(routeTracer(trackingOf(catalog), {}, catalog)()).toEqual([]);
  });

  it('that is a ReferenceGrant does not make its references wrong', () => {
    const grant = gatewayObject('ReferenceGrant', 'other/web', { from: [{ kind: 'HTTPRoute' }], to: [] });
    const elsewhere = { ...web, metadata: { name: 'web', namespace: 'other' } };
    const across = routeOf({ rules: [{ backendRefs: [meshBackend({ namespace: 'other' })] }] });
    const found = check(declarationsOf([elsewhere, tailnet, gateway, grant, across])).findings;
    expect(new Set(found.map(({ about }) => about?.kind))).toEqual(new Set(['ReferenceGrant']));
  });

  it('beside one that is valid does not hide it', () => {
    const second = { ...routeOf({ hostnames: ['*'] }), metadata: { name: 'second', namespace: 'default' } };
    const catalog = new Catalog(declarationsOf([...all, toWeb, second]));
    expect(routeTracer(trackingOf(catalog), {}, catalog)()).toHaveLength(1);
  });
});
