import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';

/** The settings of a process that runs leader election. */
export type LeaderSettings = {
  readonly who: string;
  readonly server: string;
  readonly caFile: string;
  readonly token: string;
  readonly namespace: string;
  readonly name: string;
  readonly fencingLog: string;
  readonly waitLog: string;
  readonly wallClockOffByMs: number;
};

/** A write of a leader, with its time by the clock that all processes share. */
export type LeaderWrite = { readonly who: string; readonly term: number; readonly ms: number };

/** A request for the Lease, or a timer from when it was due until it fired. */
export type LeaderWait = {
  readonly who: string;
  readonly what: 'read' | 'write' | 'timer';
  readonly from: number;
  readonly until: number;
  readonly isAnswered: boolean;
};

/** A term, from its first to its last write. */
export type LeaderTerm = {
  readonly who: string;
  readonly term: number;
  readonly from: number;
  readonly until: number;
};

/** The clock that all processes of the machine share. */
export function sharedMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

/** A process that runs leader election, and its connection to the API server. */
export type LeaderProcess = {
  readonly who: string;
  readonly child: ChildProcess;
  readonly road: Road;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  readonly ended: Promise<unknown>;
};

/** Processes that run leader election, from one bundle, with one log of their writes and one of what they waited for. */
export class LeaderProcesses {
  readonly #folder = mkdtempSync(join(tmpdir(), 'leaders-'));
  readonly #program = join(this.#folder, 'program.mjs');
  readonly #log = join(this.#folder, 'fencing.log');
  readonly #waitLog = join(this.#folder, 'waits.log');
  readonly #all: LeaderProcess[] = [];
  readonly #acts: LeaderWrite[] = [];
  #parsed = 0;

  async prepare(): Promise<void> {
    writeFileSync(this.#log, '');
    writeFileSync(this.#waitLog, '');
    const banner =
      "import { createRequire as requireFor } from 'node:module'; const require = requireFor(import.meta.url);";
    await build({
      entryPoints: ['test/support/api-server/leader-program.ts'],
      outfile: this.#program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      banner: { js: banner },
    });
  }

  async start(settings: Omit<LeaderSettings, 'fencingLog' | 'waitLog'>): Promise<LeaderProcess> {
    const road = await openRoad(new URL(settings.server));
    const logs = { fencingLog: this.#log, waitLog: this.#waitLog };
    const full: LeaderSettings = { ...settings, ...logs, server: road.server };
    const child = spawn(process.execPath, [this.#program, JSON.stringify(full)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines: Readonly<Record<string, unknown>>[] = [];
    createInterface({ input: child.stdout }).on('line', line =>
      lines.push(JSON.parse(line) as Readonly<Record<string, unknown>>),
    );
    const started = { who: settings.who, child, road, lines, ended: once(child, 'close') };
    this.#all.push(started);
    return started;
  }

  /** All writes so far; each is parsed once, because the connections of the processes share this event loop. */
  acts(): readonly LeaderWrite[] {
    const text = readFileSync(this.#log, 'latin1');
    const end = text.lastIndexOf('\n') + 1;
    const lines = text.slice(this.#parsed, end).split('\n').slice(0, -1);
    this.#acts.push(...lines.map(line => JSON.parse(line) as LeaderWrite));
    this.#parsed = end;
    return [...this.#acts];
  }

  /** What a process has waited for so far. */
  waits(process: string): readonly LeaderWait[] {
    const lines = readFileSync(this.#waitLog, 'latin1').split('\n').slice(0, -1);
    return lines.map(line => JSON.parse(line) as LeaderWait).filter(({ who }) => who === process);
  }

  /** Ends all processes, and removes all files. */
  async end(): Promise<void> {
    for (const { child } of this.#all) child.kill('SIGKILL');
    await Promise.all(this.#all.map(({ ended, road }) => ended.then(() => road.close())));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The terms by their writes, in order of their start. */
export function termsOf(acts: readonly LeaderWrite[]): readonly LeaderTerm[] {
  const reigns = new Map<string, LeaderTerm>();
  for (const { who, term, ms } of acts) {
    const key = `${who} ${term}`;
    const { from = ms, until = ms } = reigns.get(key) ?? {};
    reigns.set(key, { who, term, from: Math.min(from, ms), until: Math.max(until, ms) });
  }
  return [...reigns.values()].sort((a, b) => a.from - b.from);
}

/** For how long in a period they waited for answers and for a processor: what a fast machine does at once. */
export function slowMs(waits: readonly LeaderWait[], since: number, end: number): number {
  const spans = waits.map(({ from, until }) => Math.min(until, end) - Math.max(from, since));
  return spans.reduce((sum, ms) => sum + Math.max(0, ms), 0);
}

/**
 * A TCP proxy to a server; while it is blocked it holds bytes without closing connections. It drops those of a connection that
 * its process has closed: a network may still deliver them later, which no leader can prevent.
 */
type Road = {
  readonly server: string;
  /** Holds bytes of existing connections, and accepts new ones or holds their bytes too. */
  readonly block: (which: 'connections of now' | 'all') => void;
  /** How many connections were opened. */
  readonly opened: () => number;
  readonly unblock: () => void;
  readonly close: () => void;
};

async function openRoad({ protocol, hostname, port }: URL): Promise<Road> {
  const sockets = new Set<Socket>();
  /** The bytes of blocked connections, and how to send them on. */
  const held = new Map<Socket, (() => void)[]>();
  let isBlocked = false;
  let opened = 0;
  const listener = createServer(near => {
    opened++;
    const far = connect(Number(port), hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      if (isBlocked) held.set(socket, []);
      socket.on('data', bytes => {
        const send = () => void other.write(bytes);
        const waiting = held.get(socket);
        if (waiting) waiting.push(send);
        else send();
      });
      socket.on('error', () => undefined);
      socket.once('close', () => {
        sockets.delete(socket);
        const wasHeld = held.delete(socket);
        if (socket === near || !wasHeld) other.destroy();
      });
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port: bound } = listener.address() as AddressInfo;
  return {
    server: `${protocol}//127.0.0.1:${bound}`,
    block: which => {
      isBlocked = which === 'all';
      for (const socket of sockets) held.set(socket, []);
    },
    opened: () => opened,
    unblock: () => {
      isBlocked = false;
      for (const sends of held.values()) for (const send of sends) send();
      held.clear();
    },
    close: () => {
      listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
