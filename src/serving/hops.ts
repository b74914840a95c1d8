import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Clock } from '../api/clock.ts';
import { parseSocketAddress } from '../api/socket-address.ts';
import { limitedLog } from '../telemetry/limited-log.ts';
import type { Log } from '../telemetry/log.ts';
import type { DialTailnet } from './dial.ts';
import { join } from './join.ts';

/*
 * tailscaled forwards the connections of a VIP service by the network of its pod, which has no route into the tailnet. So toward
 * a device it forwards to a hop, which dials by the LocalAPI.
 *
 * A hop listens on 127.0.0.2: what the tailnet sends to a port of the device itself is forwarded to 127.0.0.1, and other pods
 * reach neither.
 */
const HOP_ADDRESS = '127.0.0.2';

export type HopOptions = {
  /** The most connections at once; one target has at most half of them. */
  readonly maxConnections: number;
};

export type HopDeps = { readonly dial: DialTailnet; readonly log: Log; readonly clock: Clock };

/** How long connections toward a target that is no longer served may go on. */
const CLOSE_MS = 20_000;

const TUNNEL_TIMEOUT_MS = 10_000;

/** The time between two lines about connections that fail, or are refused. */
const LOG_MS = 60_000;

type Hop = { readonly server: Server; readonly sockets: Set<Socket>; readonly address: string };

/** Listeners that pass connections on to devices of the tailnet, one for each device and port. */
export class Hops {
  readonly #options: HopOptions;
  readonly #deps: HopDeps;
  readonly #logFailure: ReturnType<typeof limitedLog>;
  readonly #logRefusal: ReturnType<typeof limitedLog>;
  readonly #hops = new Map<string, Hop>();
  readonly #closing = new Map<Hop, () => void>();
  #connections = 0;

  constructor(options: HopOptions, deps: HopDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#logFailure = limitedLog(deps.clock, LOG_MS);
    this.#logRefusal = limitedLog(deps.clock, LOG_MS);
  }

  /** Listens for new targets; returns the address of each hop by its target. */
  async open(targets: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
    for (const target of targets) {
      if (this.#hops.has(target)) continue;
      try {
        this.#hops.set(target, await this.#open(target));
      } catch (error) {
        this.#deps.log.error('cannot listen for a VIP service', { target, error });
      }
    }
    return new Map([...this.#hops].map(([target, { address }]) => [target, address]));
  }

  /** Stops listening for other targets; their connections may go on for 20 s. */
  closeOthers(targets: ReadonlySet<string>): void {
    for (const [target, hop] of this.#hops) if (!targets.has(target)) this.#closeLater(target, hop);
  }

  async close(): Promise<void> {
    const hops = [...this.#hops.values(), ...this.#closing.keys()];
    for (const cancel of this.#closing.values()) cancel();
    this.#hops.clear();
    this.#closing.clear();
    await Promise.all(hops.map(end));
  }

  async #open(target: string): Promise<Hop> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    const sockets = new Set<Socket>();
    server.on('connection', client => this.#accept(client, target, sockets));
    server.listen({ host: HOP_ADDRESS, port: 0 });
    await once(server, 'listening');
    server.on('error', error =>
      this.#deps.log.error('a listener of a VIP service failed', { target, error }),
    );
    return { server, sockets, address: `${HOP_ADDRESS}:${(server.address() as AddressInfo).port}` };
  }

  #accept(client: Socket, target: string, sockets: Set<Socket>): void {
    const { maxConnections } = this.#options;
    client.on('error', () => undefined);
    if (this.#connections >= maxConnections || sockets.size >= maxConnections / 2) {
      this.#logRefusal(count =>
        this.#deps.log.warn('a VIP service has too many connections', { count, target, maxConnections }),
      );
      client.resetAndDestroy();
      return;
    }
    sockets.add(client);
    this.#connections += 1;
    client.once('close', () => {
      sockets.delete(client);
      this.#connections -= 1;
    });
    void this.#tunnel(client, target);
  }

  async #tunnel(client: Socket, target: string): Promise<void> {
    const { log, clock, dial } = this.#deps;
    const { address = '', port = 0 } = parseSocketAddress(target) ?? {};
    const dialling = new AbortController();
    const cancel = clock.after(TUNNEL_TIMEOUT_MS, () => dialling.abort(new Error('timeout')));
    const abort = () => dialling.abort();
    client.once('close', abort);
    const upstream = await dial(address, port, dialling.signal);
    cancel();
    client.off('close', abort);
    if ('why' in upstream) {
      const { why } = upstream;
      // A client that leaves ends its tunnel.
      if (!client.destroyed)
        this.#logFailure(count => log.warn('connections of VIP services failed', { count, target, why }));
      client.resetAndDestroy();
      return;
    }
    upstream.on('error', () => undefined);
    if (client.destroyed) upstream.destroy();
    else join(client, upstream);
  }

  #closeLater(target: string, hop: Hop): void {
    this.#hops.delete(target);
    hop.server.close();
    const cancel = this.#deps.clock.after(CLOSE_MS, () => {
      this.#closing.delete(hop);
      void end(hop);
    });
    this.#closing.set(hop, cancel);
  }
}

async function end({ server, sockets }: Hop): Promise<void> {
  const closed = once(server, 'close');
  const isListening = server.listening;
  server.close();
  for (const socket of sockets) socket.destroy();
  if (isListening) await closed;
}
