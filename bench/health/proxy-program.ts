/**
 * Run by the bench `health`: an HTTP CONNECT proxy that is also every service behind it, so that it does little beside the
 * operator. A line on standard input may change the status of a target; each is answered with a line.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** What the bench sends: a new status of a target, or a question about it. */
export type ProxyRequest = { readonly target?: string; readonly status?: number };

/** The number of answered checks, and the times of the answers of the target since its status changed. */
export type ProxyReply = {
  readonly checks: number;
  readonly changedAtMs: number;
  readonly answeredAtMs: readonly number[];
};

type Target = { readonly status: number; readonly changedAtMs: number; readonly answeredAtMs: number[] };

let checks = 0;
const targets = new Map<string, Target>();

/** Comparable between processes. */
const nowMs = () => performance.timeOrigin + performance.now();

function answer(connection: Socket, name: string): void {
  checks += 1;
  const target = targets.get(name);
  target?.answeredAtMs.push(nowMs());
  connection.end(
    `HTTP/1.1 ${target?.status ?? 200} Status\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
  );
}

function accept(connection: Socket): void {
  connection.on('error', () => connection.destroy());
  connection.once('data', head => {
    const [, target] = /^CONNECT (\S+) /.exec(head.toString('latin1')) ?? [];
    if (target === undefined) {
      connection.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
      return;
    }
    connection.write('HTTP/1.1 200 OK\r\n\r\n');
    connection.once('data', () => answer(connection, target));
  });
}

function reply({ target: name = '', status }: ProxyRequest): ProxyReply {
  if (status !== undefined) targets.set(name, { status, changedAtMs: nowMs(), answeredAtMs: [] });
  const { changedAtMs = 0, answeredAtMs = [] } = targets.get(name) ?? {};
  return { checks, changedAtMs, answeredAtMs };
}

const server = createServer(accept).listen({ port: 0, host: '127.0.0.1', backlog: 4096 });
await once(server, 'listening');
console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }));
createInterface({ input: process.stdin })
  .on('line', line => console.log(JSON.stringify(reply(JSON.parse(line) as ProxyRequest))))
  .on('close', () => process.exit());
