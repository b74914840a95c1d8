import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { redact } from './audit.ts';
import type { LoggedRequest } from './audit.ts';
import type { Fault, FaultRules, Gates } from './faults.ts';
import { handle, routeNameOf } from './handle.ts';
import type { ApiRequest, Deps, Noted } from './handle.ts';
import { send } from './send.ts';

/** The certificate of an HTTPS server, and its key. */
export type ServerCertificate = { readonly cert: string; readonly key: string };

/** A server that listens. */
export type Listening = {
  readonly url: string;
  /** Presents another certificate from now on. */
  readonly present: (certificate: ServerCertificate) => void;
  readonly close: () => Promise<void>;
};

/** What the server does beside handling requests. */
export type ServerDeps = Deps & {
  readonly faults: FaultRules;
  readonly gates: Gates;
  readonly log: (request: LoggedRequest) => void;
};

/** Where the server listens; with a certificate it is an HTTPS server. */
export type ListenOptions = {
  readonly host: string;
  readonly port: number;
  readonly certificate?: ServerCertificate;
};

/** Serves the API until it is closed; closing ends connections too. */
export async function listen(
  deps: ServerDeps,
  { host, port, certificate }: ListenOptions,
): Promise<Listening> {
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    response.on('error', () => undefined);
    answer(deps, request, response).catch((error: unknown) => {
      // Clients may abort their requests.
      if (request.complete) console.error('control API simulator: unexpected error in a request', error);
      response.destroy();
    });
  };
  const server = certificate ? createHttpsServer({ ...certificate }, serve) : createHttpServer(serve);
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  return {
    url: `${certificate ? 'https' : 'http'}://${host}:${address.port}`,
    present: next => {
      server.closeAllConnections();
      if (certificate) (server as HttpsServer).setSecureContext({ ...next });
    },
    close: async () => {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function answer(deps: ServerDeps, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const request = await read(incoming);
  const route = routeNameOf(deps, request);
  const faults = deps.faults.take(route);
  const noted: Noted = { credential: '', scopes: new Set() };
  const log = (status: number) => deps.log(logEntry(deps, request, route, status, noted, faults));
  for (const fault of faults) if (fault.is === 'delay') await sleep(fault.ms);
  const fault = faults.find(({ is }) => is !== 'delay');
  if (fault && isInstead(fault)) {
    log(fault.is === 'answer' ? fault.status : fault.is === 'redirect' ? (fault.status ?? 307) : 0);
    await sendInstead(response, fault, request.url);
    return;
  }
  await deps.gates.pass(route);
  const right = await handle(deps, request, noted);
  const result = fault?.is === 'lost-answer' ? fault : right;
  if (fault?.is === 'reset' && fault.when === 'after') {
    log(0);
    response.socket?.resetAndDestroy();
    return;
  }
  log(result.status);
  await send(response, result, fault);
}

/** Faults because of which a call is not carried out. */
type Instead = Fault & ({ is: 'answer' } | { is: 'redirect' } | { is: 'hang' } | { is: 'reset' });

function isInstead(fault: Fault): fault is Instead {
  return (
    ['answer', 'redirect', 'hang'].includes(fault.is) || (fault.is === 'reset' && fault.when === 'before')
  );
}

async function sendInstead(response: ServerResponse, fault: Instead, url: URL): Promise<void> {
  switch (fault.is) {
    case 'answer':
      return send(response, fault, undefined);
    case 'redirect': {
      const location = `${fault.to}${url.pathname}${url.search}`;
      return send(response, { status: fault.status ?? 307, headers: { location } }, undefined);
    }
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'hang':
      return;
  }
}

const MAX_BYTES = 1 << 20;

async function read(incoming: IncomingMessage): Promise<ApiRequest> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BYTES) chunks.push(chunk);
  }
  return {
    method: incoming.method ?? '',
    url: new URL(incoming.url ?? '/', 'http://control-api'),
    headers: incoming.headers,
    body: Buffer.concat(chunks).toString(),
  };
}

function logEntry(
  { state }: Deps,
  { method, url, headers }: ApiRequest,
  route: string,
  status: number,
  { credential, scopes }: Noted,
  faults: readonly Fault[],
): LoggedRequest {
  return {
    atMs: state.clock.now(),
    method,
    path: redact(`${url.pathname}${url.search}`),
    route,
    status,
    credential,
    scopes: [...scopes],
    userAgent: redact(String(headers['user-agent'] ?? '')),
    faults: faults.map(({ is }) => is),
  };
}
