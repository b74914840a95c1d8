import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PLACES, REASONS } from '../../src/api/reasons.ts';
import { isRecord } from '../../src/api/json.ts';

/** The hand-written sources of the product but for the declarations. */
const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter(file => file.endsWith('.ts') && !/^(api\/(generated|reasons)|extension\/proto)\//.test(file))
  .map(file => ({ file, text: readFileSync(join('src', file), 'utf8') }));

/** Reasons of what is no condition, no entry of a status and no finding: Events, logs, errors and metrics. */
const OTHERS = new Set([
  ...['EndpointHealthy', 'EndpointUnhealthy', 'ServicesCleanedUp', 'RelayNotCurrent', 'RelayPortsFailed'],
  ...['DeviceDeleted', 'DeviceLeft', 'JoinKeyCreated', 'JoinKeyRevoked', 'OrphanDeleted', 'OrphanFound'],
  ...['NotTried', 'Expired', 'failed', 'outside'],
]);

describe('every reason', () => {
  it('that the product writes is declared', () => {
    const folders = /^(api|controllers|extension|files|health|serving|store|tools|traffic)\//;
    const used = sources
      .filter(({ file }) => folders.test(file))
      .flatMap(({ file, text }) =>
        [...text.matchAll(/\breason: '(\w+)'/g)].map(([, reason = '']) => ({ file, reason })),
      );
    expect(used.length).toBeGreaterThan(150);
    expect(used.filter(({ reason }) => !(reason in REASONS) && !OTHERS.has(reason))).toEqual([]);
  });

  it('that is declared is one that the product writes', () => {
    const code = sources.map(({ text }) => text).join('\n');
    expect(Object.keys(REASONS).filter(reason => !code.includes(`'${reason}'`))).toEqual([]);
  });

  it('of status.endpoints is one that the schema allows', () => {
    const schema: unknown = JSON.parse(readFileSync('schema/mesh-endpoints.json', 'utf8'));
    const allowed = namedIn(schema, 'EndpointReason');
    expect(Object.keys(PLACES['MeshEndpoints status.endpoints']).sort()).toEqual([...allowed].sort());
  });

  it('has a meaning, and what does not work has what to do', () => {
    const declared = Object.entries(PLACES).flatMap(([place, reasons]) =>
      Object.entries(reasons).map(([reason, declaration]) => ({ place, reason, ...declaration })),
    );
    expect(declared.filter(({ means }) => means === '')).toEqual([]);
    const isWithoutFix = ({ severity, fix = '' }: (typeof declared)[number]) =>
      severity === 'error' && fix === '';
    expect(declared.filter(isWithoutFix).map(({ place, reason }) => `${place} ${reason}`)).toEqual([
      'MeshEndpoints status.vipServices NotSupported',
      'MeshEndpoints VIPServicesReady NotSupported',
    ]);
  });
});

describe('a condition', () => {
  it('is made of problems, which have declared reasons, in one place', () => {
    const made = sources.filter(({ text }) => /\btype: [\w']+,\s+status: '(True|False|Unknown)'/.test(text));
    expect(made.map(({ file }) => file)).toEqual([]);
  });
});

/** The enum with a title in a schema. */
function namedIn(schema: unknown, title: string): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap(each => namedIn(each, title));
  if (!isRecord(schema)) return [];
  if (schema['title'] === title) return schema['enum'] as readonly string[];
  return Object.values(schema).flatMap(each => namedIn(each, title));
}
