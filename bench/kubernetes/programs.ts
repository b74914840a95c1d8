import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** A program that a bench runs, and the lines that it prints. */
export interface Program {
  readonly child: ChildProcess;
  /** Waits for the next line for which `find` returns a value; false is not one. */
  next<T>(find: (line: string) => T | false | undefined): Promise<T>;
  stop(): Promise<void>;
}

const DEFAULT_TIMEOUT_MS = 120_000;

/** Starts a program. Its standard error is inherited, or with `in-error` the message of `next` once it has ended. */
export function startProgram(
  [program = '', ...args]: readonly string[],
  stderr: 'inherit' | 'in-error' = 'inherit',
): Program {
  const child = spawn(program, args, { stdio: 'pipe' });
  const lines: string[] = [];
  const errors: string[] = [];
  if (stderr === 'inherit') child.stderr.pipe(process.stderr);
  else child.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text));
  let isClosed = false;
  const closed = once(child, 'close').then(() => (isClosed = true));
  let wake: () => void = () => undefined;
  createInterface({ input: child.stdout }).on('line', line => {
    lines.push(line);
    wake();
  });
  return {
    child,
    next: async find => {
      const deadline = setTimeout(() => child.kill('SIGKILL'), DEFAULT_TIMEOUT_MS);
      try {
        for (;;) {
          for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
            const found = find(line);
            if (found !== undefined && found !== false) return found;
          }
          if (isClosed) throw new Error(errors.join('').trim() || `${program} has ended`);
          await Promise.race([new Promise<void>(resolve => (wake = resolve)), closed]);
        }
      } finally {
        clearTimeout(deadline);
      }
    },
    stop: async () => {
      child.kill('SIGTERM');
      await closed;
    },
  };
}

/** The resident memory of a process and its maximum, in MB (10^6 bytes). */
export function megabytesOf({ pid = 0 }: ChildProcess): { readonly now: number; readonly most: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const read = (name: string) =>
    (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024) / 1e6;
  return { now: read('VmRSS'), most: read('VmHWM') };
}

/** The number of connections of a process to a port of loopback. */
export function connectionsOf({ pid = 0 }: ChildProcess, port: number): number {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap(name => {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(linkAt(`/proc/${pid}/fd/${name}`)) ?? [];
      return inode === undefined ? [] : [inode];
    }),
  );
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync(`/proc/${pid}/net/tcp`, 'utf8')
    .split('\n')
    .map(line => line.trim().split(/\s+/))
    .filter(([, , to, , , , , , , inode = '']) => to === remote && sockets.has(inode)).length;
}

function linkAt(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
