import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shutDownOnSignal } from '../../src/runtime/shutdown.ts';
import type { ShutdownStep } from '../../src/runtime/shutdown.ts';
import { createLog } from '../../src/telemetry/log.ts';
import type { LogLine } from '../support/runtime/runtime.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

type Signal = 'SIGTERM' | 'SIGINT';

const folder = mkdtempSync(join(tmpdir(), 'stop-'));
const program = join(folder, 'program.mjs');

/** A process with a run in progress, which logs what it did and how it ended. */
class Program {
  readonly lines: LogLine[] = [];
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  readonly #child: ChildProcess;
  readonly #whenLogged = new Map<string, () => void>();

  constructor(manner: string, endMs = 300) {
    this.#child = spawn(process.execPath, [program, manner, String(endMs)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.ended = new Promise(resolve =>
      this.#child.once('close', (code, signal) => resolve({ code, signal })),
    );
    if (!this.#child.stdout) throw new Error('there is no output');
    createInterface(this.#child.stdout).on('line', text => {
      const line = JSON.parse(text) as LogLine;
      this.lines.push(line);
      this.#whenLogged.get(line.msg)?.();
    });
  }

  get messages(): readonly string[] {
    return this.lines.map(({ msg }) => msg);
  }

  whenLogged(message: string): Promise<void> {
    if (this.messages.includes(message)) return Promise.resolve();
    return new Promise(resolve => this.#whenLogged.set(message, resolve));
  }

  send(signal: Signal): void {
    this.#child.kill(signal);
  }
}

beforeAll(async () => {
  const banner =
    "import { createRequire as requireFor } from 'node:module'; const require = requireFor(import.meta.url);";
  await build({
    entryPoints: ['test/support/runtime/stop-program.ts'],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: { js: banner },
  });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each<Signal>(['SIGTERM', 'SIGINT'])('a process at %s', signal => {
  it('waits for the run in progress, is unready, starts no other and exits with 0', async () => {
    const process = new Program('ends soon');
    await process.whenLogged('started');
    process.send(signal);
    expect(await process.ended).toEqual({ code: 0, signal: null });
    expect(process.messages).toEqual(['started', 'stopping', 'ended', 'released']);
    expect(process.lines[2]).toMatchObject({ ready: false });
  });

  it('aborts a run that does not end before the deadline, and exits with 0', async () => {
    const process = new Program('obeys its signal');
    await process.whenLogged('started');
    process.send(signal);
    expect(await process.ended).toEqual({ code: 0, signal: null });
    expect(process.messages).toEqual(['started', 'stopping', 'reconcile failed', 'released']);
  });

  it('exits with 0 and logs a run that does not end when aborted', async () => {
    const process = new Program('never ends');
    await process.whenLogged('started');
    process.send(signal);
    expect(await process.ended).toEqual({ code: 0, signal: null });
    expect(process.messages).toEqual(['started', 'stopping', 'reconciles did not end', 'released']);
    expect(process.lines[2]).toMatchObject({ objects: ['MeshTailnet//example'] });
  });

  it.each<Signal>(['SIGTERM', 'SIGINT'])('and at a second signal, %s, exits at once', async second => {
    const process = new Program('never ends', 60_000);
    await process.whenLogged('started');
    process.send(signal);
    await process.whenLogged('stopping');
    process.send(second);
    expect(await process.ended).toEqual({ code: second === 'SIGTERM' ? 143 : 130, signal: null });
    expect(process.messages).toEqual(['started', 'stopping', 'exiting at once']);
  });
});

/** Runs the steps of a shutdown without a process, and returns what was logged and the exit codes. */
function stopping(steps: readonly ShutdownStep[]) {
  const clock = new VirtualClock();
  const lines: LogLine[] = [];
  const exits: number[] = [];
  const log = createLog({
    level: 'info',
    to: { write: line => void lines.push(JSON.parse(line) as LogLine) },
  });
  const calls: ((signal: Signal) => void)[] = [];
  const signals = { on: (_signal: Signal, call: (signal: Signal) => void) => calls.push(call) };
  shutDownOnSignal({ signals, clock, log, steps, timeoutMs: 5000, exit: code => exits.push(code) });
  return { clock, lines, exits, signal: () => calls[0]?.('SIGTERM') };
}

describe('the steps of stopping', () => {
  it('run in order, also after one that failed, and then the exit code is 1', async () => {
    const done: string[] = [];
    const { clock, lines, exits, signal } = stopping([
      {
        name: 'first',
        run: async () => {
          await new Promise<void>(resolve => void clock.after(100, resolve));
          done.push('first');
        },
      },
      {
        name: 'second',
        run: () => {
          done.push('second');
          throw new Error('no');
        },
      },
      { name: 'third', run: () => void done.push('third') },
    ]);
    signal();
    await clock.advance(99);
    expect(done).toEqual([]);
    await clock.advance(1);
    expect(done).toEqual(['first', 'second', 'third']);
    expect(exits).toEqual([1]);
    expect(lines.at(-1)).toMatchObject({ msg: 'a shutdown step failed', step: 'second' });
  });

  it('are not run after the timeout, and then the exit code is 1', async () => {
    const done: string[] = [];
    const { clock, lines, exits, signal } = stopping([
      { name: 'first', run: () => new Promise(() => undefined) },
      { name: 'second', run: () => void done.push('second') },
    ]);
    signal();
    await clock.advance(4999);
    expect(exits).toEqual([]);
    await clock.advance(1);
    expect(exits).toEqual([1]);
    expect(done).toEqual([]);
    expect(lines.at(-1)).toMatchObject({ msg: 'shutdown timed out', seconds: 5 });
  });

  it('do not run before a signal', async () => {
    const done: string[] = [];
    const { clock, exits } = stopping([{ name: 'first', run: () => void done.push('first') }]);
    await clock.advance(3_600_000);
    expect([done, exits]).toEqual([[], []]);
  });
});
