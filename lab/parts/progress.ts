import type { Screen } from '../screen.ts';
import type { BuildEvent } from './build.ts';

const REDRAW_MS = 250;
const HEARTBEAT_MS = 30_000;

/** Shows which parts are being built: the program, its place among those of the part, the time it has taken, and the log. */
export class Progress {
  readonly #screen: Screen;
  readonly #running = new Map<
    string,
    { readonly line: string; readonly log: string; readonly sinceMs: number }
  >();

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  /** Shows an event of a build. */
  record(event: BuildEvent): void {
    const before = this.#running.get(event.part);
    const seconds = elapsed(event.atMs - (before?.sinceMs ?? event.atMs));
    const line = before?.line ?? event.part;
    this.#running.delete(event.part);
    switch (event.is) {
      case 'started': {
        const started = `${event.part}: ${event.binary} (${event.index} of ${event.of})`;
        this.#running.set(event.part, { line: started, log: event.log, sinceMs: event.atMs });
        if (!this.#screen.isTerminal) this.#screen.print(`${started} ... log: ${event.log}`);
        break;
      }
      case 'finished':
        this.#screen.print(`${line} built in ${seconds}`);
        break;
      case 'stopped':
        this.#screen.print(`${line} stopped after ${seconds}`);
        break;
      case 'failed':
        this.#screen.print(failureText(`${line} FAILED after ${seconds}`, event));
        break;
    }
    this.#draw(event.atMs);
  }

  /** Updates the elapsed times until the returned function is called. */
  start(): () => void {
    const { isTerminal } = this.#screen;
    const beat = () => (isTerminal ? this.#draw(performance.now()) : this.#printRunning());
    const timer = setInterval(beat, isTerminal ? REDRAW_MS : HEARTBEAT_MS);
    return () => clearInterval(timer);
  }

  #printRunning(): void {
    const now = performance.now();
    for (const { line, sinceMs } of this.#running.values())
      this.#screen.print(`${line} ... ${elapsed(now - sinceMs)}`);
  }

  #draw(now: number): void {
    const lines = [...this.#running.values()].map(
      ({ line, log, sinceMs }) => `${line} ${elapsed(now - sinceMs)}, log: ${log}`,
    );
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
