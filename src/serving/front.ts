import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../api/clock.ts';
import { canonicalIP } from '../api/ip.ts';
import { formatAddress } from '../telemetry/address.ts';
import { limitedLog } from '../telemetry/limited-log.ts';
import type { Log } from '../telemetry/log.ts';
import type { frontMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/metric-recorder.ts';
import { SettingError } from '../telemetry/setting-error.ts';
import { Admission, parseAuthority } from './admission.ts';
import type { Admitted, Authority } from './admission.ts';
import type { DialTailnet } from './dial.ts';
import { join } from './join.ts';

/** Why a front refuses a connection, and the status of the response. */
const STATUSES = {
  caller: 403,
  destination: 403,
  outside: 502,
  malformed: 400,
  too_many_connections: 503,
} as const;

type Refusal = keyof typeof STATUSES;

export type FrontOptions = {
  /** Of the pod, of both families. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** The most connections at once. */
  readonly maxConnections: number;
};

export type FrontDeps = {
  readonly dial: DialTailnet;
  readonly clock: Clock;
  readonly log: Log;
  readonly record: Recorder<typeof frontMetrics>;
};

/** How long a connection that would be refused waits for a newer list, which may be on its way. */
const WAIT_MS = 2000;

/** The limit of connections from unlisted callers: in all, and for one address. */
const MAX_STRANGERS = 256;
const MAX_STRANGERS_OF_ADDRESS = 32;

const DIAL_TIMEOUT_MS = 30_000;
const REQUEST_TIMEOUT_MS = 10_000;

/** The time between two lines about refused connections of one reason. */
const LOG_MS = 60_000;

/** The refused callers that are kept. */
const MAX_REFUSED_CALLERS = 16;

/**
 * The proxy of a mesh pod: HTTP CONNECT for known callers, toward what is declared, through the tailnet alone. A connection that
 * it would refuse waits for a newer list for 2 s: Envoys learn of an endpoint sooner than mesh pods.
 */
export class Front {
  readonly #options: FrontOptions;
  readonly #deps: FrontDeps;
  readonly #admission = new Admission();
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  /**
   * Those without a response, with what ends their time to send a request. Envoy would go on waiting for the response if they ended
   * without a reset.
   */
  readonly #unanswered = new Map<Socket, () => void>();
  /** The addresses of connections from unlisted callers. */
  readonly #strangers = new Map<Socket, string>();
  readonly #waiting = new Set<() => void>();
  readonly #refusedCallers = new Set<string>();
  readonly #refused = new Map<Refusal, number>();
  readonly #logs = new Map<Refusal, ReturnType<typeof limitedLog>>();

  constructor(options: FrontOptions, deps: FrontDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  /** Throws SettingError where it cannot listen; does nothing while it listens. */
  async listen(): Promise<void> {
    if (this.#servers.length > 0) return;
    const { addresses, port } = this.#options;
    for (const host of addresses) {
      const server = createServer({ noDelay: true });
      server.on('connection', (socket: Socket) => this.#accept(socket));
      server.on('connect', (request, socket: Socket, early) => {
        this.#unanswered.get(socket)?.();
        if (early.length > 0) socket.unshift(early);
        void this.#connect(request.url ?? '', socket);
      });
      // Operators send such requests to find out whether the pod responds.
      server.on('request', (_request, response) => {
        response.writeHead(STATUSES.malformed).end('this proxy serves CONNECT alone\n');
      });
      server.on('clientError', (_error, socket) => socket.destroy());
      this.#servers.push(server);
      try {
        server.listen({ host, port });
        await once(server, 'listening');
      } catch (error) {
        this.close();
        const { code } = error as NodeJS.ErrnoException;
        throw new SettingError('POD_IPS', `cannot listen on ${formatAddress({ host, port })}: ${code}`);
      }
    }
  }

  /** The ports on which it listens. */
  get ports(): readonly number[] {
    return this.#servers.map(server => (server.address() as { readonly port: number }).port);
  }

  /** Replaces whom it serves, and toward what; connections that are open go on. */
  update(admitted: Admitted): void {
    this.#admission.update(admitted, this.#deps.clock.now());
    for (const address of this.#refusedCallers)
      if (this.#admission.servesCaller(address)) this.#refusedCallers.delete(address);
    for (const [socket, address] of this.#strangers)
      if (this.#admission.servesCaller(address)) this.#strangers.delete(socket);
    for (const wake of [...this.#waiting]) wake();
  }

  /** The number of connections that are open. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** The addresses of callers that were refused lately. */
  get refusedCallers(): readonly string[] {
    return [...this.#refusedCallers];
  }

  /** How many connections it has refused, by reason. */
  get refused(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#refused);
  }

  /** Accepts no more connections until it listens again; those that are open go on. */
  stopAccepting(): void {
    for (const server of this.#servers.splice(0)) if (server.listening) server.close();
  }

  close(): void {
    this.stopAccepting();
    for (const socket of this.#unanswered.keys()) socket.resetAndDestroy();
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(socket: Socket): void {
    socket.on('error', () => undefined);
    const caller = canonicalIP(socket.remoteAddress ?? '');
    const isServed = this.#admission.servesCaller(caller);
    const hasRoom = isServed
      ? this.#sockets.size < this.#options.maxConnections
      : hasRoomFor(caller, this.#strangers);
    if (!hasRoom) {
      this.#count(isServed ? 'too_many_connections' : 'caller', { caller });
      socket.resetAndDestroy();
      return;
    }
    // Node's own timeouts end with the listener, which stops while meshd is away.
    const cancel = this.#deps.clock.after(REQUEST_TIMEOUT_MS, () => socket.resetAndDestroy());
    this.#sockets.add(socket);
    this.#unanswered.set(socket, cancel);
    if (!isServed) this.#strangers.set(socket, caller);
    socket.once('close', () => {
      cancel();
      this.#sockets.delete(socket);
      this.#unanswered.delete(socket);
      this.#strangers.delete(socket);
    });
  }

  async #connect(url: string, client: Socket): Promise<void> {
    const caller = canonicalIP(client.remoteAddress ?? '');
    if (!(await this.#isServed(client, () => this.#admission.servesCaller(caller)))) {
      this.#noteCaller(caller);
      this.#refuse('caller', client, { caller });
      return;
    }
    const authority = parseAuthority(url);
    if (!authority) {
      this.#refuse('malformed', client, { caller, destination: url.slice(0, 100) });
      return;
    }
    const isDeclared = () => this.#admission.servesDestination(authority, this.#deps.clock.now());
    if (await this.#isServed(client, isDeclared))
      await this.#tunnel(authority, client, { caller, destination: url });
    else this.#refuse('destination', client, { caller, destination: url });
  }

  /** Whether a condition holds, or does after an update within 2 s. */
  async #isServed(client: Socket, isServed: () => boolean): Promise<boolean> {
    if (isServed()) return true;
    return new Promise(resolve => {
      const end = () => {
        cancel();
        client.off('close', end);
        this.#waiting.delete(wake);
        resolve(isServed());
      };
      const wake = () => {
        if (isServed()) end();
      };
      const cancel = this.#deps.clock.after(WAIT_MS, end);
      client.once('close', end);
      this.#waiting.add(wake);
    });
  }

  async #tunnel({ host, port }: Authority, client: Socket, fields: Fields): Promise<void> {
    if (client.destroyed) return;
    const dialling = new AbortController();
    const abort = () => dialling.abort(new Error(`no connection within ${DIAL_TIMEOUT_MS / 1000} s`));
    const cancel = this.#deps.clock.after(DIAL_TIMEOUT_MS, abort);
    client.once('close', abort);
    const upstream = await this.#deps.dial(host, port, dialling.signal);
    cancel();
    client.off('close', abort);
    if ('why' in upstream) {
      const { reason, why } = upstream;
      if (reason === 'outside') {
        this.#refuse(reason, client, fields, why);
        return;
      }
      this.#deps.record.frontDials({ result: 'failed' });
      this.#respond(client, 500, why);
      return;
    }
    this.#deps.record.frontDials({ result: 'connected' });
    upstream.on('error', () => client.destroy());
    if (!client.writable) {
      upstream.destroy();
      return;
    }
    this.#unanswered.delete(client);
    client.write('HTTP/1.1 200 OK\r\n\r\n');
    join(client, upstream);
  }

  #refuse(reason: Refusal, client: Socket, fields: Fields, why: string = reason): void {
    this.#count(reason, fields);
    this.#respond(client, STATUSES[reason], why);
  }

  /** Ends a connection with a response that has the reason in the header that tailscaled's own proxy uses. */
  #respond(client: Socket, status: number, why: string): void {
    this.#unanswered.delete(client);
    const printable = why.replace(/[^\x20-\x7e]/g, '?');
    client.end(
      `HTTP/1.1 ${status} Refused\r\nTailscale-Connect-Error: ${printable}\r\nContent-Length: 0\r\n\r\n`,
    );
    // Without a reader it would not notice that the caller closes, too, and the caller need not.
    client.resume();
    client.once(
      'close',
      this.#deps.clock.after(REQUEST_TIMEOUT_MS, () => client.destroy()),
    );
  }

  #count(reason: Refusal, fields: Fields): void {
    const { record, log, clock } = this.#deps;
    record.frontRefused({ reason });
    this.#refused.set(reason, (this.#refused.get(reason) ?? 0) + 1);
    const logs = this.#logs.get(reason) ?? limitedLog(clock, LOG_MS);
    this.#logs.set(reason, logs);
    logs(count => log.warn('refused connections to the proxy', { count, reason, ...fields }));
  }

  #noteCaller(address: string): void {
    this.#refusedCallers.delete(address);
    this.#refusedCallers.add(address);
    const [oldest] = this.#refusedCallers;
    if (this.#refusedCallers.size > MAX_REFUSED_CALLERS && oldest !== undefined)
      this.#refusedCallers.delete(oldest);
  }
}

function hasRoomFor(stranger: string, strangers: ReadonlyMap<unknown, string>): boolean {
  const ofAddress = [...strangers.values()].filter(each => each === stranger).length;
  return strangers.size < MAX_STRANGERS && ofAddress < MAX_STRANGERS_OF_ADDRESS;
}

type Fields = { readonly caller: string | undefined; readonly destination?: string };
