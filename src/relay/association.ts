import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, isIPv6 } from 'node:net';
import type { Socket } from 'node:net';
import { SocksClient } from 'socks';
import type { DatagramCounts, DropReason } from './datagram-counts.ts';
import type { ProxyBackoff } from './proxy-backoff.ts';
import type { ReceiveBuffers } from './receive-buffers.ts';
import { faultOfFrame } from './socks-frames.ts';

/** The SOCKS5 proxy of meshd. */
export type Proxy = { readonly host: string; readonly port: number };

/** The size of all datagrams that wait for an association to open. */
type PendingSize = { bytes: number };

export type AssociationDeps = {
  readonly counts: DatagramCounts;
  readonly backoff: ProxyBackoff;
  readonly pendingSize: PendingSize;
  readonly receiveBuffers: ReceiveBuffers;
};

type AssociationOptions = {
  readonly proxy: Proxy;
  readonly header: Buffer;
  /** Sends the payload of a frame, which begins at an offset, to the client. */
  readonly reply: (frame: Buffer, offset: number) => void;
  /** Called once, when the association has ended. */
  readonly onEnd: () => void;
};

const OPEN_TIMEOUT_MS = 5000;

/** The least time for which an association may be without a reply. */
const UNANSWERED_MS = 5000;

/** The limits of pending datagrams: of one association, and of all. */
const MAX_PENDING = 16;
const MAX_PENDING_BYTES = 8 * 1024 * 1024;

/** For bursts of replies; the kernel limits it to net.core.rmem_max. */
const RECEIVE_BUFFER = 1024 * 1024;

/** What a pending datagram takes beside its bytes. */
const PENDING_OVERHEAD = 512;

/**
 * A UDP association with the proxy for one client of a port: a TCP connection, which only keeps it open, and a connected UDP
 * socket. It ends with the TCP connection, and is not opened again.
 *
 * One that sends before meshd is on the tailnet sends from a wrong address until it ends. So one that was opened soon after
 * the proxy failed ends if it gets no reply for as long as the proxy had worked when it was opened: clients whose target
 * never replies get another one after 5, 10, 20 s and so on.
 */
export class Association {
  readonly #deps: AssociationDeps;
  readonly #options: AssociationOptions;
  readonly #control: Socket;
  #udp: UdpSocket | undefined;
  #state: 'opening' | 'open' | 'ended' = 'opening';
  #pending: Buffer[] = [];
  #isUsed = false;
  #usedAt: number;
  /** When it ends if there was no reply. */
  #unansweredUntil: number;

  constructor(options: AssociationOptions, deps: AssociationDeps, now: number) {
    this.#options = options;
    this.#deps = deps;
    this.#usedAt = now;
    this.#unansweredUntil = now + Math.max(UNANSWERED_MS, deps.backoff.workingMs);
    const { proxy } = options;
    const control = connect(proxy);
    control.on('error', error => deps.counts.fail(error));
    control.once('connect', () => this.#associate(proxy));
    control.once('close', () => this.#end('proxy_unavailable'));
    this.#control = control;
  }

  /** Sends a datagram to the target, or keeps it until the association is open. */
  send(payload: Buffer): void {
    const { onSent } = this.#deps.counts;
    this.#isUsed = true;
    if (this.#state === 'open') this.#udp?.send([this.#options.header, payload], onSent.to_mesh);
    else this.#keep(payload);
  }

  /** Ends the association if it has been idle for a time, or does not open; called from time to time. */
  sweep(now: number, idleMs: number): void {
    const isOpen = this.#state === 'open';
    if (isOpen && this.#isUsed) {
      this.#isUsed = false;
      this.#usedAt = now;
    }
    const isUnanswered = isOpen && now >= this.#unansweredUntil;
    if (!isUnanswered && now - this.#usedAt < (isOpen ? idleMs : OPEN_TIMEOUT_MS)) return;
    if (isOpen) void this.close();
    else this.#fail(new Error('the proxy did not open an association in time'));
  }

  async close(): Promise<void> {
    this.#end('closed');
    if (!this.#control.closed) await once(this.#control, 'close');
  }

  #keep(payload: Buffer): void {
    const { counts, pendingSize } = this.#deps;
    const size = payload.length + PENDING_OVERHEAD;
    const isFull = this.#pending.length >= MAX_PENDING || pendingSize.bytes + size > MAX_PENDING_BYTES;
    if (this.#state === 'ended') counts.drop('to_mesh', 'closed');
    else if (isFull) counts.drop('to_mesh', 'pending_full');
    else {
      pendingSize.bytes += size;
      this.#pending.push(payload);
    }
  }

  #takePending(): readonly Buffer[] {
    const pending = this.#pending;
    this.#pending = [];
    for (const { length } of pending) this.#deps.pendingSize.bytes -= length + PENDING_OVERHEAD;
    return pending;
  }

  #associate({ host, port }: Proxy): void {
    const client = new SocksClient({
      command: 'associate',
      // The proxy's address replaces 0.0.0.0 in its response.
      proxy: { ipaddress: host, port, type: 5 },
      destination: { host: '0.0.0.0', port: 0 },
    });
    client.on('error', error => this.#deps.counts.fail(error));
    client.on('established', ({ remoteHost }) => {
      try {
        if (remoteHost) this.#connect(remoteHost);
      } catch (error) {
        this.#fail(error as Error);
      }
    });
    client.connect(this.#control);
  }

  #connect({ host, port }: { readonly host: string; readonly port: number }): void {
    const type = isIPv6(host) ? 'udp6' : 'udp4';
    const udp = createSocket({ type, recvBufferSize: RECEIVE_BUFFER, lookup: givenAddress });
    this.#udp = udp;
    udp.on('error', error => this.#fail(error));
    udp.on('message', frame => this.#receive(frame));
    // Bound to the address of the connection, so that no other host can send to it before it is connected.
    udp.bind({ address: this.#control.localAddress ?? '', port: 0, exclusive: true });
    udp.connect(port, host, () => this.#opened());
  }

  #opened(): void {
    if (this.#state !== 'opening' || !this.#udp) return;
    this.#state = 'open';
    this.#deps.receiveBuffers.watch(this.#udp, 'from_mesh');
    this.#isUsed = true;
    this.#deps.backoff.succeeded();
    for (const payload of this.#takePending()) this.send(payload);
  }

  #receive(frame: Buffer): void {
    if (this.#state !== 'open') return;
    const { header, reply } = this.#options;
    const fault = faultOfFrame(header, frame);
    if (fault === undefined) {
      this.#isUsed = true;
      this.#unansweredUntil = Infinity;
      reply(frame, header.length);
    } else {
      this.#deps.counts.drop('from_mesh', fault);
    }
  }

  #fail(error: Error): void {
    this.#deps.counts.fail(error);
    this.#end('proxy_unavailable');
  }

  #end(reason: DropReason): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    if (reason === 'proxy_unavailable') this.#deps.backoff.failed();
    const pending = this.#takePending();
    if (pending.length > 0) this.#deps.counts.drop('to_mesh', reason, pending.length);
    this.#udp?.close();
    this.#control.destroy();
    this.#options.onEnd();
  }
}

/** Addresses need no resolver; Node's takes a turn of the event loop even for an address. */
export function givenAddress(
  address: string,
  _family: unknown,
  callback: (error: null, address: string, family: number) => void,
): void {
  callback(null, address, isIPv6(address) ? 6 : 4);
}
