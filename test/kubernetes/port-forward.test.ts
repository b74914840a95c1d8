import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectToPod } from '../../src/kubernetes/auth/port-forward.ts';
import { AUTHORITY, OTHER_AUTHORITY } from '../support/kubernetes/wire-certificates.ts';
import { servePortForwards } from '../support/tools/port-forward.ts';

const TIMEOUT_MS = 5000;
const ENVOY = { namespace: 'infra', pod: 'envoy-1', port: 19_000 };

async function listen(server: Server): Promise<number> {
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A pod that answers in capitals once it has read all, and an API server that forwards to it and expects a token. */
async function serve(
  pod = createServer(socket => void socket.once('data', data => socket.end(upper(data)))),
) {
  const port = await listen(pod);
  const api = createHttpsServer(AUTHORITY.server);
  api.on('upgrade', ({ headers }, socket) => {
    if (headers.authorization === 'Bearer token') return;
    socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n');
  });
  servePortForwards(
    api,
    () => port,
    path => path !== '/prefix/api/v1/namespaces/infra/pods/envoy-1/portforward',
  );
  return `https://127.0.0.1:${await listen(api)}/prefix`;
}

function upper(data: Buffer): string {
  return data.toString().toUpperCase();
}

const CONFIG = { tls: { ca: AUTHORITY.ca }, headers: { authorization: 'Bearer token' } };

describe('a port-forward', () => {
  it('carries bytes in both directions until the pod closes the connection', async () => {
    const connection = await connectToPod({ server: await serve(), ...CONFIG }, ENVOY, TIMEOUT_MS);
    connection.write('hello');
    expect(await text(connection)).toBe('HELLO');
  });

  it('fails where the pod has nothing at the port', async () => {
    const pod = createServer(socket => void socket.resetAndDestroy());
    const connection = await connectToPod({ server: await serve(pod), ...CONFIG }, ENVOY, TIMEOUT_MS);
    connection.write('hello');
    await expect(text(connection)).rejects.toMatchObject({
      reason: 'Unreachable',
      message: expect.stringMatching(
        /^port-forward to port 19000 of pod infra\/envoy-1: .*ECONNRESET/,
      ) as string,
    });
  });

  it.each([
    ['Unauthorized', { ...CONFIG, headers: {} }, ENVOY],
    ['Forbidden', CONFIG, { ...ENVOY, pod: 'other' }],
    ['Unreachable', { ...CONFIG, tls: { ca: OTHER_AUTHORITY.ca } }, ENVOY],
  ] as const)('fails with %s', async (reason, config, pod) => {
    const connecting = connectToPod({ server: await serve(), ...config }, pod, TIMEOUT_MS);
    await expect(connecting).rejects.toMatchObject({ name: 'KubeError', reason });
  });

  it('fails after a timeout where the API server does not answer', async () => {
    const api = createHttpServer().on('upgrade', () => undefined);
    const config = { server: `http://127.0.0.1:${await listen(api)}`, tls: {}, headers: {} };
    await expect(connectToPod(config, ENVOY, 50)).rejects.toMatchObject({
      reason: 'Unreachable',
      message: expect.stringContaining('handshake has timed out') as string,
    });
  });
});
