import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { named } from '../support/declared.ts';
import { usageController, users } from '../support/runtime/example-controller.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';
import { Runtime } from '../support/runtime/runtime.ts';

const NOON = new Date('2030-01-01T12:00:00Z');

const tailnet = (name: string, domain: string) => named(meshTailnet({ tailnet: domain }), name);
const web = (name: string, domain: string, names: readonly string[]) =>
  named(
    meshEndpoints({ tailnet: domain, endpoints: names.map(one => endpoint({ name: one })) }),
    `default/${name}`,
  );

/** The example with two tailnets, of which the first has two endpoints. */
async function example() {
  const first = [
    tailnet('one', 'one.ts.net'),
    tailnet('two', 'two.ts.net'),
    web('shop', 'one.ts.net', ['a', 'b']),
  ];
  const runtime = new Runtime(first, [users]);
  const { memory, clock } = runtime;
  runtime.start(
    usageController(memory.write, () => NOON),
    { syncPeriodMs: 30_000 },
  );
  await memory.start();
  await clock.settle();
  const objectOf = (name: string) => memory.read.get({ kind: 'MeshTailnet', namespace: '', name });
  const usageOf = (name: string) =>
    objectOf(name)?.status?.conditions?.map(({ status, message }) => `${status}: ${message}`);
  return { ...memory, clock, objectOf, usageOf };
}

describe('the example of CONTRIBUTING.md', () => {
  it('counts the endpoints of each tailnet', async () => {
    const { usageOf } = await example();
    expect(usageOf('one')).toEqual(['True: 2 endpoints in 1 MeshEndpoints use this tailnet']);
    expect(usageOf('two')).toEqual(['False: 0 endpoints in 0 MeshEndpoints use this tailnet']);
  });

  it('updates both when endpoints move from one to the other', async () => {
    const { author, clock, usageOf } = await example();
    await author.put(web('shop', 'two.ts.net', ['a', 'b', 'c']));
    await clock.settle();
    expect(usageOf('one')).toEqual(['False: 0 endpoints in 0 MeshEndpoints use this tailnet']);
    expect(usageOf('two')).toEqual(['True: 3 endpoints in 1 MeshEndpoints use this tailnet']);
  });

  it('writes nothing when nothing changed, however often it runs', async () => {
    const { clock, objectOf } = await example();
    const before = objectOf('one');
    await clock.advance(3_600_000);
    expect(objectOf('one')).toBe(before);
  });

  it('is the code on that page, in a controller of src/controllers, and has fewer than 60 lines', () => {
    const [, region] =
      /\/\/ #region example\n([^]*?)\n\/\/ #endregion/.exec(
        readFileSync('test/support/runtime/example-controller.ts', 'utf8'),
      ) ?? [];
    const [, quoted] = /```ts\n([^]*?)\n```/.exec(readFileSync('CONTRIBUTING.md', 'utf8')) ?? [];
    expect(region).toContain('usageController');
    expect(quoted).toBe(region?.replaceAll('../../../src/', '../../'));
    expect(quoted?.split('\n').length).toBeLessThan(60);
  });
});
