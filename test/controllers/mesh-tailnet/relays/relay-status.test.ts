import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  httpGet,
  parseRelayStatus,
  readRelays,
} from '../../../../src/controllers/mesh-tailnet/relays/relay-status.ts';
import type { HttpGet, RelayPod } from '../../../../src/controllers/mesh-tailnet/relays/relay-status.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const VERSION = '0123456789abcdef';
const MALFORMED = 'the response is not the status of a relay';

describe('the status of a relay', () => {
  it('has a version, and the ports that failed', () => {
    const text = JSON.stringify({ version: VERSION, failed: { 20005: 'EADDRINUSE' }, later: true });
    expect(parseRelayStatus(text)).toEqual({ version: VERSION, failed: new Map([[20_005, 'EADDRINUSE']]) });
  });

  it.each(['see https://evil.example', { toString: 1 }, '', 'A'.repeat(33)])(
    'has no reason that is not a code: %j',
    reason => {
      const text = JSON.stringify({ version: VERSION, failed: { 20005: reason } });
      expect(parseRelayStatus(text).failed.get(20_005)).toBe('unknown error');
    },
  );

  it.each([
    ['no JSON', '<html>'],
    ['empty', ''],
    ['a list', '[]'],
    ['null', 'null'],
    ['without a version', '{"failed":{}}'],
    ['without failed ports', `{"version":"${VERSION}"}`],
    ['with a list of failed ports', `{"version":"${VERSION}","failed":[]}`],
    ['with a longer version', `{"version":"${VERSION}0","failed":{}}`],
    ['with a version of several lines', `{"version":"${VERSION}\\n","failed":{}}`],
    ['with a port that is none', `{"version":"${VERSION}","failed":{"__proto__":"EADDRINUSE"}}`],
    ['nested too deeply', '['.repeat(60_000)],
  ])('is refused where it is %s', (_, text) => {
    expect(() => parseRelayStatus(text)).toThrow(MALFORMED);
  });
});

const [FOUR, SIX] = ['10.0.0.7', 'fd00::7'].map((address, ordinal) => ({
  address,
  uid: `uid-${ordinal}`,
  name: `meshd-example-${ordinal}`,
})) as [RelayPod, RelayPod];

describe('relays', () => {
  const idle = new AbortController().signal;

  it('are read at their addresses, IPv6 in brackets', async () => {
    const urls: string[] = [];
    const get: HttpGet = url => {
      urls.push(url);
      return Promise.resolve(JSON.stringify({ version: VERSION, failed: {} }));
    };
    const deps = { httpGet: get, clock: new VirtualClock() };
    const reports = await readRelays([FOUR, SIX], idle, deps);
    expect(urls).toEqual(['http://10.0.0.7:9003/relay', 'http://[fd00::7]:9003/relay']);
    const response = { version: VERSION, failed: new Map() };
    expect(reports).toEqual([FOUR, SIX].map(pod => ({ pod, response })));
    expect(deps.clock.timers).toBe(0);
  });

  it('are read without a warning of Node, however many there are', async () => {
    const url = await serve((_, response) => response.end(JSON.stringify({ version: VERSION, failed: {} })));
    const warnings: Error[] = [];
    const warn = (warning: Error) => void warnings.push(warning);
    process.on('warning', warn);
    const pods = Array.from({ length: 30 }, () => FOUR);
    const deps = { httpGet: ((_, options) => httpGet(url, options)) as HttpGet, clock: new VirtualClock() };
    const reports = await readRelays(pods, idle, deps);
    // A warning is emitted in the next turn.
    await new Promise(setImmediate);
    process.off('warning', warn);
    expect(reports.every(({ response }) => 'version' in response)).toBe(true);
    expect(warnings).toEqual([]);
  });

  it('that do not respond are given up after a second, all at once', async () => {
    const clock = new VirtualClock();
    const get: HttpGet = (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    const reading = readRelays([FOUR, SIX], idle, { httpGet: get, clock });
    await clock.advance(1000);
    const response = { error: 'no response within 1000 ms' };
    await expect(reading).resolves.toEqual([FOUR, SIX].map(pod => ({ pod, response })));
  });
});

const servers: Server[] = [];
const sockets = new Set<Socket>();

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await Promise.all(servers.splice(0).map(server => once(server.close(), 'close')));
});

async function listen(server: Server): Promise<string> {
  servers.push(server);
  server.on('connection', (socket: Socket) => sockets.add(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/relay`;
}

function serve(listener: RequestListener): Promise<string> {
  return listen(createServer(listener));
}

/** Sends these bytes to each client, whatever it sends. */
function sendRaw(bytes: string, end = true): Promise<string> {
  return listen(
    createTcpServer(socket => {
      socket.on('error', () => undefined);
      socket.write(bytes);
      if (end) socket.end();
      else socket.resume();
    }),
  );
}

describe('a GET request', () => {
  const options = (signal = new AbortController().signal) => ({ signal, maxBytes: 1000 });

  it('returns the body of the response', async () => {
    const url = await serve((_, response) => response.end('übertragen'));
    await expect(httpGet(url, options())).resolves.toBe('übertragen');
  });

  it.each<[string, RequestListener, RegExp]>([
    ['refuses another status', (_, response) => response.writeHead(503).end('{}'), /status 503/],
    [
      'follows no redirect',
      (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      /status 302/,
    ],
    ['refuses a long body', (_, response) => response.end('x'.repeat(1001)), /longer than 1000 bytes/],
    [
      'refuses a body without an end',
      (_, response) => {
        const write = () => void response.write('x'.repeat(500), error => error ?? setImmediate(write));
        write();
      },
      /longer than 1000 bytes/,
    ],
    ['fails where the response is cut off', (_, response) => response.destroy(), /socket hang up|ECONNRESET/],
    [
      'fails where the body is cut off',
      (_, response) => {
        response.writeHead(200, { 'content-length': '500' });
        response.write('{}', () => response.destroy());
      },
      /aborted|ECONNRESET/,
    ],
  ])('%s', async (_, listener, message) => {
    const url = await serve(listener);
    await expect(httpGet(url, options())).rejects.toThrow(message);
  });

  it.each([
    ['is no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n', /Parse Error/],
    ['has long headers', `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(20_000)}`, /Parse Error/],
  ])('fails where the response %s', async (_, bytes, message) => {
    const url = await sendRaw(bytes);
    await expect(httpGet(url, options())).rejects.toThrow(message);
  });

  it('fails with the reason of its signal, also after the headers and after an upgrade', async () => {
    const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n';
    for (const bytes of ['', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{', upgrade]) {
      const url = await sendRaw(bytes, false);
      const given = new AbortController();
      const reading = httpGet(url, options(given.signal));
      await once(servers.at(-1) as Server, 'connection');
      given.abort(new Error('too late'));
      await expect(reading).rejects.toThrow('too late');
    }
  });

  it('fails where nothing listens', async () => {
    const url = await serve(() => undefined);
    await Promise.all(servers.splice(0).map(server => once(server.close(), 'close')));
    await expect(httpGet(url, options())).rejects.toThrow('ECONNREFUSED');
  });
});
