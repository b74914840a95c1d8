import type { BuildEvent } from './build.ts';

/** Where progress is shown; on a terminal the lines of what runs are written anew in place. */
export type Screen = { readonly isTerminal: boolean; readonly write: (text: string) => void };

const REDRAW_MS = 250;
const HEARTBEAT_MS = 30_000;

/** Shows what is being built, how far it is, and for how long. */
export class Progress {
  readonly #screen: Screen;
  readonly #running = new Map<string, { readonly line: string; readonly sinceMs: number }>();
  #drawnLines = 0;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  /** Takes note of what happened and shows it. */
  tell(event: BuildEvent): void {
    const before = this.#running.get(event.part);
    const seconds = elapsed(event.atMs - (before?.sinceMs ?? event.atMs));
    const line = before?.line ?? event.part;
    this.#running.delete(event.part);
    switch (event.is) {
      case 'started': {
        const started = `${event.part}: ${event.binary} (${event.index} of ${event.of})`;
        this.#running.set(event.part, { line: started, sinceMs: event.atMs });
        if (this.#screen.isTerminal) this.#draw(event.atMs);
        else this.say(`${started} ...`);
        break;
      }
      case 'finished':
        this.say(`${line} built in ${seconds}`);
        break;
      case 'stopped':
        this.say(`${line} stopped after ${seconds}`);
        break;
      case 'failed':
        this.say(failureText(`${line} FAILED after ${seconds}`, event));
        break;
    }
  }

  /** Writes lines that stay. */
  say(text: string): void {
    this.#erase();
    this.#screen.write(`${text}\n`);
    this.#draw(performance.now());
  }

  /** Shows the time go by until the returned function is called. */
  start(): () => void {
    const { isTerminal } = this.#screen;
    const beat = () => (isTerminal ? this.#draw(performance.now()) : this.#sayRunning());
    const timer = setInterval(beat, isTerminal ? REDRAW_MS : HEARTBEAT_MS);
    return () => clearInterval(timer);
  }

  #sayRunning(): void {
    const now = performance.now();
    for (const { line, sinceMs } of this.#running.values()) this.say(`${line} ... ${elapsed(now - sinceMs)}`);
  }

  #draw(now: number): void {
    if (!this.#screen.isTerminal) return;
    this.#erase();
    for (const { line, sinceMs } of this.#running.values())
      this.#screen.write(`${line} ${elapsed(now - sinceMs)}\n`);
    this.#drawnLines = this.#running.size;
  }

  /** Moves up to the first line of what runs and clears the screen from there. */
  #erase(): void {
    if (this.#drawnLines > 0) this.#screen.write(`\u001b[${this.#drawnLines}A\u001b[J`);
    this.#drawnLines = 0;
  }
}

function failureText(
  headline: string,
  { reason, lastLines, log }: Extract<BuildEvent, { is: 'failed' }>,
): string {
  return [`${headline}: ${reason}`, ...lastLines.map(line => `    ${line}`), `  its log: ${log}`].join('\n');
}

/** A time as people say it: 7 s, 2 min 5 s. */
export function elapsed(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
