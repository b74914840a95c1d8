import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { profileCpu } from '../../src/telemetry/profile-cpu.ts';
import { watchHeap } from '../../src/telemetry/profile-heap.ts';

const run = promisify(execFile);
let folder: string;

// Go builds this tool on first use, which takes half a minute on a machine with an empty build cache.
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'profile-'));
  await run('go', ['tool', 'pprof', '-h']);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** What `go tool pprof` prints about a profile. */
async function printed(profile: Uint8Array, ...options: readonly string[]): Promise<string> {
  const file = join(folder, 'profile.pb.gz');
  await writeFile(file, profile);
  const { stdout, stderr } = await run('go', ['tool', 'pprof', '-top', ...options, file]);
  expect(stderr).not.toMatch(/error|warning|malformed/i);
  return stdout;
}

function multiplyNumbers(count: number): number {
  let product = 1;
  for (let index = 1; index < count; index++) product = (product * index) % 1_000_003;
  return product;
}

function allocateRecords(count: number): unknown[] {
  return Array.from({ length: count }, () => new Array<number>(128).fill(1));
}

/** The first function that pprof lists, with its numbers. */
const FIRST = /^\s+flat\s+flat%.*\n\s*(.+)$/m;

describe('go tool pprof', () => {
  it('reads the CPU profile, and lists first what computed most', async () => {
    const signal = new AbortController().signal;
    const work = setInterval(multiplyNumbers, 1, 3_000_000);
    await wait(300);
    const profile = await profileCpu(1000, signal);
    clearInterval(work);
    const text = await printed(profile);
    expect(text).toMatch(/^Type: cpu$/m);
    expect(text).toMatch(/^Duration: [\d.]+s, Total samples = \d/m);
    expect(FIRST.exec(text)?.[1]).toMatch(/^\d.* multiplyNumbers$/);
    expect(await printed(profile, '-lines')).toMatch(/multiplyNumbers .*profile\.test\.ts:\d+$/m);
  });

  it('reads the heap profile, and lists first what allocated most of what is in use', async () => {
    const heap = await watchHeap();
    const kept = allocateRecords(60_000);
    const profile = await heap.profile('collection');
    heap.stop();
    const text = await printed(profile, '-cum', '-unit=MB');
    const [, megabytes] = /([\d.]+)MB +[\d.]+% +allocateRecords$/m.exec(text) ?? [];
    expect(kept).toHaveLength(60_000);
    expect(text).toMatch(/^Type: inuse_space$/m);
    expect(Number(megabytes)).toBeGreaterThan(30);
    expect(Number(megabytes)).toBeLessThan(120);
    expect(await printed(profile, '-sample_index=samples')).toMatch(/^Type: samples$/m);
  });
});
