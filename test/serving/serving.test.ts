import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ServedService } from '../../src/api/served-services.ts';
import { dialOn } from '../../src/serving/dial.ts';
import { localApiOn } from '../../src/serving/local-api.ts';
import { Serving } from '../../src/serving/serving.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeMeshd } from '../support/serving/fake-meshd.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** A service that sends back what it gets. */
async function startEcho(): Promise<string> {
  const server = createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Serving beside a LocalAPI. */
async function openScene({ maxConnections = 100 } = {}) {
  const [meshd, echo] = [await startFakeMeshd(), await startEcho()];
  const lines: string[] = [];
  const clock = new VirtualClock();
  const log = createLog({ level: 'info', to: { write: line => void lines.push(line) } });
  const deps = { localApi: localApiOn(meshd.socket), dial: dialOn(meshd.socket, clock), log, clock };
  const serving = new Serving({ maxConnections }, deps);
  onTestFinished(async () => {
    await serving.close();
  });
  const service = (fields: Partial<ServedService> = {}): ServedService => ({
    name: 'svc:web',
    port: 443,
    via: 'mesh',
    target: echo,
    isAdvertised: true,
    ...fields,
  });
  const served = async (names: readonly string[]) => {
    await eventually(() => expect(meshd.advertised).toEqual(names));
  };
  return { meshd, echo, serving, clock, lines, service, served };
}

/** Where tailscaled forwards the connections of a service. */
function forwardOf(config: unknown, name = 'svc:web'): string {
  const forwards = /"(svc:[a-z]+)":{"TCP":{"443":{"TCPForward":"([^"]+)"}}}/g;
  const found = [...JSON.stringify(config).matchAll(forwards)].find(([, service]) => service === name);
  return found?.[2] ?? '';
}

/** Connects as tailscaled does. */
async function dial(address: string): Promise<Socket> {
  const [host = '', port] = address.split(':');
  const socket = connect({ host, port: Number(port) });
  // One that is reset has an error before a test waits for it.
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

async function exchange(socket: Socket, text: string): Promise<string> {
  socket.write(text);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return answer.toString();
}

async function isClosed(socket: Socket): Promise<true> {
  if (!socket.closed) await once(socket.resume(), 'close');
  return true;
}

/** The error of a connection, which may come before it is established. */
async function resetOf(address: string): Promise<string | undefined> {
  const [host = '', port] = address.split(':');
  const socket = connect({ host, port: Number(port) }).resume();
  let code: string | undefined;
  socket.on('error', error => {
    ({ code } = error as NodeJS.ErrnoException);
  });
  await new Promise(resolve => socket.once('close', resolve));
  return code;
}

describe('a service toward a device', () => {
  it('is served through a hop on a loopback address that the tailnet does not reach, and dialled by meshd', async () => {
    const scene = await openScene();
    scene.serving.update([scene.service()]);
    await scene.served(['svc:web']);
    const forward = forwardOf(scene.meshd.config);
    expect(forward).toMatch(/^127\.0\.0\.2:\d+$/);
    expect(await exchange(await dial(forward), 'hello')).toBe('hello');
    expect(scene.meshd.dialled).toEqual([scene.echo.replace(':', ' ')]);
  });

  it('passes the end of a direction on, as far as meshd does', async () => {
    const scene = await openScene();
    scene.serving.update([scene.service()]);
    await scene.served(['svc:web']);
    const socket = await dial(forwardOf(scene.meshd.config));
    expect(await exchange(socket, 'last words')).toBe('last words');
    socket.end();
    expect(await isClosed(socket)).toBe(true);
  });

  it.each([
    ['that meshd refuses', 100, 'connections of VIP services failed'],
    ['beyond the limit', 0, 'a VIP service has too many connections'],
  ])('resets a connection %s, and logs it once a minute', async (_, maxConnections, message) => {
    const scene = await openScene({ maxConnections });
    scene.serving.update([scene.service({ target: '127.0.0.1:1' })]);
    await scene.served(['svc:web']);
    const forward = forwardOf(scene.meshd.config);
    const logged = () =>
      scene.lines
        .map(line => JSON.parse(line) as Record<string, unknown>)
        .filter(({ msg }) => msg === message)
        .map(({ count, target }) => ({ count, target }));
    for (let left = 3; left > 0; left--) expect(await resetOf(forward)).toBe('ECONNRESET');
    expect(logged()).toEqual([{ count: 1, target: '127.0.0.1:1' }]);
    await scene.clock.advance(60_000);
    expect(await resetOf(forward)).toBe('ECONNRESET');
    expect(logged().slice(1)).toEqual([{ count: 3, target: '127.0.0.1:1' }]);
  });

  it('has half of the connections at most', async () => {
    const scene = await openScene({ maxConnections: 4 });
    const other = await startEcho();
    scene.serving.update([scene.service(), scene.service({ name: 'svc:other', target: other })]);
    await scene.served(['svc:other', 'svc:web']);
    const forward = forwardOf(scene.meshd.config);
    for (const text of ['one', 'two']) expect(await exchange(await dial(forward), text)).toBe(text);
    expect(await resetOf(forward)).toBe('ECONNRESET');
    const free = await dial(forwardOf(scene.meshd.config, 'svc:other'));
    expect(await exchange(free, 'free')).toBe('free');
  });

  it('keeps its connections for 20 s when it gets another target, and is served toward that at once', async () => {
    const scene = await openScene();
    scene.serving.update([scene.service()]);
    await scene.served(['svc:web']);
    const before = forwardOf(scene.meshd.config);
    const open = await dial(before);
    expect(await exchange(open, 'before')).toBe('before');
    scene.serving.update([scene.service({ target: await startEcho() })]);
    await eventually(() => expect(forwardOf(scene.meshd.config)).not.toBe(before));
    expect(await exchange(await dial(forwardOf(scene.meshd.config)), 'moved')).toBe('moved');
    expect(await exchange(open, 'still open')).toBe('still open');
    await eventually(async () => {
      await expect(dial(before)).rejects.toThrow('ECONNREFUSED');
    });
    await scene.clock.advance(20_000);
    expect(await isClosed(open)).toBe(true);
  });
});

describe('what meshd serves', () => {
  it('is replaced, also what it had before the first list of services', async () => {
    const scene = await openScene();
    scene.meshd.config = { TCP: { 22: { TCPForward: '127.0.0.1:22' } } };
    scene.meshd.advertised = ['svc:old'];
    scene.serving.update([]);
    await scene.served([]);
    await eventually(() => expect(scene.meshd.config).toEqual({}));
  });

  it('is withdrawn when a service is removed, and ends 20 s later', async () => {
    const scene = await openScene();
    scene.serving.update([scene.service({ via: 'direct' })]);
    await scene.served(['svc:web']);
    // It is reported after the response to the last write, so later than meshd advertises it.
    const before = await eventually(() => {
      expect(scene.serving.served()).toMatchObject([{ name: 'svc:web' }]);
      return scene.serving.served();
    });
    scene.serving.update([]);
    await scene.served([]);
    expect(forwardOf(scene.meshd.config)).toBe(scene.echo);
    // It serves the old one still, and does not report anything else.
    expect(scene.serving.served()).toBe(before);
    await eventually(async () => {
      await scene.clock.advance(20_000);
      expect(scene.meshd.config).toEqual({});
    });
    await eventually(() => expect(scene.serving.served()).toEqual([]));
  });

  it('is put right where others change it, also while it is being changed', async () => {
    const scene = await openScene();
    scene.meshd.beforeWrite = () => {
      scene.meshd.beforeWrite = () => undefined;
      scene.meshd.config = { TCP: { 22: {} } };
    };
    scene.serving.update([scene.service()]);
    await eventually(async () => {
      await scene.clock.advance(1000);
      expect(scene.meshd.advertised).toEqual(['svc:web']);
    });
    const config = scene.meshd.config;
    scene.meshd.config = null;
    scene.meshd.advertised = ['svc:web', 'svc:foreign'];
    await eventually(async () => {
      await scene.clock.advance(30_000);
      expect([scene.meshd.config, scene.meshd.advertised]).toEqual([config, ['svc:web']]);
    });
  });

  it('follows once meshd is on its tailnet, and after it was away', async () => {
    const scene = await openScene();
    scene.meshd.refuse(500);
    scene.serving.update([scene.service()]);
    await eventually(() => expect(scene.lines.join('')).toContain('netMap is nil'));
    scene.meshd.refuse(undefined);
    await eventually(async () => {
      await scene.clock.advance(1000);
      expect(scene.meshd.advertised).toEqual(['svc:web']);
    });
    await scene.meshd.close();
    scene.serving.update([scene.service({ isAdvertised: false })]);
    await eventually(() => expect(scene.lines.join('')).toMatch(/serve-config: (?!500)/));
    await scene.meshd.listen();
    await eventually(async () => {
      await scene.clock.advance(1000);
      expect(scene.meshd.advertised).toEqual([]);
    });
  });

  it('takes no write while nothing changes', async () => {
    const scene = await openScene();
    scene.serving.update([scene.service()]);
    await scene.served(['svc:web']);
    const { length } = scene.meshd.writes;
    scene.serving.update([scene.service()]);
    for (let times = 0; times < 5; times++) await scene.clock.advance(30_000);
    expect([length, scene.meshd.writes.length]).toEqual([2, 2]);
  });
});

describe('at the end of a pod', () => {
  it('services are withdrawn unless containerboot has done so, and served until meshd ends', async () => {
    const scene = await openScene();
    scene.serving.update([scene.service()]);
    await scene.served(['svc:web']);
    const forward = forwardOf(scene.meshd.config);
    let isOver = false;
    const ended = scene.serving.end().then(() => {
      isOver = true;
    });
    await scene.clock.advance(1900);
    expect(scene.meshd.advertised).toEqual(['svc:web']);
    await eventually(async () => {
      await scene.clock.advance(100);
      expect(scene.meshd.advertised).toEqual([]);
    });
    expect(await exchange(await dial(forward), 'late')).toBe('late');
    await scene.clock.advance(1000);
    expect(isOver).toBe(false);
    await scene.meshd.close();
    await eventually(async () => {
      await scene.clock.advance(250);
      expect(isOver).toBe(true);
    });
    await ended;
  });

  it('it does not wait where nothing is served, and not for long where meshd goes on', async () => {
    const scene = await openScene();
    await scene.serving.end();
    const other = await openScene();
    other.serving.update([other.service()]);
    await other.served(['svc:web']);
    let isOver = false;
    void other.serving.end().then(() => {
      isOver = true;
    });
    await eventually(async () => {
      await other.clock.advance(5000);
      expect(isOver).toBe(true);
    });
    expect(forwardOf(other.meshd.config)).not.toBe('');
  });
});
