import { createServer as createHttp2Server, createSecureServer } from 'node:http2';
import type { Socket } from 'node:net';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { HealthImplementation, service as healthService } from 'grpc-health-check';
import type { ServingStatus } from 'grpc-health-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CheckSettings, CheckTls } from '../../src/health/check.ts';
import { checkOf, startProbing } from '../support/health/probing.ts';
import { closedPort, listenForTest, startHttpService, startTcpService } from '../support/health/services.ts';
import { CA, CERTIFICATES } from '../support/lab/health/certificates.ts';

const SUCCESS = { is: 'success' };
const failure = (error: string) => ({ is: 'failure', error, code: expect.any(String) as string });

const TLS: CheckTls = {
  serverName: 'web-1.example.ts.net',
  ca: CA,
  minVersion: undefined,
  insecureSkipVerify: false,
};

function settingsOf(service = '', tls?: CheckTls): CheckSettings {
  return { type: 'GRPC', authority: 'web.example.ts.net', service, tls };
}

type Call = { readonly authority: string; readonly userAgent: unknown };

/** Starts a server until the test has finished. */
async function startServer(
  register: (server: Server) => void,
  credentials = ServerCredentials.createInsecure(),
): Promise<number> {
  const server = new Server();
  register(server);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  onTestFinished(() => server.forceShutdown());
  return port;
}

/** Starts a server with the health of its services. */
function startHealth(
  health: Record<string, ServingStatus>,
  credentials?: ServerCredentials,
): Promise<number> {
  return startServer(server => new HealthImplementation(health).addToServer(server), credentials);
}

/** Starts a server whose health service answers every call with a status. */
function startFailing(code: status, calls: Call[] = []): Promise<number> {
  return startServer(server =>
    server.addService(healthService, {
      check: (
        call: { getHost(): string; metadata: { get(name: string): unknown[] } },
        callback: (e: object) => void,
      ) => {
        calls.push({ authority: call.getHost(), userAgent: call.metadata.get('user-agent')[0] });
        callback({ code, details: 'Bearer secret' });
      },
    }),
  );
}

const tlsCredentials = (name: keyof typeof CERTIFICATES) => {
  const { cert, key } = CERTIFICATES[name];
  return ServerCredentials.createSsl(null, [
    { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) },
  ]);
};

describe.each(['pool', 'direct'] as const)('a gRPC check by way of %s', is => {
  const via = { is };

  it.each<[string, ServingStatus | undefined, object]>([
    ['serving', 'SERVING', SUCCESS],
    ['not serving', 'NOT_SERVING', failure('health status NOT_SERVING')],
    ['in an unknown state', 'UNKNOWN', failure('health status UNKNOWN')],
    ['unknown', undefined, failure('service web.v1.Shop is unknown')],
  ])('of a service that is %s', async (_how, health, result) => {
    const { probe } = await startProbing();
    const port = await startHealth({ '': 'SERVING', ...(health ? { 'web.v1.Shop': health } : {}) });
    expect(await probe(checkOf(port, settingsOf('web.v1.Shop'), { via }))).toEqual(result);
    expect(await probe(checkOf(port, settingsOf(), { via }))).toEqual(SUCCESS);
  });

  it('sends the authority and the User-Agent of checks', async () => {
    const { probe } = await startProbing();
    const calls: Call[] = [];
    const port = await startFailing(status.UNAVAILABLE, calls);
    await probe(checkOf(port, settingsOf(), { via }));
    expect(calls).toEqual([
      {
        authority: 'web.example.ts.net',
        userAgent: expect.stringMatching(/^mesh-gateway-health-check /) as unknown,
      },
    ]);
  });

  it.each([
    [status.UNAVAILABLE, 'gRPC status UNAVAILABLE'],
    [status.PERMISSION_DENIED, 'gRPC status PERMISSION_DENIED'],
    [status.UNIMPLEMENTED, 'server has no gRPC health service'],
  ])('of a server that answers with status %d fails without quoting it', async (code, error) => {
    const { probe } = await startProbing();
    expect(await probe(checkOf(await startFailing(code), settingsOf(), { via }))).toEqual(failure(error));
  });

  it('over TLS succeeds with a certificate of its CA, by the scheme https', async () => {
    const { probe } = await startProbing();
    const port = await startHealth({ '': 'SERVING' }, tlsCredentials('valid'));
    expect(await probe(checkOf(port, settingsOf('', TLS), { via }))).toEqual(SUCCESS);
    const schemes: unknown[] = [];
    const server = createSecureServer(CERTIFICATES.valid);
    server.on('stream', (stream, headers) => {
      schemes.push(headers[':scheme']);
      stream.respond(
        { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': 14 },
        { endStream: true },
      );
    });
    const { port: other } = await listenForTest(server);
    await probe(checkOf(other, settingsOf('', TLS), { via }));
    expect(schemes).toEqual(['https']);
  });

  it('over TLS fails by the certificate', async () => {
    const { probe } = await startProbing();
    const port = await startHealth({ '': 'SERVING' }, tlsCredentials('expired'));
    expect(await probe(checkOf(port, settingsOf('', TLS), { via }))).toEqual(failure('certificate expired'));
  });

  it('fails where nothing listens', async () => {
    const { probe } = await startProbing();
    const result = await probe(checkOf(await closedPort(), settingsOf(), { via }));
    expect(result).toEqual(failure('connection refused'));
  });

  it('fails where the service speaks HTTP/1.1', async () => {
    const { probe } = await startProbing();
    const { port } = await startHttpService((_request, response) => void response.end());
    expect(await probe(checkOf(port, settingsOf(), { via }))).toEqual(failure('response is not gRPC'));
  });

  it('fails where the service speaks HTTP/2 without gRPC', async () => {
    const { probe } = await startProbing();
    const server = createHttp2Server(
      (_request, response) => void response.writeHead(404).end('no such page'),
    );
    const { port } = await listenForTest(server);
    const result = await probe(checkOf(port, settingsOf(), { via }));
    expect(result).toEqual(failure('server has no gRPC health service'));
  });

  it.each<[string, (socket: Socket) => void]>([
    ['closes the connection', socket => socket.end()],
    ['closes it after the first bytes', socket => void socket.once('data', () => socket.end())],
    ['resets it after the first bytes', socket => void socket.once('data', () => socket.resetAndDestroy())],
  ])('fails where the service %s', async (_how, serve) => {
    const { probe } = await startProbing();
    const { port } = await startTcpService(serve);
    expect(await probe(checkOf(port, settingsOf(), { via }))).toEqual(failure('connection closed'));
  });

  it('fails at the timeout where the service does not answer', async () => {
    const { probeUntilTimeout } = await startProbing();
    let isServed = false;
    const { port } = await startTcpService(socket => void socket.once('data', () => (isServed = true)));
    const result = await probeUntilTimeout(checkOf(port, settingsOf(), { via }), () => isServed);
    expect(result).toEqual(failure('timeout after 10s'));
  });
});

describe('a gRPC check through a proxy', () => {
  it('that cannot connect fails by the reason of the proxy', async () => {
    const { member, probe } = await startProbing();
    const result = await probe(checkOf(await closedPort(), settingsOf()));
    expect(result).toEqual(failure('connection refused'));
    expect(member.connects.length).toBe(1);
  });

  it('ends at once when it is aborted', async () => {
    const { probe } = await startProbing();
    const { port, connections } = await startTcpService();
    const controller = new AbortController();
    const result = probe(checkOf(port, settingsOf()), controller.signal);
    while (connections() === 0) await new Promise(setImmediate);
    controller.abort();
    expect(await result).toEqual({ is: 'unknown', why: 'the check was aborted' });
  });
});
