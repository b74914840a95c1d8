import { createSocket } from 'node:dgram';
import type { RemoteInfo, Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import type { Clock } from '../api/clock.ts';
import type { SocketAddress } from '../api/socket-address.ts';
import { Association, givenAddress } from './association.ts';
import type { AssociationDeps, Proxy } from './association.ts';
import type { AssociationQuota } from './association-quota.ts';
import type { DropReason } from './datagram-counts.ts';
import { framesOf } from './socks-frames.ts';
import type { Frames } from './socks-frames.ts';

export type RelayPortDeps = AssociationDeps & { readonly quota: AssociationQuota; readonly clock: Clock };

export type RelayPortOptions = {
  readonly addresses: readonly string[];
  readonly proxy: Proxy;
  readonly idleMs: number;
};

/** A socket of the port on one address, with the associations of its clients by their addresses. */
type Listener = { readonly socket: Socket; readonly associations: Map<string, Association> };

/** The kernel limits it to net.core.rmem_max. */
const RECEIVE_BUFFER = 4 * 1024 * 1024;

/** Replies wait in memory where the kernel takes no more; further ones are dropped. */
const MAX_UNSENT = 1024 * 1024;

/** A port of the relay: forwards datagrams of clients to the target, and replies back. */
export class RelayPort {
  readonly #port: number;
  readonly #options: RelayPortOptions;
  readonly #deps: RelayPortDeps;
  readonly #listeners = new Map<string, Listener>();
  #target: SocketAddress;
  #frames: Frames;
  #failure: string | undefined;

  constructor(port: number, target: SocketAddress, options: RelayPortOptions, deps: RelayPortDeps) {
    this.#port = port;
    this.#options = options;
    this.#deps = deps;
    this.#target = target;
    this.#frames = framesOf(target);
  }

  /** Why an address of the port could not be bound. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Binds the addresses that are not bound. */
  async listen(): Promise<void> {
    this.#failure = undefined;
    await Promise.all(this.#options.addresses.map(address => this.#bind(address)));
  }

  /** Associations of another target end. */
  setTarget(target: SocketAddress): void {
    if (target.address === this.#target.address && target.port === this.#target.port) return;
    this.#target = target;
    this.#frames = framesOf(target);
    for (const { associations } of this.#listeners.values()) void closeAll(associations);
  }

  sweep(now: number): void {
    for (const { associations } of this.#listeners.values()) {
      for (const association of associations.values()) association.sweep(now, this.#options.idleMs);
    }
  }

  async close(): Promise<void> {
    const listeners = [...this.#listeners.values()];
    this.#listeners.clear();
    await Promise.all(
      listeners.map(async ({ socket, associations }) => {
        const closed = once(socket, 'close');
        socket.close();
        await Promise.all([closed, closeAll(associations)]);
      }),
    );
  }

  #bind(address: string): Promise<void> {
    if (this.#listeners.has(address)) return Promise.resolve();
    const type = isIPv6(address) ? 'udp6' : 'udp4';
    const socket = createSocket({
      type,
      ipv6Only: type === 'udp6',
      recvBufferSize: RECEIVE_BUFFER,
      lookup: givenAddress,
    });
    const listener: Listener = { socket, associations: new Map() };
    socket.on('message', (payload, client) => this.#receive(listener, payload, client));
    return new Promise(resolve => {
      socket.once('listening', () => {
        this.#listeners.set(address, listener);
        this.#deps.receiveBuffers.watch(socket, 'to_mesh');
        resolve();
      });
      socket.on('error', (error: NodeJS.ErrnoException) => {
        this.#failure = error.code ?? error.message;
        this.#listeners.delete(address);
        void closeAll(listener.associations);
        socket.close();
        resolve();
      });
      socket.bind({ address, port: this.#port, exclusive: true });
    });
  }

  #receive(listener: Listener, payload: Buffer, client: RemoteInfo): void {
    const key = `${client.address} ${client.port}`;
    const fault = this.#faultOf(payload, client);
    const association = listener.associations.get(key);
    if (fault !== undefined) this.#deps.counts.drop('to_mesh', fault);
    else if (association) association.send(payload);
    else this.#associate(listener, key, client, payload);
  }

  #faultOf(payload: Buffer, client: RemoteInfo): DropReason | undefined {
    if (payload.length > this.#frames.maxPayload) return 'too_large';
    // No reply can be sent to port 0.
    return client.port === 0 ? 'malformed' : undefined;
  }

  #associate(listener: Listener, key: string, client: RemoteInfo, payload: Buffer): void {
    const { counts, backoff, quota, clock } = this.#deps;
    if (backoff.isActive) counts.drop('to_mesh', 'proxy_unavailable');
    else if (!quota.acquire(this.#port)) counts.drop('to_mesh', 'too_many_associations');
    else {
      const options = {
        proxy: this.#options.proxy,
        header: this.#frames.header,
        reply: (frame: Buffer, offset: number) => this.#reply(listener.socket, client, frame, offset),
        onEnd: () => {
          listener.associations.delete(key);
          quota.release(this.#port);
        },
      };
      const association = new Association(options, this.#deps, clock.now());
      listener.associations.set(key, association);
      association.send(payload);
    }
  }

  #reply(socket: Socket, client: RemoteInfo, frame: Buffer, offset: number): void {
    const { counts } = this.#deps;
    const length = frame.length - offset;
    if (socket.getSendQueueSize() > MAX_UNSENT) counts.drop('from_mesh', 'send_failed');
    else socket.send(frame, offset, length, client.port, client.address, counts.onSent.from_mesh);
  }
}

async function closeAll(associations: ReadonlyMap<string, Association>): Promise<void> {
  await Promise.all([...associations.values()].map(association => association.close()));
}
