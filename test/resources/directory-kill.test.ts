import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fileText, NAMES } from '../support/killed-writer.ts';
import type { Said, Values } from '../support/killed-writer.ts';

const root = mkdtempSync(join(tmpdir(), 'killed-'));
const program = join(root, 'killed-writer.mjs');

beforeAll(async () => {
  await build({
    entryPoints: ['test/support/killed-writer.ts'],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    minify: true,
    logLevel: 'silent',
  });
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

/** What a run said until it was killed. */
async function runAndKill({ folder, state, log }: Lane, first: number, end: End): Promise<readonly Said[]> {
  const said = openSync(log, 'w');
  const stdio = ['ignore', 'pipe', 'inherit', said] as const;
  const child = spawn(process.execPath, [program, folder, state, String(first)], { stdio: [...stdio] });
  closeSync(said);
  const stdout = child.stdout ?? fail('the run has no output');
  const ended = once(child, 'close');
  if (end === 'early') await sleep(Math.random() * 120);
  else await Promise.race([hasTicked(stdout, 1 + end).then(() => sleep(Math.random() * 10)), ended]);
  child.kill('SIGKILL');
  stdout.resume();
  expect(await ended).toEqual([null, 'SIGKILL']);
  const lines = readFileSync(log, 'utf8').split('\n');
  return lines.filter(line => line.endsWith('}')).map(line => JSON.parse(line) as Said);
}

/** After how many writes a run is killed, however long they take; early is at any moment, mostly before the first. */
type End = 'early' | number;

function endOf(kill: number): End {
  return kill % 5 === 0 ? 'early' : kill % 8;
}

/** Each byte is one thing that is done, the begin among them. */
async function hasTicked(stdout: Readable, ticks: number): Promise<void> {
  let seen = 0;
  const heard = (bytes: Buffer) => (seen += bytes.length);
  stdout.on('data', heard);
  while (seen < ticks) await once(stdout, 'data');
}

type Lane = { readonly folder: string; readonly state: string; readonly log: string };

/** What may be found by the next run: what was last done, or anything that was tried since. */
class Expectation {
  readonly #possible = new Map<string, readonly string[]>();
  did = 0;

  take(said: Said): void {
    if (said.says === 'found') this.#takeAll(said.values);
    else if (said.says === 'did') {
      this.did++;
      this.#possible.set(said.what, [said.value]);
    } else this.#possible.set(said.what, [...(this.#possible.get(said.what) ?? []), said.value]);
  }

  #takeAll(values: Values): void {
    for (const [what, value] of Object.entries(values)) {
      expect(this.#possible.get(what) ?? [value], what).toContain(value);
      this.#possible.set(what, [value]);
    }
  }
}

/** So often a process is killed, in all lanes together. */
const KILLS = 200;

const LANES = [1, 2, 3, 4];

describe('a process that is killed while it writes', () => {
  it(`has lost nothing that it said was done, and left nothing torn, ${KILLS} times`, async () => {
    // Also where one fails, all end, so that no process is left.
    const ended = await Promise.allSettled(LANES.map(runLane));
    const lanes = ended.map(lane => (lane.status === 'fulfilled' ? lane.value : fail(lane.reason)));
    expect(lanes.reduce((sum, lane) => sum + lane.found, 0)).toBeGreaterThan(KILLS / 2);
    expect(lanes.reduce((sum, lane) => sum + lane.did, 0)).toBeGreaterThan(KILLS * 2);
  }, 900_000);
});

function fail(reason: unknown): never {
  throw reason;
}

async function runLane(lane: number): Promise<{ readonly found: number; readonly did: number }> {
  const [folder = '', state = '', log = ''] = ['folder', 'state', 'log'].map(name =>
    join(root, `${name}-${lane}`),
  );
  mkdirSync(folder);
  for (const name of NAMES) writeFileSync(join(folder, `${name}.json`), fileText(name, 8080));
  const expectation = new Expectation();
  const uids = new Set<string>();
  let found = 0;
  for (let kill = 0; kill < KILLS / LANES.length; kill++) {
    for (const said of await runAndKill({ folder, state, log }, 1 + kill * 1000, endOf(kill))) {
      expectation.take(said);
      if (said.says !== 'found') continue;
      found++;
      expect(said.problems).toBe(0);
      uids.add(said.uids.join());
      expect(uids.size).toBe(1);
    }
  }
  return { found, did: expectation.did };
}
