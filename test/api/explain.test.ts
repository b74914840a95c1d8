import { describe, expect, it } from 'vitest';
import { explainRule, explainStructure } from '../../src/api/validation/explain.ts';
import type { Outline } from '../../src/api/validation/validator.ts';
import { linesOf } from '../support/schema/fault-lines.ts';
import { endpoint, meshBinding, meshEndpoints, meshTailnet } from '../support/objects.ts';

const first = (fields: object) => meshEndpoints({ endpoints: [endpoint({ ...fields })] });
const check = (fields: object) => first({ healthCheck: fields });
const repeated = (count: number) => Array.from({ length: count }, (_, index) => index);

const LABEL = "a DNS label (lower-case letters, digits and '-', at most 63 characters, no '_' or '.')";
const PROTOCOLS = 'one of HTTP, HTTPS, TCP, UDP, TLS, gRPC';
const HEADER = 'a header value (printable ASCII on one line, at most 4096 characters)';
const QUANTITY = 'a quantity, such as 500m, 2 or 256Mi';
const POD_NAME = "a name for mesh pods (lower-case letters, digits and '-', no '.', at most 40 characters)";
const PORT = 'spec.endpoints[0].port';

/** An object with one fault, and its line. */
type Row = readonly [object: object, line: string];

const TABLES: Readonly<Record<string, readonly Row[]>> = {
  'is missing': [
    [first({ port: undefined }), `${PORT}: is required: give a port (1 to 65535)`],
    [first({ port: null }), `${PORT}: is required: give a port (1 to 65535)`],
    [first({ protocol: undefined }), `spec.endpoints[0].protocol: is required: give ${PROTOCOLS}`],
    [{ ...meshEndpoints(), spec: undefined }, 'spec: is required: give an object with fields'],
    [
      { ...meshEndpoints(), apiVersion: undefined },
      'apiVersion: is required: give mesh-gateway.dev/v1alpha1',
    ],
    [{ ...meshTailnet(), metadata: {} }, `metadata.name: is required: give ${POD_NAME}`],
    [meshBinding({ targetRefs: undefined }), 'spec.targetRefs: is required: give a list'],
  ],
  'has a wrong type': [
    [first({ priority: 'high' }), 'spec.endpoints[0].priority: "high" is not a whole number'],
    [first({ priority: 1.5 }), 'spec.endpoints[0].priority: 1.5 is not a whole number'],
    [first({ metadata: ['a'] }), 'spec.endpoints[0].metadata: a list is not a map of names to values'],
    [meshEndpoints({ endpoints: {} }), 'spec.endpoints: an object is not a list'],
    [meshEndpoints({ endpoints: [null] }), 'spec.endpoints[0]: null is not an object with fields'],
    [{ ...meshEndpoints(), spec: [] }, 'spec: a list is not an object with fields'],
    [meshEndpoints({ paused: 'yes' }), 'spec.paused: "yes" is not true or false'],
    [
      meshTailnet({ pool: { resources: { limits: { cpu: true } } } }),
      `spec.pool.resources.limits.cpu: true is not ${QUANTITY}`,
    ],
  ],
  'has quotes too many or too few': [
    [first({ port: '80' }), `${PORT}: "80" is not a port (1 to 65535); write it without quotes: 80`],
    [
      meshEndpoints({ paused: 'true' }),
      'spec.paused: "true" is not true or false; write it without quotes: true',
    ],
    [
      meshEndpoints({ paused: 'False' }),
      'spec.paused: "False" is not true or false; write it without quotes: false',
    ],
    [first({ metadata: { a: 1 } }), 'spec.endpoints[0].metadata.a: 1 is not a text; write it in quotes: "1"'],
    [
      first({ metadata: { a: false } }),
      'spec.endpoints[0].metadata.a: false is not a text; write it in quotes: "false"',
    ],
    [
      first({ protocol: 'TLS', tls: { minVersion: 1.2 } }),
      'spec.endpoints[0].tls.minVersion: 1.2 is not a TLS version in quotes, "1.2" or "1.3"; write it in quotes: "1.2"',
    ],
    [first({ port: '99999999999' }), `${PORT}: "99999999999" is not a port (1 to 65535)`],
    [first({ port: '8o' }), `${PORT}: "8o" is not a port (1 to 65535)`],
  ],
  'is none of the choices': [
    [first({ protocol: 'FTP' }), `spec.endpoints[0].protocol: "FTP" is not ${PROTOCOLS}`],
    [first({ protocol: 'http' }), `spec.endpoints[0].protocol: "http" is not ${PROTOCOLS}; write HTTP`],
    [first({ protocol: 'GRPC' }), `spec.endpoints[0].protocol: "GRPC" is not ${PROTOCOLS}; write gRPC`],
    [
      { ...meshEndpoints(), kind: 'meshendpoints' },
      'kind: "meshendpoints" is not MeshEndpoints; write MeshEndpoints',
    ],
  ],
  'is out of bounds': [
    [first({ port: 0 }), `${PORT}: 0 is not a port (1 to 65535)`],
    [first({ priority: 10 }), 'spec.endpoints[0].priority: 10 is too large: the most is 9'],
    [first({ priority: -1 }), 'spec.endpoints[0].priority: -1 is too small: the least is 0'],
    [
      meshEndpoints({ endpoints: repeated(1001).map(index => endpoint({ name: `web-${index}` })) }),
      'spec.endpoints: has more than the 1000 items that are allowed',
    ],
    [meshTailnet({ tags: [] }), 'spec.tags: has 0 items, and at least 1 must be there'],
    [
      first({ metadata: Object.fromEntries(repeated(33).map(index => [`key-${index}`, 'a'])) }),
      'spec.endpoints[0].metadata: has more than the 32 entries that are allowed',
    ],
    [
      first({ metadata: { a: 'x'.repeat(1025) } }),
      'spec.endpoints[0].metadata.a: has 1025 characters, and at most 1024 are allowed',
    ],
    [
      first({ metadata: { a: '🚀'.repeat(1025) } }),
      'spec.endpoints[0].metadata.a: has 1025 characters, and at most 1024 are allowed',
    ],
    [
      meshBinding({ targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: '' }] }),
      'spec.targetRefs[0].name: has 0 characters, and at least 1 must be there',
    ],
  ],
  'has a wrong form': [
    [first({ name: 'Web_1' }), `spec.endpoints[0].name: "Web_1" is not ${LABEL}`],
    [first({ name: 'a"b' }), String.raw`spec.endpoints[0].name: "a\"b" is not ${LABEL}`],
    [first({ name: '' }), `spec.endpoints[0].name: "" is not ${LABEL}`],
    [{ ...meshTailnet(), metadata: { name: 'a.b' } }, `metadata.name: "a.b" is not ${POD_NAME}`],
    [
      { ...meshEndpoints(), metadata: { name: 'a', creationTimestamp: 'today' } },
      'metadata.creationTimestamp: "today" is not a time such as 2026-01-31T12:00:00Z',
    ],
    [
      { ...meshEndpoints(), metadata: { name: 'a', creationTimestamp: '2026-02-30T12:00:00Z' } },
      'metadata.creationTimestamp: "2026-02-30T12:00:00Z" is not a time such as 2026-01-31T12:00:00Z',
    ],
  ],
  'is long and therefore cut': [
    [first({ name: 'A'.repeat(60) }), `spec.endpoints[0].name: "${'A'.repeat(60)}" is not ${LABEL}`],
    [first({ name: 'A'.repeat(61) }), `spec.endpoints[0].name: "${'A'.repeat(60)}"... is not ${LABEL}`],
  ],
  'is a secret and therefore not shown': [
    [
      check({ headers: { Token: 'a\nb' } }),
      `spec.endpoints[0].healthCheck.headers.Token: the value (not shown) is not ${HEADER}`,
    ],
    [
      check({ headers: { Token: 12345 } }),
      `spec.endpoints[0].healthCheck.headers.Token: the value (not shown) is not ${HEADER}`,
    ],
    [
      check({ headers: { Token: [] } }),
      `spec.endpoints[0].healthCheck.headers.Token: a list is not ${HEADER}`,
    ],
    [
      meshTailnet({ pool: { extraEnv: [{ name: 'TZ', value: 1234 }] } }),
      'spec.pool.extraEnv[0].value: the value (not shown) is not a text',
    ],
    [
      meshTailnet({ pool: { extraEnv: [{ name: 'TZ', value: 'x'.repeat(4097) }] } }),
      'spec.pool.extraEnv[0].value: has 4097 characters, and at most 4096 are allowed',
    ],
    [
      meshTailnet({ controlURL: 'https://me:secret@example.com' }),
      'spec.controlURL: the value (not shown) is not an http:// or https:// URL without user name, password, query or fragment, at most 1024 characters',
    ],
  ],
  'is there twice': [
    [
      meshEndpoints({ endpoints: [endpoint(), endpoint({ name: 'api' }), endpoint()] }),
      'spec.endpoints[2]: "web" is already at spec.endpoints[0]: each may be there once',
    ],
    [
      meshEndpoints({ endpoints: [endpoint(), endpoint(), endpoint()] }),
      'spec.endpoints[1]: "web" is already at spec.endpoints[0]: each may be there once',
    ],
    [
      meshTailnet({ tags: ['tag:a', 'tag:b', 'tag:b'] }),
      'spec.tags[2]: "tag:b" is already at spec.tags[1]: each may be there once',
    ],
  ],
  'breaks a rule': [
    [
      first({ meshIP: '10.0.0.1' }),
      'spec.endpoints[0].meshIP: "10.0.0.1" is not a mesh address (100.64.0.0 to 100.127.255.255, or in fd7a:115c:a1e0::/48; `tailscale ip` prints it)',
    ],
    [
      check({ interval: '0s' }),
      'spec.endpoints[0].healthCheck.interval: "0s" is not a duration from 1s to 1h, such as 30s or 1m30s',
    ],
    [
      first({ protocol: 'UDP', healthCheck: { enabled: true, type: 'TCP' } }),
      'spec.endpoints[0].healthCheck.type: healthCheck.type must be UDP for a UDP endpoint',
    ],
    [
      meshTailnet({ pool: { mode: 'External' } }),
      'spec.pool.addresses: addresses must hold at least one host:port when mode is External',
    ],
  ],
};

describe.each(Object.entries(TABLES))('a value that %s', (_sentence, rows) => {
  it.each(rows.map(([object, line]) => [line, object] as const))('is reported: %s', (line, object) => {
    expect(linesOf(object, kindBefore(object))).toEqual([line]);
  });
});

/** The kind that the object was before its apiVersion or kind was changed. */
function kindBefore(object: object) {
  const { kind } = object as { readonly kind: string };
  return kind === 'MeshTailnet' || kind === 'MeshBinding' ? kind : 'MeshEndpoints';
}

describe('a long value', () => {
  it('is never cut within a character', () => {
    const [line = ''] = linesOf(first({ name: `A${'🚀'.repeat(61)}` }));
    expect(line).toContain('🚀"... is not');
    expect(line).not.toContain(String.raw`\ud83d`);
  });
});

describe('a value that is not an object', () => {
  it.each([
    [null, 'null is not an object with fields'],
    [undefined, 'undefined is not an object with fields'],
    [17, '17 is not an object with fields'],
    ['text', 'a text is not an object with fields'],
    [[], 'a list is not an object with fields'],
  ])('%j is reported in one line without a path', (value, line) => {
    expect(linesOf(value, 'MeshEndpoints')).toEqual([line]);
  });
});

describe('many faults', () => {
  const wrong = (count: number) =>
    meshEndpoints({ endpoints: repeated(count).map(index => endpoint({ name: `web-${index}`, port: 0 })) });

  it('are all reported up to 100', () => {
    expect(linesOf(wrong(100))).toHaveLength(100);
    expect(linesOf(wrong(100))[99]).toBe('spec.endpoints[99].port: 0 is not a port (1 to 65535)');
  });

  it('beyond 100 are counted', () => {
    const lines = linesOf(wrong(150));
    expect(lines).toHaveLength(100);
    expect(lines[98]).toBe('spec.endpoints[98].port: 0 is not a port (1 to 65535)');
    expect(lines[99]).toBe('51 more faults are not listed');
  });
});

describe('an explanation', () => {
  const secret: Outline = { is: 'text', isSensitive: true };
  const root: Outline = {
    is: 'object',
    fields: { key: secret, keys: { is: 'list', items: secret } },
  };

  it.each(['pattern', 'enum', 'type'])('never shows a secret: %s', keyword => {
    const error = { instancePath: '/key', keyword, params: {} };
    const faults = explainStructure(error, { key: 'hunter2' }, root);
    expect(faults).toHaveLength(1);
    expect(JSON.stringify(faults)).not.toContain('hunter2');
  });

  it('never shows a repeated secret', () => {
    const error = {
      instancePath: '/keys',
      keyword: 'unique',
      params: { duplicates: [{ index: 1, first: 0 }] },
    };
    const faults = explainStructure(error, { keys: ['hunter2', 'hunter2'] }, root);
    expect(faults).toHaveLength(1);
    expect(JSON.stringify(faults)).not.toContain('hunter2');
  });

  it('of a rule never shows a secret', () => {
    const outline: Outline = { is: 'object', fields: { key: { ...secret, expect: 'a key' } } };
    const faults = explainRule(
      { message: 'key must be good', fieldPath: '' },
      'key',
      { key: 'hunter2' },
      outline,
    );
    expect(faults).toEqual({ path: 'key', steps: ['key'], message: 'the value (not shown) is not a key' });
  });

  it('of a rule about an object names the field that its rule names', () => {
    const outline: Outline = { is: 'object', fields: { limits: { is: 'object', fields: {} } } };
    const rule = { message: 'low must be at most high', fieldPath: '.low.value' };
    expect(explainRule(rule, 'limits', { limits: {} }, outline)).toEqual({
      path: 'limits.low.value',
      steps: ['limits', 'low', 'value'],
      message: 'low must be at most high',
    });
  });
});
