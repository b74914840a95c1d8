import { describe, expect, it } from 'vitest';
import { kinds } from '../../src/api/generated/kinds.ts';
import { validate } from '../../src/api/validation/validate.ts';
import { linesOf } from '../support/schema/fault-lines.ts';
import { endpoint, meshBinding, meshEndpoints, meshTailnet } from '../support/objects.ts';

/** The object as it would be stored. */
function stored(object: object): unknown {
  const verdict = validate((object as { readonly kind: keyof typeof kinds }).kind, object);
  return verdict.valid ? verdict.object : verdict.faults;
}

/** A deeply frozen object. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value);
}

/** The same, with own keys named __proto__, which a literal cannot have. */
function json(text: string): unknown {
  return JSON.parse(text) as unknown;
}

const spec = (object: unknown) => (object as { readonly spec: Record<string, unknown> }).spec;
const first = (fields: object) => meshEndpoints({ endpoints: [endpoint({ ...fields })] });
const firstOf = (object: unknown) =>
  (spec(object)['endpoints'] as readonly Record<string, unknown>[])[0] ?? {};

describe('a valid object', () => {
  it.each([meshEndpoints(), meshTailnet(), meshBinding()])('of kind $kind is accepted', object => {
    expect(linesOf(object)).toEqual([]);
  });

  it('is returned as a copy, and the argument is unchanged', () => {
    const object = frozen(first({ healthCheck: { path: null }, colour: 'red', metadata: { a: 'b' } }));
    const before = structuredClone(object);
    const verdict = validate('MeshEndpoints', object);
    expect(object).toEqual(before);
    expect(verdict).toMatchObject({ valid: true });
    expect(firstOf(stored(object))['metadata']).not.toBe(firstOf(object)['metadata']);
  });

  it('is judged the same when it is judged again', () => {
    for (const object of [meshEndpoints(), meshTailnet(), meshBinding()])
      expect(stored(stored(object) as object)).toEqual(stored(object));
  });

  it('loses the fields that its kind does not have, wherever they are', () => {
    const metadata = { name: 'sample', managedFields: [], labels: { app: 'web' }, colour: 'red' };
    const object = { ...first({ colour: 'red', tls: { colour: 1 }, protocol: 'TLS' }), metadata, data: {} };
    expect(stored(object)).toEqual(
      stored({
        ...first({ tls: {}, protocol: 'TLS' }),
        metadata: { name: 'sample', labels: { app: 'web' } },
      }),
    );
  });

  it('loses its nulls, but not those in lists', () => {
    expect(stored(meshEndpoints({ tagSelectors: null, endpointTemplate: null }))).toEqual(
      stored(meshEndpoints()),
    );
    expect(firstOf(stored(first({ metadata: { a: null, b: 'c' } })))['metadata']).toEqual({ b: 'c' });
    expect(linesOf(meshTailnet({ tags: [null] }))).toHaveLength(1);
  });
});

describe('a default', () => {
  it('is set for absent fields, at any depth', () => {
    expect(spec(stored(meshTailnet()))).toMatchObject({
      dialect: 'Auto',
      tags: ['tag:mesh'],
      oauth: {
        secretRef: { name: 'mesh-oauth' },
        clientIdKey: 'client-id',
        clientSecretKey: 'client-secret',
      },
      allowedNamespaces: { from: 'All' },
      pool: { mode: 'Managed', replicas: 2 },
    });
  });

  it('is filled in where null is', () => {
    expect(spec(stored(meshEndpoints({ paused: null })))['paused']).toBe(false);
    expect(firstOf(stored(first({ weight: null })))['weight']).toBe(1);
  });

  it('is set in existing objects, and replaces no value', () => {
    expect(
      firstOf(stored(first({ healthCheck: { enabled: true, path: '/up' } })))['healthCheck'],
    ).toMatchObject({
      enabled: true,
      path: '/up',
      interval: '30s',
    });
    expect(spec(stored(meshTailnet({ pool: { replicas: 3 } })))['pool']).toMatchObject({ replicas: 3 });
    expect(spec(stored(meshEndpoints({ paused: false })))['paused']).toBe(false);
  });

  it('creates no optional object without a default', () => {
    expect(firstOf(stored(first({})))).not.toHaveProperty('healthCheck');
  });

  it('is a value of its own in each object', () => {
    const [one, other] = [stored(meshTailnet()), stored(meshTailnet())];
    expect(spec(one)['tags']).toEqual(spec(other)['tags']);
    expect(spec(one)['tags']).not.toBe(spec(other)['tags']);
    expect(spec(one)['pool']).not.toBe(spec(other)['pool']);
  });
});

describe('a key with the name __proto__', () => {
  const poisoned = (text: string) => text.replace('"HERE"', '"__proto__": {"polluted": true}');
  const text = (object: object) => JSON.stringify(object).replace('"HERE":0', '"HERE"');

  it.each([
    ['of the object', { ...meshEndpoints(), HERE: 0 }],
    ['of spec', meshEndpoints({ HERE: 0 })],
    ['of an item', first({ HERE: 0 })],
    ['of metadata', { ...meshEndpoints(), metadata: { name: 'sample', HERE: 0 } }],
  ])('is dropped like any unknown field %s', (_place, object) => {
    const given = json(poisoned(text(object))) as object;
    expect(JSON.stringify(given)).toContain('__proto__');
    const { HERE: _dropped, ...clean } = object as Record<string, unknown>;
    expect(JSON.stringify(stored(given))).not.toContain('__proto__');
    expect(Object.keys(stored(given) as object)).toEqual(Object.keys(stored(clean) as object));
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('is an ordinary key in a map', () => {
    const given = json(JSON.stringify(first({ metadata: { KEY: 'a' } })).replace('KEY', '__proto__'));
    const metadata = firstOf(stored(given as object))['metadata'] as object;
    expect(Object.keys(metadata)).toEqual(['__proto__']);
    expect(JSON.stringify(metadata)).toBe('{"__proto__":"a"}');
    expect(Object.getPrototypeOf(metadata)).toBe(Object.prototype);
  });

  it('has its value in a map judged', () => {
    const given = json(
      JSON.stringify(first({ metadata: { KEY: { polluted: true } } })).replace('KEY', '__proto__'),
    );
    expect(linesOf(given)).toEqual(['spec.endpoints[0].metadata.__proto__: an object is not a text']);
  });

  it('is dropped from a map where it is null', () => {
    const given = json(
      JSON.stringify(first({ metadata: { KEY: null, a: 'b' } })).replace('KEY', '__proto__'),
    );
    expect(firstOf(stored(given as object))['metadata']).toEqual({ a: 'b' });
  });
});

describe('an object without prototype', () => {
  it('is validated like any other', () => {
    const orphan = Object.assign(Object.create(null) as object, meshEndpoints());
    expect(linesOf(orphan)).toEqual([]);
  });
});

describe('a fault of a rule', () => {
  const brokenRule = { protocol: 'HTTP', tls: {} };
  const RULE = 'tls: tls may be given only where protocol is HTTPS, TLS or gRPC';

  it('is reported beside structural faults elsewhere', () => {
    const object = meshEndpoints({
      endpoints: [endpoint({ port: 0 }), endpoint({ name: 'b', ...brokenRule })],
    });
    expect(linesOf(object)).toEqual([
      'spec.endpoints[0].port: 0 is not a port (1 to 65535)',
      `spec.endpoints[1].${RULE}`,
    ]);
  });

  it('is not reported of a value with a structural fault inside', () => {
    expect(linesOf(first({ ...brokenRule, port: 0 }))).toEqual([
      'spec.endpoints[0].port: 0 is not a port (1 to 65535)',
    ]);
  });

  it('is not reported of a value inside an invalid one', () => {
    const endpoints = Array.from({ length: 1001 }, (_, index) =>
      endpoint({ name: `web-${index}`, ...brokenRule }),
    );
    expect(linesOf(meshEndpoints({ endpoints }))).toEqual([
      'spec.endpoints: has more than the 1000 items that are allowed',
    ]);
  });

  it('is reported of item 1 where item 10 is invalid', () => {
    const endpoints = Array.from({ length: 11 }, (_, index) =>
      endpoint({
        name: `web-${index}`,
        ...(index === 1 ? brokenRule : {}),
        ...(index === 10 ? { port: 0 } : {}),
      }),
    );
    expect(linesOf(meshEndpoints({ endpoints }))).toEqual([
      'spec.endpoints[10].port: 0 is not a port (1 to 65535)',
      `spec.endpoints[1].${RULE}`,
    ]);
  });

  it('is reported for each failed rule, and for each path', () => {
    const check = { enabled: true, type: 'UDP' };
    const object = meshEndpoints({
      endpoints: [
        endpoint({ ...brokenRule, healthCheck: check }),
        endpoint({ name: 'b', healthCheck: check }),
      ],
    });
    const type = 'healthCheck.type must be HTTP or TCP for an HTTP, TCP or TLS endpoint';
    expect(linesOf(object)).toEqual([
      `spec.endpoints[0].healthCheck.type: ${type}`,
      `spec.endpoints[0].${RULE}`,
      `spec.endpoints[1].healthCheck.type: ${type}`,
    ]);
  });
});

describe('any value', () => {
  it.each([0, '', NaN, true, Symbol('s'), () => 1, new Date(0), new Map(), /a/, 10n])(
    'can be judged: %s',
    value => {
      for (const kind of Object.values(kinds))
        expect(validate(kind.kind, value)).toMatchObject({ valid: false });
    },
  );

  it('that refers to itself can be judged', () => {
    const circle: Record<string, unknown> = { ...meshEndpoints() };
    circle['spec'] = circle;
    expect(validate('MeshEndpoints', circle)).toMatchObject({ valid: false });
  });
});

describe('a very large value', () => {
  it.each(['a.', 'a', 'aA', '['])('of repeated %s is refused, not choked on', part => {
    const verdict = validate('MeshEndpoints', meshEndpoints({ tailnet: part.repeat(5_000_000) }));
    expect(verdict.valid ? [] : verdict.faults.map(({ path }) => path)).toEqual(['spec.tailnet']);
  });

  it('in a list is refused without checking each item', () => {
    const verdict = validate('MeshEndpoints', meshEndpoints({ endpoints: Array(200_000).fill({}) }));
    expect(verdict.valid ? [] : verdict.faults.map(({ path }) => path)).toContain('spec.endpoints');
  });
});

describe('a text in the place of fields', () => {
  it('is not shown: it may be all of them on one line, a secret too', () => {
    const pool = { extraEnv: ['TS_AUTHKEY=hunter2'] };
    expect(JSON.stringify(validate('MeshTailnet', meshTailnet({ pool })))).not.toContain('hunter2');
  });
});

describe('an object that cannot become a text', () => {
  it.each(['{"toString":0}', '{"toString":null,"valueOf":1}', '{"__proto__":null}'])(
    'is refused: %s',
    text => {
      const verdict = validate('MeshEndpoints', {
        ...meshEndpoints(),
        apiVersion: JSON.parse(text) as unknown,
      });
      expect(verdict.valid ? [] : verdict.faults.map(({ path }) => path)).toEqual(['apiVersion']);
    },
  );
});
