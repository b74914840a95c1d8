import { once } from 'node:events';
import { Agent, get, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { serve } from '../../src/telemetry/http.ts';
import type { Listener, RunningServers } from '../../src/telemetry/http.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { metricsRoutes } from '../../src/telemetry/registry.ts';
import { controllerMetrics } from '../../src/telemetry/metrics.ts';
import { createReadiness, healthRoutes } from '../../src/telemetry/readiness.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import { plainText } from '../../src/telemetry/http.ts';
import type { Route } from '../../src/telemetry/http.ts';
import { SettingError } from '../../src/telemetry/setting-error.ts';
import { parseExposition } from '../support/telemetry/exposition.ts';
import { exchange, statusesIn } from '../support/telemetry/raw-http.ts';

const running: RunningServers[] = [];
const logged: string[] = [];
const log = createLog({ level: 'debug', to: { write: line => void logged.push(line) } });

afterEach(async () => {
  await Promise.all(running.splice(0).map(servers => servers.close()));
  logged.length = 0;
});

const LOOPBACK = { host: '127.0.0.1', port: 0 };

async function started(...listeners: readonly Listener[]) {
  const servers = await serve(listeners, log);
  running.push(servers);
  return servers;
}

async function startedWith(routes: readonly Route[]) {
  const servers = await started({ setting: 'METRICS_ADDRESS', address: LOOPBACK, routes });
  const port = servers.ports[0] ?? 0;
  return { port, url: `http://127.0.0.1:${port}`, close: () => servers.close() };
}

const hello: Route = { path: '/hello', handle: () => plainText(200, 'hello') };

/** A route whose response the test triggers, and which records whether the client is still connected. */
function slow() {
  const { promise: requested, resolve: isRequested } = withResolvers<AbortSignal>();
  const { promise: answered, resolve: answer } = withResolvers<undefined>();
  const route: Route = {
    path: '/slow',
    handle: async ({ signal }) => {
      isRequested(signal);
      await Promise.race([answered, once(signal, 'abort').then(() => signal.throwIfAborted())]);
      return plainText(200, 'at last');
    },
  };
  return { route, requested, answer: () => answer(undefined) };
}

function withResolvers<T>() {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>(given => (resolve = given));
  return { promise, resolve };
}

describe('/metrics', () => {
  it('is answered as Prometheus reads it', async () => {
    const metrics = createRegistry({
      metrics: controllerMetrics,
      version: '1.2.3',
      known: { controller: ['a'] },
    });
    const { url } = await startedWith(metricsRoutes(metrics));
    const response = await fetch(`${url}/metrics`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(
      parseExposition(await response.text()).get('controller_runtime_reconcile_total')?.series,
    ).toHaveLength(4);
  });
});

describe('health', () => {
  async function responseOf(path: string, prepare: (readiness: ReturnType<typeof createReadiness>) => void) {
    const readiness = createReadiness();
    prepare(readiness);
    const { url } = await startedWith(healthRoutes(readiness));
    const response = await fetch(`${url}${path}`);
    return [response.status, await response.text()];
  }

  const fine = () => undefined;

  it.each([
    ['/healthz', 200, 'ok'],
    ['/livez', 200, 'ok'],
    ['/livez?verbose', 200, '[+]ping ok\nlivez check passed\n'],
    ['/healthz?verbose', 200, '[+]ping ok\nhealthz check passed\n'],
    ['/readyz', 200, 'ok'],
    ['/readyz?verbose=1', 200, '[+]resources ok\n[+]leader ok\nreadyz check passed\n'],
  ])('%s is answered with %s when all checks pass', async (path, status, body) => {
    const answer = await responseOf(path, readiness => {
      readiness.add('resources', fine);
      readiness.add('leader', fine);
    });
    expect(answer).toEqual([status, body]);
  });

  it('is unready while one check fails, and reports which and why', async () => {
    const answer = await responseOf('/readyz', readiness => {
      readiness.add('resources', () => 'the first list is not complete');
      readiness.add('leader', fine);
    });
    const lines = [
      '[-]resources failed: the first list is not complete',
      '[+]leader ok',
      'readyz check failed',
      '',
    ];
    expect(answer).toEqual([503, lines.join('\n')]);
  });

  it('is alive although nothing is ready', async () => {
    const answer = await responseOf('/healthz', readiness => {
      readiness.add('resources', () => 'never');
      readiness.stop();
    });
    expect(answer).toEqual([200, 'ok']);
  });

  it('is not ready once the process stops, even if its checks pass', async () => {
    const answer = await responseOf('/readyz', readiness => {
      readiness.add('resources', fine);
      readiness.stop();
      readiness.add('late', fine);
    });
    expect(answer).toEqual([
      503,
      '[+]resources ok\n[+]late ok\n[-]stop failed: the process is stopping\nreadyz check failed\n',
    ]);
  });

  it('is not ready where a check itself fails, without publishing why', async () => {
    const answer = await responseOf('/readyz', readiness => {
      readiness.add('resources', () => {
        throw new Error('secret detail');
      });
    });
    expect(answer).toEqual([503, '[-]resources failed: the check itself failed\nreadyz check failed\n']);
  });

  it.each(['/livez', '/healthz', '/readyz', '/readyz?verbose'])(
    'keeps no connection that requested %s, so that all who keep theirs cannot starve a probe',
    async path => {
      const { url } = await startedWith(healthRoutes(createReadiness()));
      const agent = new Agent({ keepAlive: true });
      const askAndKeep = async () => {
        const [response] = (await once(get(`${url}${path}`, { agent }), 'response')) as [IncomingMessage];
        const ended = once(response.socket, 'close');
        await text(response);
        await ended;
        return [response.statusCode, response.headers.connection];
      };
      const answers = await Promise.all(Array.from({ length: 300 }, askAndKeep));
      expect(answers).toEqual(Array(300).fill([200, 'close']));
      expect((await fetch(`${url}${path}`)).status).toBe(200);
      agent.destroy();
    },
  );

  it('removes a part that has ended', async () => {
    const answer = await responseOf('/readyz', readiness => readiness.add('resources', () => 'gone')());
    expect(answer).toEqual([200, 'ok']);
  });
});

describe('a server', () => {
  it('answers HEAD without a body', async () => {
    const { url } = await startedWith([hello]);
    const response = await fetch(`${url}/hello`, { method: 'HEAD' });
    expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([
      200,
      '5',
      '',
    ]);
  });

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('refuses %s', async method => {
    const { url } = await startedWith([hello]);
    const response = await fetch(`${url}/hello`, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('lists the paths in the response to an unknown one', async () => {
    const { url } = await startedWith([hello]);
    const response = await fetch(`${url}/nothing`);
    expect([response.status, await response.text()]).toEqual([404, 'unknown path; the paths are /hello\n']);
  });

  it('logs why a request failed, and responds only that it did', async () => {
    const answer = () => Promise.reject(new Error('the reason'));
    const { url } = await startedWith([{ path: '/broken', handle: answer }]);
    const response = await fetch(`${url}/broken?a=b`);
    const body = await response.text();
    expect([response.status, body]).toEqual([500, 'internal error; see the log of the process\n']);
    expect(logged.join('')).toContain('the reason');
    expect(logged).toHaveLength(1);
  });

  it('shares an address that several settings name', async () => {
    const settings = ['METRICS_ADDRESS', 'HEALTH_ADDRESS'];
    const listeners = settings.map((setting, index) => ({
      setting,
      address: LOOPBACK,
      routes: [{ ...hello, path: `/${index}` }],
    }));
    const { ports } = await started(...listeners);
    expect(ports[0]).toBe(ports[1]);
    for (const path of ['/0', '/1']) {
      expect((await fetch(`http://127.0.0.1:${ports[0] ?? 0}${path}`)).status).toBe(200);
    }
  });

  it('has only the routes of its address', async () => {
    const { ports } = await started(
      { setting: 'METRICS_ADDRESS', address: LOOPBACK, routes: [{ ...hello, path: '/a' }] },
      {
        setting: 'HEALTH_ADDRESS',
        address: { host: 'localhost', port: 0 },
        routes: [{ ...hello, path: '/b' }],
      },
    );
    const statuses = await Promise.all(
      ports.map(async port => (await fetch(`http://localhost:${port}/a`)).status),
    );
    expect(statuses).toEqual([200, 404]);
  });

  it('whose address is taken fails by name, and leaves none of the others behind', async () => {
    const taken = await startedWith([hello]);
    const free = await startedWith([hello]);
    await free.close();
    const attempt = serve(
      [
        { setting: 'METRICS_ADDRESS', address: { host: '127.0.0.1', port: free.port }, routes: [hello] },
        { setting: 'HEALTH_ADDRESS', address: { host: '127.0.0.1', port: taken.port }, routes: [hello] },
      ],
      log,
    );
    const message = `HEALTH_ADDRESS: cannot listen on 127.0.0.1:${taken.port}: EADDRINUSE`;
    await expect(attempt).rejects.toThrow(message);
    await expect(attempt).rejects.toBeInstanceOf(SettingError);
    await expect(fetch(free.url)).rejects.toThrow();
  });
});

describe('a server under attack', () => {
  it.each<[string, readonly string[], readonly number[]]>([
    ['garbage', ['\x00\x01\x02\r\n\r\n'], [400]],
    ['garbage behind a request', ['GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGARBAGE\r\n\r\n'], [400]],
    ['huge headers', [`GET /hello HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(100_000)}\r\n\r\n`], [431]],
    ['a huge path', [`GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: a\r\n\r\n`], [431]],
    [
      'two lengths',
      ['GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
      [400],
    ],
    ['a body in a GET', [`GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc`], [200]],
    [
      'a length and chunks',
      ['GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
      [400],
    ],
    [
      'a huge body',
      ['POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999\r\n\r\n', 'a'.repeat(200_000)],
      [405],
    ],
    ['no host', ['GET /hello HTTP/1.1\r\n\r\n'], [400]],
    ['a tunnel', ['CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n'], []],
    [
      'strange paths',
      ['//', '*', 'http://[', '/../hello', '/hello%', '/hello?%zz&&=', 'http://a/hello']
        .map(path => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
        .concat('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
      [404, 404, 404, 404, 404, 200, 404, 404],
    ],
  ])('answers %s, closes the connection, and serves others', async (_what, parts, expected) => {
    const { port, url } = await startedWith([hello]);
    expect(statusesIn(await exchange(port, ...parts))).toEqual(expected);
    expect((await fetch(`${url}/hello`)).status).toBe(200);
  });

  it('closes connections with slow or missing headers, and serves others at the same time', async () => {
    const { port, url } = await startedWith([hello]);
    const slowly = Array.from({ length: 50 }, (_, index) =>
      exchange(port, ...(index % 2 ? [] : ['GET /hello HTTP/1.1\r\nX: '])),
    );
    expect((await fetch(`${url}/hello`)).status).toBe(200);
    const received = await Promise.all(slowly);
    expect(received.flatMap(statusesIn)).toEqual(received.map(() => 408));
  });

  it('answers a request that starts while it stops, for the last time', async () => {
    const { route, requested } = slow();
    const { url, close } = await startedWith([route]);
    const { port } = new URL(url);
    const socket = connect(Number(port), '127.0.0.1');
    const received = text(socket);
    socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
    await requested;
    await close();
    expect(statusesIn(await received)[0]).toBe(503);
  });

  it('notices a client that disconnects before the response', async () => {
    const { route, requested } = slow();
    const { url } = await startedWith([route]);
    const request = get(`${url}/slow`);
    request.on('error', () => undefined);
    const signal = await requested;
    request.destroy();
    if (!signal.aborted) await once(signal, 'abort');
    expect(signal.aborted).toBe(true);
    expect(logged).toEqual([]);
  });
});

describe('closing', () => {
  it('ends connections that are kept alive', async () => {
    const { url, close } = await startedWith([hello]);
    const agent = new Agent({ keepAlive: true });
    const request = get(`${url}/hello`, { agent });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const ended = once(response.socket, 'close');
    expect(await text(response)).toBe('hello');
    await close();
    await ended;
    await expect(fetch(url)).rejects.toThrow();
    agent.destroy();
  });

  it('closes connections without any request', async () => {
    const { port, close } = await startedWith([hello]);
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    const ended = once(socket, 'close');
    await Promise.all([close(), ended]);
    expect(socket.destroyed).toBe(true);
  });

  it('aborts a slow response when the process stops', async () => {
    const { route, requested } = slow();
    const { url, close } = await startedWith([route]);
    const response = fetch(`${url}/slow`);
    await requested;
    await close();
    expect([(await response).status, await (await response).text()]).toEqual([
      503,
      'the process is stopping\n',
    ]);
    expect(logged).toEqual([]);
  });

  it('finishes a response in progress', async () => {
    const { promise: requested, resolve: isRequested } = withResolvers<undefined>();
    const answer = async () => {
      isRequested(undefined);
      await wait(50);
      return plainText(200, 'at last');
    };
    const { url, close } = await startedWith([{ path: '/soon', handle: answer }]);
    const response = fetch(`${url}/soon`);
    await requested;
    await close();
    expect([(await response).status, (await response).headers.get('connection')]).toEqual([200, 'close']);
  });

  it('does not wait for an answer that never comes', async () => {
    const { promise: requested, resolve: isRequested } = withResolvers<undefined>();
    const answer = () => {
      isRequested(undefined);
      return new Promise<never>(() => undefined);
    };
    const { url, close } = await startedWith([{ path: '/never', handle: answer }]);
    const pending = request(`${url}/never`).end();
    const failed = once(pending, 'error');
    await requested;
    await close();
    await expect(failed).resolves.toMatchObject([{ code: 'ECONNRESET' }]);
  });

  it('can be called twice', async () => {
    const { close } = await startedWith([hello]);
    await expect(Promise.all([close(), close()])).resolves.toEqual([undefined, undefined]);
  });
});
