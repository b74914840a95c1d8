import type { Screen } from '../screen.ts';
import { AT_ONCE } from './build.ts';
import type { BuildEvent } from './build.ts';
import { remainingMs, roughly } from './estimate.ts';
import type { Timed } from './estimate.ts';

const REDRAW_MS = 250;
const HEARTBEAT_MS = 30_000;

/** A program that is to be built, and the processor seconds that were once measured for it. */
export type Planned = { readonly part: string; readonly binary: string; readonly cpuSeconds: number };

type Running = {
  readonly cpuSeconds: number;
  readonly line: string;
  readonly log: string;
  readonly sinceMs: number;
};

/**
 * Shows which programs are being built: the place of each among those of its part, the time it has taken, and its log;
 * and how long the rest will take.
 */
export class Progress {
  readonly #screen: Screen;
  readonly #running = new Map<string, Running>();
  readonly #built: Timed[] = [];
  #waiting: readonly Planned[];

  constructor(screen: Screen, planned: readonly Planned[]) {
    this.#screen = screen;
    this.#waiting = planned;
  }

  /** Shows an event of a build. */
  record(event: BuildEvent): void {
    const before = this.#running.get(event.part);
    const ms = event.atMs - (before?.sinceMs ?? event.atMs);
    const line = before?.line ?? event.part;
    this.#running.delete(event.part);
    switch (event.is) {
      case 'started':
        this.#start(event);
        break;
      case 'finished':
        this.#built.push({ cpuSeconds: before?.cpuSeconds ?? 0, ms });
        this.#screen.print(`${line} built in ${elapsed(ms)}`);
        break;
      case 'stopped':
        this.#screen.print(`${line} stopped after ${elapsed(ms)}`);
        break;
      case 'failed':
        this.#waiting = this.#waiting.filter(({ part }) => part !== event.part);
        this.#screen.print(failureText(`${line} FAILED after ${elapsed(ms)}`, event));
        break;
    }
    this.#draw(event.atMs);
  }

  /** Prints how long the build will take, and updates the times until the returned function is called. */
  start(): () => void {
    const { isTerminal } = this.#screen;
    const count = this.#waiting.length;
    if (count > 0)
      this.#screen.print(`${count} ${count === 1 ? 'program' : 'programs'} to build, ${this.#remaining(0)}`);
    const beat = () => (isTerminal ? this.#draw(performance.now()) : this.#printRunning());
    const timer = setInterval(beat, isTerminal ? REDRAW_MS : HEARTBEAT_MS);
    return () => clearInterval(timer);
  }

  #start(event: Extract<BuildEvent, { is: 'started' | 'finished' }>): void {
    const { part, binary, log, atMs } = event;
    const isThis = (one: Planned) => one.part === part && one.binary === binary;
    const cpuSeconds = this.#waiting.find(isThis)?.cpuSeconds ?? 0;
    this.#waiting = this.#waiting.filter(one => !isThis(one));
    const line = `${part}: ${binary} (${event.index} of ${event.of})`;
    this.#running.set(part, { cpuSeconds, line, log, sinceMs: atMs });
    if (!this.#screen.isTerminal) this.#screen.print(`${line} ... log: ${log}`);
  }

  #remaining(now: number): string {
    const work = {
      built: this.#built,
      running: [...this.#running.values()].map(({ cpuSeconds, sinceMs }) => ({
        cpuSeconds,
        ms: now - sinceMs,
      })),
      waitingCpuSeconds: this.#waiting.reduce((total, { cpuSeconds }) => total + cpuSeconds, 0),
    };
    return roughly(remainingMs(work, AT_ONCE));
  }

  #printRunning(): void {
    const now = performance.now();
    if (this.#running.size === 0) return;
    for (const { line, sinceMs } of this.#running.values())
      this.#screen.print(`${line} ... ${elapsed(now - sinceMs)}`);
    this.#screen.print(`${this.#remaining(now)} left`);
  }

  #draw(now: number): void {
    const lines = [...this.#running.values()].map(
      ({ line, log, sinceMs }) => `${line} ${elapsed(now - sinceMs)}, log: ${log}`,
    );
    if (lines.length > 0) lines.push(`${this.#remaining(now)} left`);
    this.#screen.draw('progress', lines.join('\n'));
  }
}

function failureText(
  headline: string,
  { reason, lastLines, log }: Extract<BuildEvent, { is: 'failed' }>,
): string {
  return [`${headline}: ${reason}`, ...lastLines.map(line => `    ${line}`), `  log: ${log}`].join('\n');
}

/** A duration for people: 7 s, 2 min 5 s. */
export function elapsed(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
