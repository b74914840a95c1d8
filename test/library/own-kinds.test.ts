import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readDocuments } from '../../src/api/yaml-documents.ts';
import { AuthoringError, meshGateway, meshTailnet, toYaml, validate } from '../../src/index.ts';

/** The same texts in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

function faultsOf(make: () => unknown): readonly string[] {
  try {
    make();
  } catch (error) {
    if (error instanceof AuthoringError) return error.faults.map(({ path }) => path);
    throw error;
  }
  return [];
}

describe('meshTailnet', () => {
  it('makes the object that is written in YAML', () => {
    const tailnet = meshTailnet({
      metadata: { name: 'example' },
      tailnet: 'example.ts.net',
      tags: ['tag:mesh'],
    });
    expect(toYaml(tailnet)).toBe(`apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshTailnet
metadata:
  name: example
spec:
  tailnet: example.ts.net
  tags:
    - tag:mesh
`);
    expect(validate('MeshTailnet', tailnet).valid).toBe(true);
  });

  it('refuses what the API server would refuse, and fields that do not exist', () => {
    const given = { metadata: { name: 'example' }, tailnet: 'example.ts.net', tags: ['mesh'], tagz: [] };
    expect(faultsOf(() => meshTailnet(given))).toEqual(['spec.tags[0]', 'spec.tagz']);
  });
});

describe('meshGateway', () => {
  it('takes the name of a Gateway for a reference to it', () => {
    const gateway = meshGateway({
      metadata: { name: 'public', namespace: 'infra' },
      targetRefs: 'public',
      healthChecks: { envoy: 'Off' },
    });
    expect(gateway.spec).toEqual({
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' }],
      healthChecks: { envoy: 'Off' },
    });
    expect(validate('MeshGateway', gateway).valid).toBe(true);
  });

  it('refuses what the API server would refuse', () => {
    const given = { metadata: { name: 'public' }, targetRefs: [] };
    expect(faultsOf(() => meshGateway(given))).toEqual(['spec.targetRefs']);
  });
});

describe('toYaml', () => {
  const texts = [
    'yes',
    'off',
    'y',
    '~',
    '0o14',
    '014',
    '1_000',
    '12:30:00',
    '1e3',
    '2001-01-01',
    '.5',
    '=',
    '<<',
    '',
  ];

  it('writes texts that every reader of YAML takes for texts', () => {
    const value = fc.oneof(fc.constantFrom(...texts), fc.string(), fc.string({ unit: 'grapheme' }));
    const object = fc.record({ a: value, list: fc.array(value) });
    const holds = fc.property(fc.array(object, { minLength: 1, maxLength: 3 }), objects => {
      const text = toYaml(objects);
      expect(readDocuments(text).documents.map(document => document.value)).toEqual(objects);
      const [first = {}] = objects;
      for (const version of ['1.1', '1.2'] as const) expect(parse(toYaml(first), { version })).toEqual(first);
    });
    fc.assert(holds, { seed });
  });

  it('writes an object that is used twice twice, without aliases', () => {
    const shared = { name: 'web' };
    expect(toYaml({ a: shared, b: shared })).toBe('a:\n  name: web\nb:\n  name: web\n');
  });
});
