import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { ResourceKind } from '../../../src/api/key.ts';
import { sendFault, sendJson, statusOf } from './api-answer.ts';
import type { Exchange, Fault } from './api-answer.ts';
import { asItem, discovered, placeOf } from './api-objects.ts';
import { ApiState } from './api-state.ts';
import { ApiWatch } from './api-watch.ts';
import { AUTHORITY } from './wire-certificates.ts';
import type { Authority } from './wire-certificates.ts';

/** What a request is for. */
export type ApiRequest =
  | { readonly for: 'page'; readonly kind: ResourceKind; readonly version: string; readonly page: number }
  | { readonly for: 'watch'; readonly kind: ResourceKind; readonly version: string; readonly from: number }
  | { readonly for: 'discovery'; readonly path: string }
  | { readonly for: 'nothing'; readonly path: string };

/** Settings that a test may change at any time. */
export type ApiSettings = {
  maxPageSize: number;
  /** The interval of bookmarks; 0 for none. */
  bookmarkMs: number;
  /** The accepted bearer token. */
  token: string;
  /** The delay of responses, whose content is that of the time of the request. */
  delayMs: number;
};

type PlannedFault = {
  readonly when: (apiRequest: ApiRequest) => boolean;
  readonly fault: Fault;
  left: number;
};

/** An API server on loopback that serves lists and watches of a state, and fails on demand. */
export class ApiServer {
  readonly state = new ApiState();
  readonly requests: ApiRequest[] = [];
  readonly settings: ApiSettings = { maxPageSize: 500, bookmarkMs: 50, token: 'first', delayMs: 0 };
  readonly #server: Server;
  readonly #sockets = new Map<number, Socket>();
  readonly #watches = new Set<ApiWatch>();
  #faults: PlannedFault[] = [];
  #onEvent: { left: number; readonly act: (watch: ApiWatch) => void } | undefined;

  constructor() {
    this.#server = createServer({ ...AUTHORITY.server }, (request, response) => {
      const socket = this.#sockets.get(request.socket.remotePort ?? 0);
      this.#respond({ request, response, socket });
    });
    this.#server.on('connection', (socket: Socket) => {
      const port = socket.remotePort ?? 0;
      this.#sockets.set(port, socket);
      socket.once('close', () => this.#sockets.delete(port));
      socket.on('error', () => undefined);
    });
    this.state.subscribe(event => {
      for (const watch of [...this.#watches]) {
        if (watch.kind !== event.kind) continue;
        this.#actIfDue(watch);
        watch.send(event);
      }
    });
  }

  /** Listens; returns the port. */
  async listen(): Promise<number> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  get watches(): readonly ApiWatch[] {
    return [...this.#watches];
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Responds to the next matching requests with a fault. */
  failNext(when: (apiRequest: ApiRequest) => boolean, fault: Fault, times = 1): void {
    this.#faults.push({ when, fault, left: times });
  }

  recover(): void {
    this.#faults = [];
    this.#onEvent = undefined;
  }

  /** Calls `act` with a watch before it gets its next event but `count - 1`. */
  beforeEvent(count: number, act: (watch: ApiWatch) => void): void {
    this.#onEvent = { left: count, act };
  }

  /** Changes the certificate, and closes all connections. */
  useCertificate({ server }: Authority): void {
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

  #actIfDue(watch: ApiWatch): void {
    const due = this.#onEvent;
    if (!due || --due.left > 0) return;
    this.#onEvent = undefined;
    due.act(watch);
  }

  #respond(exchange: Exchange): void {
    const url = new URL(exchange.request.url ?? '', 'https://server');
    const apiRequest = requestIn(url);
    this.requests.push(apiRequest);
    if (exchange.request.headers.authorization !== `Bearer ${this.settings.token}`) {
      sendFault(exchange, '401', undefined);
      return;
    }
    const planned = this.#faults.find(({ when, left }) => left > 0 && when(apiRequest));
    if (planned) {
      planned.left--;
      sendFault(exchange, planned.fault, this.#valueOf(apiRequest, url) ?? {});
      return;
    }
    if (apiRequest.for === 'watch') {
      this.#watch(exchange, apiRequest, url);
      return;
    }
    const value = this.#valueOf(apiRequest, url);
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

  #valueOf(apiRequest: ApiRequest, url: URL): object | 'expired' | undefined {
    if (apiRequest.for === 'discovery') return discovered(this.state, apiRequest.path);
    if (apiRequest.for !== 'page' || !this.state.versionsOf(apiRequest.kind).includes(apiRequest.version))
      return undefined;
    const token = tokenIn(url);
    const revision = token?.revision ?? this.state.revision;
    const all = this.state.listAt(apiRequest.kind, revision);
    if (!all) return 'expired';
    const size = Math.min(Number(url.searchParams.get('limit') ?? 500), this.settings.maxPageSize);
    const from = token?.from ?? 0;
    const isLast = from + size >= all.length;
    const next = { revision, from: from + size, page: apiRequest.page + 1 };
    const more = isLast ? {} : { continue: Buffer.from(JSON.stringify(next)).toString('base64url') };
    return {
      kind: `${apiRequest.kind}List`,
      apiVersion: 'v1',
      metadata: { resourceVersion: String(revision), ...more },
      items: all.slice(from, from + size).map(object => asItem(object, apiRequest.version)),
    };
  }

  #watch(exchange: Exchange, apiRequest: Extract<ApiRequest, { readonly for: 'watch' }>, url: URL): void {
    const { kind, version, from } = apiRequest;
    if (!this.state.versionsOf(kind).includes(version)) {
      sendJson(exchange, statusOf(404), 404);
      return;
    }
    const missed = this.state.since(kind, from);
    const watch = new ApiWatch(exchange, kind, version);
    if (!missed) {
      watch.fail(410);
      return;
    }
    for (const event of missed) watch.send(event);
    this.#watches.add(watch);
    const { bookmarkMs } = this.settings;
    const tick = () => {
      if (this.settings.bookmarkMs > 0) watch.bookmark(this.state.revision);
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

function requestIn(url: URL): ApiRequest {
  const path = url.pathname;
  const place = placeOf(path);
  if (!place) return { for: /^\/apis?(\/|$)/.test(path) ? 'discovery' : 'nothing', path };
  if (url.searchParams.get('watch') === 'true') {
    return { for: 'watch', ...place, from: Number(url.searchParams.get('resourceVersion')) };
  }
  return { for: 'page', ...place, page: tokenIn(url)?.page ?? 1 };
}
