import fc from 'fast-check';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { linesOf } from '../../src/kubernetes/transport/body.ts';
import type { KubeRequest, KubeTransport, Verb } from '../../src/kubernetes/transport/transport.ts';
import { eventually } from '../support/eventually.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { serveWire, WIRES } from '../support/kubernetes/wire-server.ts';
import type { Exchange, Wire, WireServer } from '../support/kubernetes/wire-server.ts';
import { allOf, kubeErrorOf, TOKEN, wireTransport } from '../support/kubernetes/wire-transport.ts';

/** The same texts in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const WATCH: KubeRequest = { verb: 'watch', path: '/watch' };

type Scene = { readonly server: WireServer; readonly transport: KubeTransport };

async function scene(wire: Wire, respond: (exchange: Exchange) => unknown): Promise<Scene> {
  const server = await serveWire(wire, { respond });
  return { server, transport: wireTransport(server.url) };
}

/**
 * The active timer of a client's connection, and the hundredths of a second until it fires: 02 is keepalive. Both
 * ports name it, because an old connection to another server may have the same port of the client.
 */
function timerOf(clientPort: number, serverPort: number): string | undefined {
  const lines = ['tcp', 'tcp6'].flatMap(name => readFileSync(`/proc/net/${name}`, 'utf8').split('\n'));
  const connections = lines.map(line => line.trim().split(/\s+/));
  return connections.find(([, from, to]) => hasPort(from, clientPort) && hasPort(to, serverPort))?.[5];
}

function hasPort(address: string | undefined, port: number): boolean {
  return Number.parseInt(address?.split(':')[1] ?? '', 16) === port;
}

/** Responds to requests, and starts streams. */
function serveBoth(each: Exchange): void {
  if (each.path.startsWith('/watch')) {
    each.begin(200);
    each.write('{"n":0}\n');
  } else {
    each.respond(200, '{}');
  }
}

async function firstOf(transport: KubeTransport, request = WATCH): Promise<AsyncIterator<unknown>> {
  const values = (await transport.stream(request))[Symbol.asyncIterator]();
  expect(await values.next()).toEqual({ done: false, value: { n: 0 } });
  return values;
}

async function rest(values: AsyncIterator<unknown>): Promise<void> {
  for (let next = await values.next(); !next.done; next = await values.next());
}

describe.each(WIRES)('over %s', wire => {
  it.each<readonly [Verb, string]>([
    ['get', 'GET'],
    ['list', 'GET'],
    ['create', 'POST'],
    ['apply', 'PATCH'],
    ['patch', 'PATCH'],
    ['delete', 'DELETE'],
  ])('%s is a %s with path, query, body and credentials', async (verb, method) => {
    const { server, transport } = await scene(wire, each => each.respond(201, '{"kind":"Ä"}'));
    const body = { type: 'application/merge-patch+json', value: { a: ['ü'] } };
    const request = { verb, path: '/apis/a/v1/b', query: { limit: '1', labelSelector: 'a=b,c' }, body };
    expect(await transport.send(request)).toEqual({ kind: 'Ä' });
    const [seen] = server.seen;
    expect(seen).toMatchObject({ method, body: '{"a":["ü"]}' });
    expect(seen?.path).toBe('/apis/a/v1/b?limit=1&labelSelector=a%3Db%2Cc');
    expect(seen?.headers).toMatchObject({
      authorization: `Bearer ${TOKEN}`,
      accept: 'application/json',
      'content-type': 'application/merge-patch+json',
    });
  });

  it('lines arrive one by one, in any chunks', async () => {
    const { transport } = await scene(wire, async each => {
      each.begin(200, { 'content-type': 'application/json;stream=watch' });
      const bytes = Buffer.from('{"a":"ä€😀"}\n\n{"b":\r\n'.replace(':\r', ':1}\r'));
      for (const byte of bytes) {
        each.write(Buffer.of(byte));
        await turn();
      }
      each.end();
    });
    expect(await allOf(await transport.stream(WATCH))).toEqual([{ a: 'ä€😀' }, { b: 1 }]);
  });

  it('a complete response can be read late', async () => {
    const { server, transport } = await scene(wire, each => each.respond(200, '{"n":0}\n'.repeat(100)));
    const followed = await Promise.all(Array.from({ length: 20 }, () => transport.stream(WATCH)));
    await Promise.all(server.seen.map(({ over }) => over));
    for (let count = 0; count < 20; count++) await turn();
    for (const values of followed) expect(await allOf(values)).toHaveLength(100);
  });

  it('a last line without an end fails', async () => {
    const { transport } = await scene(wire, each => each.respond(200, '{"n":0}\n{"n":1}'));
    const error = await kubeErrorOf(rest(await firstOf(transport)));
    expect(error.reason).toBe('Unreachable');
  });

  it('a line over the limit fails before it is complete', async () => {
    const server = await serveWire(wire, {
      respond: each => {
        serveBoth(each);
        const write = () => {
          while (each.write('x'.repeat(1000)));
          setImmediate(write);
        };
        write();
        void each.over.then(() => (each.write = () => false));
      },
    });
    const limits = { lineBytes: 100_000, bodyBytes: 1 };
    const error = await kubeErrorOf(rest(await firstOf(wireTransport(server.url, { limits }))));
    expect([error.reason, error.message]).toEqual([
      'Malformed',
      'watch /watch: a line has more than 100000 bytes',
    ]);
    await server.seen[0]?.over;
  });

  it('a stream that is not read is not buffered without limit, and others continue', async () => {
    let written = 0;
    const { transport } = await scene(wire, each => {
      serveBoth(each);
      const line = `{"x":"${'x'.repeat(10_000)}"}\n`;
      const write = () => {
        if (!each.path.startsWith('/watch') || written > 1e9) return;
        const hasRoom = each.write(line);
        written += line.length;
        if (hasRoom) setImmediate(write);
      };
      write();
    });
    await firstOf(transport);
    await eventually(async () => {
      const before = written;
      for (let count = 0; count < 50; count++) await transport.send({ verb: 'get', path: '/a' });
      expect(written).toBe(before);
    });
    expect(written).toBeLessThan(20e6);
  });

  it('a signal ends a stream, also for the server', async () => {
    const { server, transport } = await scene(wire, serveBoth);
    const stop = new AbortController();
    const values = await firstOf(transport, { ...WATCH, signal: stop.signal });
    const failed = kubeErrorOf(values.next());
    stop.abort();
    expect((await failed).reason).toBe('Aborted');
    await server.seen[0]?.over;
  });

  it('leaving the loop ends a stream', async () => {
    const { server, transport } = await scene(wire, serveBoth);
    const values = await firstOf(transport);
    expect(await values.return?.()).toEqual({ done: true, value: undefined });
    await server.seen[0]?.over;
  });

  it('a signal ends a request at any time', async () => {
    const { server, transport } = await scene(wire, () => undefined);
    const [before, during] = [AbortSignal.abort(), new AbortController()];
    expect((await kubeErrorOf(transport.send({ verb: 'get', path: '/', signal: before }))).reason).toBe(
      'Aborted',
    );
    expect(server.opened()).toBe(0);
    const failed = kubeErrorOf(transport.send({ verb: 'get', path: '/', signal: during.signal }));
    await eventually(() => expect(server.seen).toHaveLength(1));
    during.abort();
    expect((await failed).reason).toBe('Aborted');
    await server.seen[0]?.over;
  });

  it('a signal ends a queued request at once', async () => {
    const { server, transport } = await scene(wire, () => undefined);
    const over = new AbortController();
    const others = Array.from({ length: 4 }, () => kubeErrorOf(transport.send({ verb: 'get', path: '/' })));
    await eventually(() => expect(server.seen).toHaveLength(4));
    const failed = kubeErrorOf(transport.send({ verb: 'get', path: '/', signal: over.signal }));
    await new Promise(setImmediate);
    over.abort();
    expect((await failed).reason).toBe('Aborted');
    await transport.close();
    expect((await Promise.all(others)).map(({ reason }) => reason)).toEqual(Array(4).fill('Aborted'));
  });

  it('an aborted request does not hold the only connection', async () => {
    const server = await serveWire(wire, {
      respond: each => (each.number === 0 ? undefined : each.respond(200, '{}')),
    });
    const transport = wireTransport(server.url, { maxConnections: 1 });
    const stop = new AbortController();
    const failed = kubeErrorOf(transport.send({ verb: 'get', path: '/', signal: stop.signal }));
    await eventually(() => expect(server.seen).toHaveLength(1));
    stop.abort();
    expect((await failed).reason).toBe('Aborted');
    await Promise.all(Array.from({ length: 3 }, () => transport.send({ verb: 'get', path: '/' })));
    expect(server.opened()).toBe(2);
  });

  it('a stream may be silent for longer than the timeout of requests', async () => {
    const clock = new VirtualClock();
    const server = await serveWire(wire, { respond: serveBoth });
    const values = await firstOf(wireTransport(server.url, { clock, timeoutMs: 1000 }));
    await clock.advance(10_000);
    server.seen[0]?.write('{"n":1}\n');
    expect(await values.next()).toEqual({ done: false, value: { n: 1 } });
  });

  it.runIf(process.platform === 'linux')('a stream has TCP keepalives', async () => {
    const { server, transport } = await scene(wire, serveBoth);
    await firstOf(transport);
    const [{ remotePort = 0, localPort = 0 } = {}] = server.sockets;
    await eventually(() => expect(timerOf(remotePort, localPort)).toMatch(/^02:0000(?!0000)/));
  });

  it('closing ends all requests and connections, and later requests fail', async () => {
    const { server, transport } = await scene(wire, each => {
      if (each.path !== '/silent') serveBoth(each);
    });
    const values = await firstOf(transport);
    const failed = [
      kubeErrorOf(values.next()),
      kubeErrorOf(transport.send({ verb: 'get', path: '/silent' })),
      kubeErrorOf(transport.stream({ verb: 'watch', path: '/silent' })),
    ];
    await eventually(() => expect(server.seen).toHaveLength(3));
    await transport.close();
    for (const error of await Promise.all(failed)) expect(error.reason).toBe('Aborted');
    await eventually(() => expect(server.sockets.size).toBe(0));
    expect((await kubeErrorOf(transport.send({ verb: 'get', path: '/' }))).reason).toBe('Aborted');
    expect(server.seen).toHaveLength(3);
  });

  it('12 streams and 200 requests at once share few connections', async () => {
    const { server, transport } = await scene(wire, serveBoth);
    const followed = Array.from({ length: 12 }, () => firstOf(transport));
    const pending = Array.from({ length: 200 }, () => transport.send({ verb: 'get', path: '/a' }));
    expect(await Promise.all(pending)).toHaveLength(200);
    await Promise.all(followed);
    // One for each stream, and 4 for the rest.
    expect(server.opened()).toBe(16);
  });

  it('when all connections die, each stream fails, and the next request succeeds', async () => {
    const { server, transport } = await scene(wire, serveBoth);
    const followed = await Promise.all(Array.from({ length: 12 }, () => firstOf(transport)));
    const failed = followed.map(values => kubeErrorOf(rest(values)));
    server.killAll();
    for (const error of await Promise.all(failed)) expect(error.reason).toBe('Unreachable');
    expect(await transport.send({ verb: 'get', path: '/a' })).toEqual({});
    await firstOf(transport);
  });

  it('reads are sent again when a reused connection died', async () => {
    const { server, transport } = await scene(wire, each => {
      if (each.number === 1) each.reset();
      else each.respond(200, `{"number":${each.number}}`);
    });
    await transport.send({ verb: 'get', path: '/a' });
    expect(await transport.send({ verb: 'list', path: '/a' })).toEqual({ number: 2 });
    expect(server.seen).toHaveLength(3);
  });

  it('writes are not sent again when a reused connection died', async () => {
    const { server, transport } = await scene(wire, each => {
      if (each.number === 1) each.reset();
      else each.respond(200, '{}');
    });
    await transport.send({ verb: 'get', path: '/a' });
    const error = await kubeErrorOf(transport.send({ verb: 'create', path: '/a' }));
    expect(error.reason).toBe('Unreachable');
    expect(server.seen).toHaveLength(2);
  });

  it('each request is counted by its verb and the code of its response', async () => {
    const counted: unknown[] = [];
    const timed: unknown[] = [];
    const server = await serveWire(wire, {
      respond: each =>
        each.number === 0 ? each.respond(404, '') : each.number === 1 ? each.reset() : serveBoth(each),
    });
    const record = {
      restRequests: (labels: object) => void counted.push(labels),
      restSeconds: ({ verb }: { readonly verb: Verb }, s: number) => void timed.push([verb, s >= 0]),
    };
    const transport = wireTransport(server.url, { record });
    await kubeErrorOf(transport.send({ verb: 'get', path: '/a' }));
    await kubeErrorOf(transport.send({ verb: 'delete', path: '/a' }));
    await firstOf(transport);
    expect(counted).toEqual([
      { verb: 'get', code: '404' },
      { verb: 'delete', code: '<error>' },
      { verb: 'watch', code: '200' },
    ]);
    expect(timed).toEqual([
      ['get', true],
      ['delete', true],
      ['watch', true],
    ]);
  });

  it('a server that is down is Unreachable until it is back', async () => {
    const { server, transport } = await scene(wire, serveBoth);
    await transport.send({ verb: 'get', path: '/a' });
    await server.close();
    expect((await kubeErrorOf(transport.send({ verb: 'get', path: '/a' }))).reason).toBe('Unreachable');
    await serveWire(wire, { port: server.port, respond: serveBoth });
    expect(await transport.send({ verb: 'get', path: '/a' })).toEqual({});
  });

  it.each(['/a b', '/a\r\nb: c', '/ä'])('an invalid path, %j, is refused or encoded', async path => {
    const { server, transport } = await scene(wire, serveBoth);
    await transport.send({ verb: 'get', path }).catch((error: unknown) => error);
    expect(await transport.send({ verb: 'get', path: '/a' })).toEqual({});
    expect(server.seen.map(({ headers }) => headers['b'])).not.toContain('c');
  });
});

it('after close nothing keeps a process alive', async () => {
  const { url } = await serveWire('HTTPS', { respond: serveBoth });
  const program = `
    import { openTransport } from './src/kubernetes/transport/open-transport.ts';
    import { systemClock } from './src/runtime/clock.ts';
    const config = { server: '${url}', tls: { rejectUnauthorized: false }, headers: {} };
    const configSource = { load: () => Promise.resolve(config) };
    const transport = openTransport({ configSource, clock: systemClock, now: () => new Date() });
    await transport.send({ verb: 'get', path: '/a' });
    const values = await transport.stream({ verb: 'watch', path: '/watch' });
    await transport.stream({ verb: 'watch', path: '/watch' });
    const ended = values.next().then(() => values.next()).catch(error => error.reason);
    await transport.close();
    console.log(await ended);`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 100_000 });
  expect(stdout.trim()).toBe('Aborted');
});

describe('lines', () => {
  it('are the same in any chunks of a body', async () => {
    const texts = fc.array(fc.string({ unit: 'binary' }).map(text => text.replaceAll('\n', '')));
    const property = fc.asyncProperty(texts, fc.array(fc.nat(40)), async (lines, cuts) => {
      const whole = Buffer.from(lines.map(line => `${line}\n`).join(''));
      const found: string[] = [];
      for await (const line of linesOf(cut(whole, cuts), 1e6, 'watch')) found.push(line);
      expect(found).toEqual(lines.map(line => Buffer.from(line).toString()));
    });
    await fc.assert(property, { seed, numRuns: 300 });
  });
});

// eslint-disable-next-line @typescript-eslint/require-await
async function* cut(whole: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  let [at, index] = [0, 0];
  while (at < whole.length) {
    const next = at + (cuts[index++] ?? whole.length);
    yield whole.subarray(at, next);
    at = next;
  }
}
