import { createServer } from 'node:https';
import type { ServerOptions } from 'node:https';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it } from 'vitest';
import type { CheckTls } from '../../src/health/check.ts';
import { checkOf, httpSettings, startProbing } from '../support/health/probing.ts';
import { listenForTest, startHttpService, startTcpService } from '../support/health/services.ts';
import type { Service } from '../support/health/services.ts';
import { OTHER_AUTHORITY } from '../support/kubernetes/wire-certificates.ts';
import { CA, CERTIFICATES } from '../support/lab/health/certificates.ts';

const TLS: CheckTls = {
  serverName: 'web-1.example.ts.net',
  ca: CA,
  minVersion: undefined,
  insecureSkipVerify: false,
};

const settingsOf = (changes: Partial<CheckTls> = {}) => httpSettings({ tls: { ...TLS, ...changes } });

function startHttpsService(options: ServerOptions = CERTIFICATES.valid): Promise<Service> {
  return listenForTest(createServer(options, (_request, response) => void response.writeHead(200).end()));
}

describe.each(['pool', 'direct'] as const)('an HTTPS check by way of %s', is => {
  const via = { is };

  it('sends the server name, and succeeds with a certificate of its CA', async () => {
    const { probe } = await startProbing();
    const names: unknown[] = [];
    const server = createServer(CERTIFICATES.valid, (_request, response) => void response.end());
    server.on('secureConnection', socket => names.push(socket.servername));
    const { port } = await listenForTest(server);
    expect(await probe(checkOf(port, settingsOf(), { via }))).toEqual({ is: 'success' });
    expect(names).toEqual(['web-1.example.ts.net']);
  });

  it('verifies the certificate of each connection', async () => {
    const { probe } = await startProbing();
    const server = createServer(CERTIFICATES.valid, (_request, response) => void response.end());
    const { port } = await listenForTest(server);
    const check = checkOf(port, settingsOf(), { via });
    expect(await probe(check)).toEqual({ is: 'success' });
    server.setSecureContext(CERTIFICATES.expired);
    expect(await probe(check)).toMatchObject({ is: 'failure' });
  });

  it.each<[string, ServerOptions, Partial<CheckTls>, string]>([
    ['has expired', CERTIFICATES.expired, {}, 'certificate expired'],
    [
      'is of another name',
      CERTIFICATES.ofAnotherName,
      {},
      'certificate is not valid for web-1.example.ts.net',
    ],
    [
      'is of another name than an address',
      CERTIFICATES.valid,
      { serverName: '127.0.0.1' },
      'certificate is not valid for 127.0.0.1',
    ],
    [
      'is of another CA',
      CERTIFICATES.valid,
      { ca: OTHER_AUTHORITY.ca },
      'certificate is signed by an unknown authority',
    ],
    [
      'is of no public CA',
      CERTIFICATES.valid,
      { ca: undefined },
      'certificate is signed by an unknown authority',
    ],
  ])('fails where the certificate %s, but not without verification', async (_how, server, tls, error) => {
    const { probe } = await startProbing();
    const { port } = await startHttpsService(server);
    expect(await probe(checkOf(port, settingsOf(tls), { via }))).toMatchObject({ is: 'failure', error });
    const careless = settingsOf({ ...tls, insecureSkipVerify: true });
    expect(await probe(checkOf(port, careless, { via }))).toEqual({ is: 'success' });
  });

  it('fails where the versions of TLS differ', async () => {
    const { probe } = await startProbing();
    const { port } = await startHttpsService({ ...CERTIFICATES.valid, maxVersion: 'TLSv1.2' });
    expect(await probe(checkOf(port, settingsOf({ minVersion: '1.2' }), { via }))).toEqual({ is: 'success' });
    expect(await probe(checkOf(port, settingsOf({ minVersion: '1.3' }), { via }))).toMatchObject({
      is: 'failure',
      error: 'no TLS version in common',
    });
  });

  it('fails where the service speaks HTTP without TLS', async () => {
    const { probe } = await startProbing();
    const { port } = await startHttpService((_request, response) => void response.end());
    expect(await probe(checkOf(port, settingsOf(), { via }))).toMatchObject({
      is: 'failure',
      error: 'response is not TLS',
    });
  });

  it('fails where the service closes the connection inside the handshake', async () => {
    const { probe } = await startProbing();
    const { port } = await startTcpService(socket => void socket.once('data', () => socket.end()));
    expect(await probe(checkOf(port, settingsOf(), { via }))).toMatchObject({
      is: 'failure',
      error: 'connection closed',
    });
  });

  it('fails where the server requires a client certificate', async () => {
    const { probe } = await startProbing();
    const options = { ...CERTIFICATES.valid, requestCert: true, ca: OTHER_AUTHORITY.ca };
    const { port } = await listenForTest(createTlsServer(options, socket => void socket.end()));
    expect(await probe(checkOf(port, settingsOf(), { via }))).toMatchObject({ is: 'failure' });
  });
});
