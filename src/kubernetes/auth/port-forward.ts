import type { RequestOptions } from 'node:https';
import { Duplex, PassThrough, Writable } from 'node:stream';
import { KubeConfig, PortForward } from '@kubernetes/client-node';
import { statusError } from '../transport/status-error.ts';
import { KubeError } from '../transport/transport.ts';
import type { RestConfig } from './rest-config.ts';

/** A port of a pod, also one that only the pod itself can reach. */
export type PodPort = { readonly namespace: string; readonly pod: string; readonly port: number };

/** Connects to a port of a pod through the API server, as kubectl port-forward does; fails with KubeError. */
export async function connectToPod(
  config: RestConfig,
  { namespace, pod, port }: PodPort,
  timeoutMs: number,
): Promise<Duplex> {
  const what = `port-forward to port ${port} of pod ${namespace}/${pod}`;
  const toPod = new PassThrough();
  const connection = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _, done) => void toPod.write(chunk, done),
    final: done => void toPod.end(done),
  });
  const fromPod = writableTo(chunk => connection.push(chunk));
  const refusals = writableTo(text =>
    connection.destroy(new KubeError('Unreachable', `${what}: ${text.toString().trim()}`)),
  );
  try {
    const forward = new PortForward(libraryConfig(config, timeoutMs));
    const socket = (await forward.portForward(namespace, pod, [port], fromPod, refusals, toPod)) as Socket;
    socket.onclose = () => connection.push(null);
    connection.once('close', () => socket.terminate());
    return connection;
  } catch (error) {
    throw kubeErrorOf(error, what);
  }
}

/** The first chunk of a channel, which has the port, is empty. */
function writableTo(use: (chunk: Buffer) => void): Writable {
  return new Writable({
    write: (chunk: Buffer, _, done) => {
      if (chunk.length > 0) use(chunk);
      done();
    },
  });
}

/** The WebSocket of the library, which has no types of its own. */
export type Socket = { onclose: () => void; readonly terminate: () => void };

/** The library with the credentials of all other requests. */
export function libraryConfig({ server, tls, headers }: RestConfig, timeoutMs: number): KubeConfig {
  return Object.assign(new KubeConfig(), {
    getCurrentCluster: () => ({ name: '', server, skipTLSVerify: false }),
    applyToHTTPSOptions: (options: RequestOptions) => {
      Object.assign(options, tls, { headers, handshakeTimeout: timeoutMs });
      return Promise.resolve();
    },
  });
}

/** The library fails with an event, whose message has the status of the response. */
export function kubeErrorOf(event: unknown, what: string): KubeError {
  const message = (event as { readonly message?: unknown }).message;
  const text = typeof message === 'string' ? message : '';
  const status = Number(/^Unexpected server response: (\d+)$/.exec(text)?.[1]);
  if (status > 0) return statusError({ what, status, headers: {}, body: '', secrets: [], now: new Date() });
  return new KubeError('Unreachable', `${what}: ${text === '' ? 'failed' : text}`);
}
