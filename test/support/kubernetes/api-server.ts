import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { ResourceKind } from '../../../src/api/key.ts';
import { sendFault, sendJson, statusOf } from './api-answer.ts';
import type { Exchange, Fault } from './api-answer.ts';
import { asItem, discovered, placeOf } from './api-objects.ts';
import { ApiTruth } from './api-state.ts';
import { ApiWatch } from './api-watch.ts';
import { AUTHORITY } from './wire-certificates.ts';
import type { Authority } from './wire-certificates.ts';

/** What a request is for. */
export type Asked =
  | { readonly for: 'page'; readonly kind: ResourceKind; readonly version: string; readonly page: number }
  | { readonly for: 'watch'; readonly kind: ResourceKind; readonly version: string; readonly from: number }
  | { readonly for: 'discovery'; readonly path: string }
  | { readonly for: 'nothing'; readonly path: string };

/** How a server behaves; it may change. */
export type ApiSettings = {
  /** Pages are never larger, whatever is asked for. */
  mostPerPage: number;
  /** How often a watch that is idle says how far it is; never where it is 0. */
  bookmarkMs: number;
  /** Who may ask. */
  token: string;
  /** How late answers are: they say what was when they were asked for. */
  delayMs: number;
};

type Spoiled = { readonly when: (asked: Asked) => boolean; readonly fault: Fault; left: number };

/** An API server on loopback that lists and watches a truth, and fails where it is told to. */
export class ApiServer {
  readonly truth = new ApiTruth();
  /** All that was asked, in order. */
  readonly requests: Asked[] = [];
  readonly settings: ApiSettings = { mostPerPage: 500, bookmarkMs: 50, token: 'first', delayMs: 0 };
  readonly #server: Server;
  readonly #sockets = new Map<number, Socket>();
  readonly #watches = new Set<ApiWatch>();
  #spoiled: Spoiled[] = [];
  /** What happens before some event to come. */
  #onEvent: { left: number; readonly strike: (watch: ApiWatch) => void } | undefined;

  constructor() {
    this.#server = createServer({ ...AUTHORITY.server }, (request, response) => {
      const socket = this.#sockets.get(request.socket.remotePort ?? 0);
      this.#answer({ request, response, socket });
    });
    this.#server.on('connection', (socket: Socket) => {
      const port = socket.remotePort ?? 0;
      this.#sockets.set(port, socket);
      socket.once('close', () => this.#sockets.delete(port));
      socket.on('error', () => undefined);
    });
    this.truth.subscribe(event => {
      for (const watch of [...this.#watches]) {
        if (watch.kind !== event.kind) continue;
        this.#strikeIfDue(watch);
        watch.tell(event);
      }
    });
  }

  /** Begins to listen; gives the port. */
  async listen(): Promise<number> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  get watches(): readonly ApiWatch[] {
    return [...this.#watches];
  }

  /** How many connections there are. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Answers the next requests of a sort with a fault. */
  spoil(when: (asked: Asked) => boolean, fault: Fault, times = 1): void {
    this.#spoiled.push({ when, fault, left: times });
  }

  heal(): void {
    this.#spoiled = [];
    this.#onEvent = undefined;
  }

  /** Does something to a watch before it is told some event to come. */
  onEvent(count: number, strike: (watch: ApiWatch) => void): void {
    this.#onEvent = { left: count, strike };
  }

  /** Shows another certificate from now on, and breaks all connections. */
  certify({ server }: Authority): void {
    this.#server.setSecureContext({ ...server });
    this.disconnect();
  }

  disconnect(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = new Promise(resolve => this.#server.close(resolve));
    this.disconnect();
    await closed;
  }

  #strikeIfDue(watch: ApiWatch): void {
    const due = this.#onEvent;
    if (!due || --due.left > 0) return;
    this.#onEvent = undefined;
    due.strike(watch);
  }

  #answer(exchange: Exchange): void {
    const url = new URL(exchange.request.url ?? '', 'https://server');
    const asked = askedBy(url);
    this.requests.push(asked);
    if (exchange.request.headers.authorization !== `Bearer ${this.settings.token}`) {
      sendFault(exchange, '401', undefined);
      return;
    }
    const spoiled = this.#spoiled.find(({ when, left }) => left > 0 && when(asked));
    if (spoiled) {
      spoiled.left--;
      sendFault(exchange, spoiled.fault, this.#valueOf(asked, url) ?? {});
      return;
    }
    if (asked.for === 'watch') {
      this.#watch(exchange, asked, url);
      return;
    }
    const value = this.#valueOf(asked, url);
    if (value === undefined) {
      sendJson(exchange, statusOf(404), 404);
      return;
    }
    if (value === 'expired') {
      sendJson(exchange, statusOf(410), 410);
      return;
    }
    setTimeout(() => sendJson(exchange, value), this.settings.delayMs);
  }

  #valueOf(asked: Asked, url: URL): object | 'expired' | undefined {
    if (asked.for === 'discovery') return discovered(this.truth, asked.path);
    if (asked.for !== 'page' || !this.truth.served(asked.kind).includes(asked.version)) return undefined;
    const token = tokenIn(url);
    const revision = token?.revision ?? this.truth.revision;
    const all = this.truth.listAt(asked.kind, revision);
    if (!all) return 'expired';
    const size = Math.min(Number(url.searchParams.get('limit') ?? 500), this.settings.mostPerPage);
    const from = token?.from ?? 0;
    const isLast = from + size >= all.length;
    const next = { revision, from: from + size, page: asked.page + 1 };
    const more = isLast ? {} : { continue: Buffer.from(JSON.stringify(next)).toString('base64url') };
    return {
      kind: `${asked.kind}List`,
      apiVersion: 'v1',
      metadata: { resourceVersion: String(revision), ...more },
      items: all.slice(from, from + size).map(object => asItem(object, asked.version)),
    };
  }

  #watch(exchange: Exchange, asked: Extract<Asked, { readonly for: 'watch' }>, url: URL): void {
    const { kind, version, from } = asked;
    if (!this.truth.served(kind).includes(version)) {
      sendJson(exchange, statusOf(404), 404);
      return;
    }
    const missed = this.truth.since(kind, from);
    const watch = new ApiWatch(exchange, kind, version);
    if (!missed) {
      watch.fail(410);
      return;
    }
    for (const event of missed) watch.tell(event);
    this.#watches.add(watch);
    const { bookmarkMs } = this.settings;
    const tick = () => {
      if (this.settings.bookmarkMs > 0) watch.bookmark(this.truth.revision);
    };
    const bookmarks = setInterval(tick, bookmarkMs || 1000);
    const timeout = Number(url.searchParams.get('timeoutSeconds') ?? 60) * 1000;
    const end = setTimeout(() => watch.end(), timeout);
    exchange.response.once('close', () => {
      clearInterval(bookmarks);
      clearTimeout(end);
      this.#watches.delete(watch);
    });
  }
}

type Token = { readonly revision: number; readonly from: number; readonly page: number };

function tokenIn({ searchParams }: URL): Token | undefined {
  const text = searchParams.get('continue');
  return text === null ? undefined : (JSON.parse(Buffer.from(text, 'base64url').toString()) as Token);
}

function askedBy(url: URL): Asked {
  const path = url.pathname;
  const place = placeOf(path);
  if (!place) return { for: /^\/apis?(\/|$)/.test(path) ? 'discovery' : 'nothing', path };
  if (url.searchParams.get('watch') === 'true') {
    return { for: 'watch', ...place, from: Number(url.searchParams.get('resourceVersion')) };
  }
  return { for: 'page', ...place, page: tokenIn(url)?.page ?? 1 };
}
