import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { kubeconfigText, makeFiles } from '../kubernetes/wire-kubeconfig.ts';

/** The ConfigMap that a client may list and watch. */
const ALLOWED = { namespace: 'mesh-system', name: 'mesh-relay-example' } as const;

type Event = { readonly type: string; readonly revision: number; readonly object: object };

/** An API server on loopback for one ConfigMap; all other requests get a 403, as by a Role with resourceNames. */
export class ConfigMapServer {
  readonly requests: string[] = [];
  #server: Server | undefined;
  #port = 0;
  #revision = 1000;
  #compacted = 0;
  #object: object | undefined;
  #events: Event[] = [];
  readonly #watches = new Set<ServerResponse>();

  /** Listens, after the first time on the same port. */
  async listen(): Promise<void> {
    const server = createServer((request, response) => this.#respond(request, response));
    await new Promise<void>(resolve => server.listen(this.#port, '127.0.0.1', resolve));
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Closes all connections and stops listening. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const closed = new Promise(resolve => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  /** A kubeconfig with a token for this server; returns its path. */
  kubeconfig(token: string): string {
    const cluster = { server: `http://127.0.0.1:${this.#port}` };
    return makeFiles().write('kubeconfig', kubeconfigText({ cluster, user: { token } }));
  }

  put(data: unknown): void {
    const type = this.#object ? 'MODIFIED' : 'ADDED';
    this.#object = this.#withMetadata({ data });
    this.#send(type, this.#object);
  }

  remove(): void {
    this.#object = undefined;
    this.#send('DELETED', this.#withMetadata({}));
  }

  /** Ends all watches, whose resourceVersions are too old from now on. */
  expire(): void {
    this.#compacted = this.#revision;
    this.#events = [];
    const object = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 410, message: 'too old' };
    for (const watch of this.#watches) watch.end(`${JSON.stringify({ type: 'ERROR', object })}\n`);
    this.#watches.clear();
  }

  #withMetadata(fields: object): object {
    const metadata = { ...ALLOWED, resourceVersion: String(++this.#revision), uid: 'u' };
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata, ...fields };
  }

  #send(type: string, object: object): void {
    const event = { type, revision: this.#revision, object };
    this.#events.push(event);
    for (const watch of this.#watches) watch.write(lineOf(event));
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://server');
    this.requests.push(request.url ?? '');
    response.setHeader('content-type', 'application/json');
    const isAllowed =
      pathname === `/api/v1/namespaces/${ALLOWED.namespace}/configmaps` &&
      searchParams.get('fieldSelector') === `metadata.name=${ALLOWED.name}`;
    if (!isAllowed) {
      response.writeHead(403).end(JSON.stringify({ kind: 'Status', code: 403, message: 'not allowed' }));
    } else if (searchParams.get('watch') === 'true') {
      this.#watch(Number(searchParams.get('resourceVersion')), response);
    } else {
      const items = this.#object ? [this.#object] : [];
      const metadata = { resourceVersion: String(this.#revision) };
      response.end(JSON.stringify({ kind: 'ConfigMapList', apiVersion: 'v1', metadata, items }));
    }
  }

  #watch(from: number, response: ServerResponse): void {
    response.flushHeaders();
    this.#watches.add(response);
    response.once('close', () => this.#watches.delete(response));
    if (from < this.#compacted) this.expire();
    else for (const event of this.#events) if (event.revision > from) response.write(lineOf(event));
  }
}

function lineOf({ type, object }: Event): string {
  return `${JSON.stringify({ type, object })}\n`;
}

/** Starts an API server without the ConfigMap; it ends with the test. */
export async function startConfigMapServer(): Promise<ConfigMapServer> {
  const server = new ConfigMapServer();
  await server.listen();
  onTestFinished(() => server.close());
  return server;
}
