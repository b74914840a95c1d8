import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GatewayFiles } from '../../../src/files/gateway/gateway-files.ts';
import { openDirectory } from '../../../src/files/directory.ts';
import type { Directory } from '../../../src/files/directory.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { eventually } from '../../support/eventually.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { QUICK, writeWhole } from '../../support/files/folder.ts';
import { generatedIn } from '../../support/standalone/generated.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';

/** The same in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

/** What a user does to one of a few files. */
type Step =
  | {
      readonly do: 'write';
      readonly file: string;
      readonly objects: readonly (readonly [of: number, value: number])[];
    }
  | { readonly do: 'remove' | 'break'; readonly file: string }
  | { readonly do: 'restart' };

const file = fc.constantFrom('a.yaml', 'b.yaml', 'c/d.yaml');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      file,
      objects: fc.array(fc.tuple(fc.nat(4), fc.integer({ min: 1, max: 3 })), { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('remove' as const, 'break' as const), file }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);

/** One of a few objects of several kinds, with a field that can change. */
function objectOf([of, value]: readonly [number, number]): object {
  const objects = [
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'one' }, stringData: { value: String(value) } },
    route('HTTPRoute', 'one', { rules: [{ name: `rule-${value}`, backendRefs: [] }] }),
    named(meshEndpoints({ endpoints: [endpoint({ port: value })] }), 'one'),
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'one' }, spec: { value } },
    gatewayObject('TCPRoute', 'one', { rules: [{ backendRefs: [{ name: 'x', port: value }] }] }, 'v1alpha2'),
  ];
  return objects[of] ?? {};
}

/** Always there, because without it the folder would have no MeshEndpoints. */
const NAMING = route('GRPCRoute', 'naming', { rules: [{ backendRefs: [meshBackend({ name: 'one' })] }] });

type Open = { readonly directory: Directory; readonly close: () => Promise<void> };

async function open(root: string): Promise<Open> {
  const directory = openDirectory({
    folder: join(root, 'declared'),
    indexes: [],
    timing: { ...QUICK, deleteAfterMs: 20 },
    report: () => undefined,
    reportFailure: error => {
      throw error;
    },
    onManifests: () => files.onWritten(),
  });
  const { read, manifests } = directory;
  const log = createLog({ level: 'error', to: { write: () => undefined } });
  const files = new GatewayFiles({
    folder: join(root, 'generated'),
    read,
    written: manifests,
    clock: systemClock,
    log,
  });
  files.start();
  directory.start();
  await read.whenSynced();
  const close = async () => {
    await files.close();
    await directory.close();
  };
  return { directory, close };
}

/** The field of a generated part that can change. */
function valuesIn(root: string): Readonly<Record<string, unknown>> {
  const parts = [...generatedIn(join(root, 'generated'))];
  return Object.fromEntries(
    parts.map(([name, text]) => {
      const { metadata: _metadata, ...rest } = JSON.parse(text) as Record<string, unknown>;
      return [name, rest];
    }),
  );
}

/** The same, by the store and the manifests. */
function valuesWanted({ read, manifests }: Directory): Readonly<Record<string, unknown>> {
  const endpoints = read.get({ kind: 'MeshEndpoints', namespace: 'default', name: 'one' });
  const whole = (key: Parameters<typeof manifests.get>[0]) => manifests.get(key)?.object.content;
  const group = 'gateway.networking.k8s.io';
  const found: Readonly<Record<string, object | undefined>> = {
    'MeshEndpoints/default/one': endpoints && {
      apiVersion: endpoints.apiVersion,
      kind: endpoints.kind,
      spec: endpoints.spec,
    },
    'Secret/default/one': whole('|Secret|default|one'),
    'HTTPRoute/default/one': whole(`${group}|HTTPRoute|default|one`),
    'GRPCRoute/default/naming': whole(`${group}|GRPCRoute|default|naming`),
    'TCPRoute/default/one': whole(`${group}|TCPRoute|default|one`),
  };
  const entries = Object.entries(found).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => {
      const { metadata: _metadata, ...rest } = { metadata: undefined, ...value };
      return [name, name.startsWith('TCPRoute') ? { ...rest, apiVersion: `${group}/v1` } : rest];
    }),
  );
}

/** The objects in the files of a user, as far as these are valid. */
function namesDeclared(steps: readonly Step[]): ReadonlySet<number> {
  const files = new Map<string, readonly number[]>();
  for (const one of steps) {
    if (one.do === 'write')
      files.set(
        one.file,
        one.objects.map(([of]) => of),
      );
    if (one.do === 'remove') files.delete(one.file);
  }
  return new Set([...files.values()].flat());
}

async function take(one: Step, root: string, opened: Open): Promise<Open> {
  const path = (name: string) => join(root, 'declared', name);
  switch (one.do) {
    case 'write':
      await writeWhole(
        path(one.file),
        one.objects.map(given => JSON.stringify(objectOf(given))).join('\n---\n'),
      );
      return opened;
    case 'remove':
      await rm(path(one.file), { force: true });
      return opened;
    case 'break':
      await mkdir(join(path(one.file), '..'), { recursive: true });
      await writeFile(path(one.file), '{ broken');
      return opened;
    case 'restart':
      await opened.close();
      return open(root);
  }
}

/** Takes the steps in order. */
async function takeAll([first, ...rest]: readonly Step[], root: string, opened: Open): Promise<Open> {
  return first ? takeAll(rest, root, await take(first, root, opened)) : opened;
}

describe('after any sequence of edits', () => {
  it('the folder of Envoy Gateway ends up with what is declared', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async steps => {
        const root = mkdtempSync(join(tmpdir(), 'gateway-files-'));
        await mkdir(join(root, 'declared'));
        await writeWhole(join(root, 'declared', 'naming.yaml'), JSON.stringify(NAMING));
        // Removing all invalid files, so that no earlier content has to be kept.
        const broken = new Set(steps.flatMap(one => (one.do === 'break' ? [one.file] : [])));
        const mends = [...broken].map(name => ({ do: 'remove', file: name }) as const);
        const opened = await takeAll([...steps, ...mends], root, await open(root));
        try {
          const names = ['Secret', 'HTTPRoute', 'MeshEndpoints', '', 'TCPRoute'];
          const kinds = [...namesDeclared([...steps, ...mends])]
            .map(of => names[of])
            .filter(Boolean)
            .concat('GRPCRoute')
            .sort();
          await eventually(() => {
            const values = valuesIn(root);
            expect(
              Object.keys(values)
                .map(name => name.split('/')[0])
                .sort(),
            ).toEqual(kinds);
            expect(values).toEqual(valuesWanted(opened.directory));
          });
        } finally {
          await opened.close();
          rmSync(root, { recursive: true, force: true });
        }
      }),
      { seed, numRuns: 25 },
    );
  });
});
