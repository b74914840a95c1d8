import { describe, expect, it } from 'vitest';
import type { IncomingMessage, RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { forward, hang, reset, respond, send } from '../support/health/member.ts';
import type { OnConnect } from '../support/health/member.ts';
import { checkOf, httpSettings, startProbing } from '../support/health/probing.ts';
import { closedPort, startHttpService, startTcpService } from '../support/health/services.ts';

const SUCCESS = { is: 'success' };
const failure = (error: string) => ({ is: 'failure', error, code: expect.any(String) as string });
const unknown = (why: string) => ({ is: 'unknown', why });

/** Responds with a status and nothing else. */
const status =
  (code: number): RequestListener =>
  (_request, response) =>
    void response.writeHead(code).end();

describe('an HTTP check through a mesh pod', () => {
  it('sends one GET to the address and port of the endpoint, with the host and headers of the check', async () => {
    const { member, probe } = await startProbing();
    const requests: IncomingMessage[] = [];
    const service = await startHttpService((request, response) => {
      requests.push(request);
      response.end('well');
    });
    const settings = httpSettings({ path: '/ready?deep=1', headers: [['Authorization', 'Bearer t']] });
    expect(await probe(checkOf(service.port, settings))).toEqual(SUCCESS);
    expect(member.connects).toEqual([`127.0.0.1:${service.port}`]);
    expect(requests.map(({ method, url }) => `${method} ${url}`)).toEqual(['GET /ready?deep=1']);
    expect(requests[0]?.headers).toEqual({
      host: 'web.example.ts.net',
      'user-agent': 'mesh-gateway-health-check',
      connection: 'keep-alive',
      authorization: 'Bearer t',
    });
  });

  it.each([
    { responds: 204, expects: 204, result: SUCCESS },
    { responds: 503, expects: 200, result: failure('got 503, expected 200') },
    { responds: 200, expects: 401, result: failure('got 200, expected 401') },
    { responds: 302, expects: 200, result: failure('got 302, expected 200') },
  ])('that expects $expects and gets $responds is $result.is', async ({ responds, expects, result }) => {
    const { probe } = await startProbing();
    const { port, connections } = await startHttpService(status(responds));
    expect(await probe(checkOf(port, httpSettings({ expectedStatus: expects })))).toEqual(result);
    expect(connections()).toBe(1);
  });

  it('closes the connection, so that no port of the service is left in TIME_WAIT', async () => {
    const { probe } = await startProbing();
    let isClosedByService: Promise<boolean> | undefined;
    const { port } = await startHttpService(({ socket }, response) => {
      isClosedByService = new Promise(resolve => {
        socket.prependOnceListener('end', () => resolve(socket.writableEnded));
        socket.once('close', () => resolve(true));
      });
      response.end('well');
    });
    expect(await probe(checkOf(port, httpSettings(), { via: { is: 'direct' } }))).toEqual(SUCCESS);
    expect(await isClosedByService).toBe(false);
  });

  it('succeeds by the headers alone, while the body is endless', async () => {
    const { probe } = await startProbing();
    const { port } = await startHttpService((_request, response) => {
      const write = () => response.write(Buffer.alloc(65_536)) && setImmediate(write);
      response.on('drain', write);
      write();
    });
    expect(await probe(checkOf(port, httpSettings()))).toEqual(SUCCESS);
  });

  it('tries the addresses of the endpoint in their order', async () => {
    const { member, probe } = await startProbing();
    const { port } = await startHttpService(status(200));
    const target = { addresses: ['127.255.255.1', '127.0.0.1'], port };
    expect(await probe(checkOf(port, httpSettings(), { target }))).toEqual(SUCCESS);
    expect(member.connects).toEqual([`127.255.255.1:${port}`, `127.0.0.1:${port}`]);
  });
});

/** Services that respond wrongly, and the error of the check. */
const HOSTILE: Readonly<
  Record<string, { readonly serve: (socket: Socket) => void; readonly error: string }>
> = {
  'closes the connection': { serve: socket => socket.end(), error: 'connection closed' },
  'resets the connection': { serve: socket => socket.resetAndDestroy(), error: 'connection closed' },
  'closes it inside the headers': {
    serve: socket => socket.end('HTTP/1.1 200 OK\r\nx: y'),
    error: 'connection closed',
  },
  'responds with what is not HTTP': {
    serve: socket => socket.write('220 smtp.example.com ESMTP\r\n'),
    error: 'response is not HTTP',
  },
  'responds with TLS': {
    serve: socket => socket.write(Buffer.from([21, 3, 3, 0, 2, 2, 70])),
    error: 'response is not HTTP',
  },
  'sends one endless header': {
    serve: socket => flood(socket, 'HTTP/1.1 200 OK\r\nx: ', 'y'.repeat(4096)),
    error: 'response headers are too large',
  },
  'sends endless headers': {
    serve: socket => flood(socket, 'HTTP/1.1 200 OK\r\n', 'x: y\r\n'.repeat(512)),
    error: 'response headers are too large',
  },
  'switches protocols': {
    serve: socket =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    error: 'got 101, expected 200',
  },
  'has two lengths': {
    serve: socket => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n'),
    error: 'response is not HTTP',
  },
};

function flood(socket: Socket, first: string, then: string): void {
  const write = () => socket.writable && socket.write(then) && setImmediate(write);
  socket.on('drain', write);
  socket.write(first);
  write();
}

describe('an HTTP check of a service that', () => {
  it.each(Object.entries(HOSTILE))('%s fails', async (_what, { serve, error }) => {
    const { probe } = await startProbing();
    const { port } = await startTcpService(socket => void socket.once('data', () => serve(socket)));
    expect(await probe(checkOf(port, httpSettings()))).toEqual(failure(error));
  });

  it.each<[string, (socket: Socket) => void]>([
    ['does not respond', () => undefined],
    [
      'sends informational responses for ever',
      socket => flood(socket, '', 'HTTP/1.1 103 Early Hints\r\n\r\n'),
    ],
    ['sends its headers byte by byte', socket => void socket.write('H')],
  ])('%s fails at the timeout of the whole check', async (_what, serve) => {
    const { probeUntilTimeout } = await startProbing();
    let isServed = false;
    const { port } = await startTcpService(
      socket =>
        void socket.once('data', () => {
          serve(socket);
          isServed = true;
        }),
    );
    const result = await probeUntilTimeout(checkOf(port, httpSettings()), () => isServed);
    expect(result).toEqual(failure('timeout after 10s'));
  });

  it('nothing listens for fails', async () => {
    const { probe } = await startProbing();
    expect(await probe(checkOf(await closedPort(), httpSettings()))).toEqual(failure('connection refused'));
  });
});

describe('a check whose settings are not valid HTTP', () => {
  it.each([
    ['header', httpSettings({ headers: [['authorization', 'secret\r\nx: y']] })],
    ['path', httpSettings({ path: '/a b' })],
  ])('in a %s fails without quoting it', async (_where, settings) => {
    const { probe } = await startProbing();
    const { port } = await startHttpService(status(200));
    expect(await probe(checkOf(port, settings))).toEqual(
      failure('a header or the path of the check has invalid characters'),
    );
  });
});

/** What a proxy does with CONNECT, and the result while its member is running. */
const FAULTS: Readonly<Record<string, { readonly onConnect: OnConnect; readonly result: object }>> = {
  'responds with 500 and a reason': {
    onConnect: respond(
      'HTTP/1.1 500 X\r\nTailscale-Connect-Error: dial tcp: lookup web: no such host\r\n\r\n',
    ),
    result: failure('no such name'),
  },
  'responds with 500 and any text': {
    onConnect: respond(
      `HTTP/1.1 500 X\r\nTailscale-Connect-Error: ${'é'.repeat(9)}${'x'.repeat(999)}\r\n\r\n`,
    ),
    result: failure(`the proxy could not connect: ${'x'.repeat(227)}`),
  },
  'responds with 500 and a body': {
    onConnect: send('HTTP/1.1 500 X\r\ncontent-length: 9\r\n\r\nx'),
    result: failure('the proxy could not connect'),
  },
  'responds with 403': {
    onConnect: respond('HTTP/1.1 403 X\r\n\r\n'),
    result: unknown('meshd-0: the proxy responded to CONNECT with 403'),
  },
  'responds with 100': {
    onConnect: send('HTTP/1.1 100 Continue\r\n\r\n'),
    result: unknown('meshd-0: the proxy responded to CONNECT with 100'),
  },
  'responds with what is not HTTP': {
    onConnect: send('\x05\x00'),
    result: unknown('meshd-0: the proxy did not respond: response is not HTTP'),
  },
  'responds with endless headers': {
    onConnect: (_authority, socket) => flood(socket, 'HTTP/1.1 200 OK\r\nx: ', 'y'.repeat(4096)),
    result: unknown('meshd-0: the proxy did not respond: response headers are too large'),
  },
  'resets the connection': {
    onConnect: reset,
    result: unknown('meshd-0: the proxy did not respond: connection closed'),
  },
  'resets the tunnel': {
    onConnect: (authority, socket, early) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n', () => reset(authority, socket, early));
    },
    result: failure('connection closed'),
  },
  'sends a body after the headers': {
    onConnect: send('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'),
    result: failure('response is not HTTP'),
  },
};

describe('a check through a proxy that', () => {
  it.each(Object.entries(FAULTS))('%s', async (_what, { onConnect, result }) => {
    const { member, probe } = await startProbing();
    member.onConnect = onConnect;
    expect(await probe(checkOf(80, httpSettings()))).toEqual(result);
  });

  it('does not respond to CONNECT fails at the timeout, if the member is running', async () => {
    const { member, probeUntilTimeout } = await startProbing();
    member.onConnect = hang;
    const result = await probeUntilTimeout(checkOf(80, httpSettings()), () => member.connects.length > 0);
    expect(result).toEqual(failure('timeout after 10s'));
  });

  it('has ended is unknown', async () => {
    const { member, probe } = await startProbing();
    await member.close();
    const why = 'meshd-0: the proxy did not respond: connection refused';
    expect(await probe(checkOf(80, httpSettings()))).toEqual(unknown(why));
  });
});

describe('a check that was not answered', () => {
  it.each([
    ['meshd is not on a tailnet', 503],
    ['meshd fails', 500],
  ])('is unknown while %s', async (_why, meshd) => {
    const { member, probe } = await startProbing();
    member.health.meshd = meshd;
    const result = await probe(checkOf(await closedPort(), httpSettings()));
    expect(result).toEqual(unknown('meshd-0 is not running: connection refused'));
  });

  it('is unknown while the health of meshd is silent for a second', async () => {
    const { member, clock, probe } = await startProbing();
    member.health.meshd = undefined;
    const result = probe(checkOf(await closedPort(), httpSettings()));
    while (member.health.requests.length === 0) await new Promise(setImmediate);
    await clock.advance(1000);
    expect(await result).toEqual(unknown('meshd-0 is not running: connection refused'));
  });

  it('is a failure by the proxy alone where others run it', async () => {
    const { member, probe } = await startProbing();
    const { probe: probeExternal } = await startProbing([{ ...member, pod: undefined, name: 'proxy' }]);
    member.health.meshd = 503;
    const check = checkOf(await closedPort(), httpSettings());
    expect(await probe(check)).toMatchObject({ is: 'unknown' });
    expect(await probeExternal(check)).toEqual(failure('connection refused'));
  });

  it('does not check the member where the endpoint did answer', async () => {
    const { member, probe } = await startProbing();
    const { port } = await startHttpService(status(503));
    await probe(checkOf(port, httpSettings()));
    expect(member.health.requests).toEqual([]);
  });

  it('shares the check of the member with others that come within 100 ms, and it begins after them', async () => {
    const { member, clock, probe } = await startProbing();
    const check = checkOf(await closedPort(), httpSettings());
    expect(await probe(check)).toEqual(failure('connection refused'));
    member.health.meshd = 503;
    const results: unknown[] = [];
    for (let count = 0; count < 9; count++) void probe(check).then(({ is }) => results.push(is));
    while (member.connects.length < 10) await new Promise(setImmediate);
    while (results.length < 9) await clock.advance(100);
    expect(new Set(results)).toEqual(new Set(['unknown']));
    expect(member.health.requests.length).toBeLessThan(5);
  });
});

describe('the members of a pool', () => {
  it('are taken in turn', async () => {
    const first = await startProbing();
    const second = await startProbing();
    const { probe } = await startProbing([first.member, second.member]);
    const { port } = await startHttpService(status(200));
    for (let count = 0; count < 4; count++) await probe(checkOf(port, httpSettings()));
    expect([first, second].map(({ member }) => member.connects.length)).toEqual([2, 2]);
  });

  it('may be none, which is unknown', async () => {
    const { probe } = await startProbing([]);
    expect(await probe(checkOf(80, httpSettings()))).toEqual(unknown('no mesh pod is ready'));
  });
});

describe('an abort', () => {
  it.each<[string, OnConnect]>([
    ['waits for the proxy', hang],
    ['waits for the service', forward],
  ])('ends a check at once that %s', async (_what, onConnect) => {
    const { member, probe } = await startProbing();
    const { port, connections } = await startTcpService();
    member.onConnect = onConnect;
    const controller = new AbortController();
    const result = probe(checkOf(port, httpSettings()), controller.signal);
    const isWaiting = () => (onConnect === hang ? member.connects.length : connections()) > 0;
    while (!isWaiting()) await new Promise(setImmediate);
    controller.abort();
    expect(await result).toEqual(unknown('the check was aborted'));
  });

  it('before the check begins opens no connection', async () => {
    const { member, probe } = await startProbing();
    expect(await probe(checkOf(80, httpSettings()), AbortSignal.abort())).toMatchObject({ is: 'unknown' });
    expect(member.connects).toEqual([]);
  });
});
