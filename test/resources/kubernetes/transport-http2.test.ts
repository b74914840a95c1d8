import { constants } from 'node:http2';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { KubeRequest, KubeTransport } from '../../../src/resources/kubernetes/transport.ts';
import { eventually } from '../../support/eventually.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { ANSWER, FIRST_REQUEST, serveRaw, SETTINGS } from '../../support/kubernetes/wire-raw.ts';
import { serveWire } from '../../support/kubernetes/wire-server.ts';
import type { Exchange, WireServer } from '../../support/kubernetes/wire-server.ts';
import { kubeErrorOf, wireTransport } from '../../support/kubernetes/wire-transport.ts';

const WATCH: KubeRequest = { verb: 'watch', path: '/watch' };
const READ: KubeRequest = { verb: 'get', path: '/a' };
const WRITE: KubeRequest = { verb: 'create', path: '/a', body: { type: 'application/json', value: {} } };

function serveBoth(each: Exchange): void {
  if (each.path.startsWith('/watch')) {
    each.begin(200);
    each.write('{"n":0}\n');
  } else {
    each.answer(200, '{}');
  }
}

async function scene(
  respond: (exchange: Exchange) => unknown,
  mostStreams?: number,
): Promise<{ readonly server: WireServer; readonly transport: KubeTransport }> {
  const server = await serveWire('HTTP/2', { respond, ...(mostStreams ? { mostStreams } : {}) });
  return { server, transport: wireTransport(server.url) };
}

async function firstOf(transport: KubeTransport): Promise<AsyncIterator<unknown>> {
  const values = (await transport.follow(WATCH))[Symbol.asyncIterator]();
  expect(await values.next()).toEqual({ done: false, value: { n: 0 } });
  return values;
}

describe('a server that says GOAWAY', () => {
  it('between requests gets the next one over another connection', async () => {
    const { server, transport } = await scene(serveBoth);
    await transport.ask(READ);
    for (const session of server.sessions) session.goaway();
    await eventually(async () => {
      expect(await transport.ask(WRITE)).toEqual({});
      expect(server.opened()).toBe(2);
    });
  });

  it('at once before each request still answers all of them', async () => {
    const { server, transport } = await scene(serveBoth);
    for (let count = 0; count < 30; count++) {
      const asked = Array.from({ length: 5 }, () => transport.ask(READ));
      for (const session of server.sessions) session.goaway();
      expect(await Promise.all(asked)).toHaveLength(5);
    }
  });

  it('while something is followed lets it go on, and opens no more than one connection for what comes', async () => {
    const { server, transport } = await scene(serveBoth);
    const values = await firstOf(transport);
    for (const session of server.sessions) session.goaway();
    // The answer to one more request tells that the news is there.
    await transport.ask(READ);
    await transport.ask(READ);
    await transport.ask(READ);
    server.seen[0]?.write('{"n":1}\n');
    expect(await values.next()).toEqual({ done: false, value: { n: 1 } });
    server.seen[0]?.end();
    expect(await values.next()).toEqual({ done: true, value: undefined });
    expect(server.opened()).toBe(2);
  });

  it.each(['reset', 'hangUp'] as const)('and then goes away by %s has not said all', async how => {
    const { server, transport } = await scene(serveBoth);
    const values = await firstOf(transport);
    for (const session of server.sessions) session.goaway();
    await transport.ask(READ);
    server.seen[0]?.[how]();
    expect((await kubeErrorOf(values.next())).reason).toBe('Unreachable');
  });

  it('with an error ends what is followed, and the next request works', async () => {
    const { server, transport } = await scene(serveBoth);
    const failed = kubeErrorOf(firstOf(transport).then(values => values.next()));
    await eventually(() => expect(server.seen).toHaveLength(1));
    for (const session of server.sessions) session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    expect((await failed).reason).toBe('Unreachable');
    expect(await transport.ask(WRITE)).toEqual({});
  });
});

describe('a stream that the server ends', () => {
  it.each([READ, WRITE])('unseen is sent again ($verb)', async request => {
    const { server, transport } = await scene(each =>
      each.number === 0 ? each.closeStream(constants.NGHTTP2_REFUSED_STREAM) : each.answer(200, '{}'),
    );
    expect(await transport.ask(request)).toEqual({});
    expect(server.seen).toHaveLength(2);
  });

  it('unseen twice is Unreachable', async () => {
    const { server, transport } = await scene(each => each.closeStream(constants.NGHTTP2_REFUSED_STREAM));
    expect((await kubeErrorOf(transport.ask(WRITE))).reason).toBe('Unreachable');
    expect(server.seen).toHaveLength(2);
  });

  it.each([constants.NGHTTP2_INTERNAL_ERROR, constants.NGHTTP2_CANCEL, constants.NGHTTP2_REFUSED_STREAM])(
    'in the middle of an answer with code %i is no whole answer',
    async code => {
      const { transport } = await scene(each => {
        each.begin(200);
        each.write('{"n":0}\n');
        setTimeout(() => each.closeStream(code), 10);
      });
      const error = await kubeErrorOf(firstOf(transport).then(values => values.next()));
      expect(error.reason).toBe('Unreachable');
      expect((await kubeErrorOf(transport.ask(READ))).reason).toBe('Unreachable');
    },
  );
});

it('answers that are whole are not reset: servers end connections on which that happens often', async () => {
  const { server, transport } = await scene(serveBoth);
  const body = { type: 'application/json', value: 'x'.repeat(100_000) };
  const asked = Array.from({ length: 100 }, (_, n) => transport.ask(n % 2 === 0 ? READ : { ...WRITE, body }));
  await Promise.all(asked);
  await Promise.all(server.seen.map(({ over }) => over));
  expect(server.seen.map(each => each.endCode())).toEqual(Array(100).fill(constants.NGHTTP2_NO_ERROR));
});

describe('a server that takes few requests at once', () => {
  it('answers more than it takes, and what is followed leaves room for what is asked', async () => {
    let [most, now] = [0, 0];
    const { server, transport } = await scene(each => {
      most = Math.max(most, ++now);
      void each.over.then(() => now--);
      if (each.path.startsWith('/watch')) serveBoth(each);
      else setTimeout(() => each.answer(200, '{}'), 2);
    }, 5);
    await Promise.all(Array.from({ length: 12 }, () => firstOf(transport)));
    const asked = Array.from({ length: 100 }, (_, n) => transport.ask(n % 2 === 0 ? READ : WRITE));
    expect(await Promise.all(asked)).toHaveLength(100);
    expect(server.opened()).toBeLessThanOrEqual(4);
    expect(most).toBeLessThanOrEqual(20);
  });

  it('and is full of what is followed makes the rest wait, until there is room or the time is over', async () => {
    const clock = new VirtualClock();
    const server = await serveWire('HTTP/2', { mostStreams: 1, respond: serveBoth });
    const transport = wireTransport(server.url, { clock, timeoutMs: 1000 });
    const followed = await Promise.all(Array.from({ length: 4 }, () => firstOf(transport)));
    const failed = kubeErrorOf(transport.ask(READ));
    await clock.advance(1000);
    expect((await failed).reason).toBe('Unreachable');
    const asked = transport.ask(READ);
    await followed[2]?.return?.();
    expect(await asked).toEqual({});
    expect(server.opened()).toBe(4);
  });
});

describe('a connection on which nothing comes', () => {
  it('is given up when the server does not answer a PING, and what is followed hears of it', async () => {
    const clock = new VirtualClock();
    const heard: Socket[] = [];
    const url = await serveRaw('HTTP/2', socket => {
      heard.push(socket);
      socket.write(SETTINGS);
      socket.on('data', data => {
        if (FIRST_REQUEST.test(data.toString('hex'))) socket.write(ANSWER);
      });
    });
    const transport = wireTransport(url, { clock });
    const values = (await transport.follow(WATCH))[Symbol.asyncIterator]();
    const failed = kubeErrorOf(values.next());
    await clock.advance(60_000);
    expect((await failed).reason).toBe('Unreachable');
    const again = (await transport.follow(WATCH))[Symbol.asyncIterator]();
    expect(heard).toHaveLength(2);
    const ended = kubeErrorOf(again.next());
    await transport.close();
    expect((await ended).reason).toBe('Aborted');
  });

  it('is kept while the server answers PINGs', async () => {
    const clock = new VirtualClock();
    const server = await serveWire('HTTP/2', { respond: serveBoth });
    const values = await firstOf(wireTransport(server.url, { clock }));
    for (let count = 0; count < 20; count++) {
      const pinged = Promise.all(
        [...server.sessions].map(each => new Promise(done => each.once('ping', done))),
      );
      await clock.advance(30_000);
      await pinged;
      // Our side has the answer when it has one to a PING of the server.
      for (const session of server.sessions) await new Promise(done => session.ping(done));
    }
    server.seen[0]?.write('{"n":1}\n');
    expect(await values.next()).toEqual({ done: false, value: { n: 1 } });
    expect(server.opened()).toBe(1);
  });
});

it('what a server speaks may change', async () => {
  const first = await serveWire('HTTP/2', { respond: serveBoth });
  const transport = wireTransport(first.url);
  await transport.ask(READ);
  await first.close();
  const second = await serveWire('HTTP/1.1', { port: first.port, respond: serveBoth });
  const one = await transport.ask(READ).catch(() => transport.ask(READ));
  expect(one).toEqual({});
  await second.close();
  await serveWire('HTTP/2', { port: first.port, respond: serveBoth });
  const other = await transport.ask(READ).catch(() => transport.ask(READ));
  expect(other).toEqual({});
});
