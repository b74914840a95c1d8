import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { formatCallers, formatDestinations, parseCallers, parseDestinations } from '../../src/api/front.ts';
import { dialOn } from '../../src/serving/dial.ts';
import { followMeshd } from '../../src/serving/follow-meshd.ts';
import { Front } from '../../src/serving/front.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { frontMetrics } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeMeshd } from '../support/serving/fake-meshd.ts';
import { parseExposition } from '../support/telemetry/exposition.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** A service that sends back what it gets. */
async function startEcho() {
  const server = createServer(socket => {
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A front on both loopback addresses beside a LocalAPI, with a service that is declared and whose caller is not known. */
async function openScene({ maxConnections = 100 } = {}) {
  const [meshd, port] = [await startFakeMeshd(), await startEcho()];
  const lines: string[] = [];
  const clock = new VirtualClock();
  const log = createLog({ level: 'info', to: { write: line => void lines.push(line) } });
  const metrics = createRegistry({ metrics: frontMetrics, version: 'test' });
  const deps = { dial: dialOn(meshd.socket, clock), clock, log, record: metrics.record };
  const front = new Front({ addresses: ['127.0.0.1', '::1'], port: 0, maxConnections }, deps);
  await front.listen();
  onTestFinished(() => front.close());
  const [ipv4 = 0, ipv6 = 0] = front.ports;
  const serve = (callers: string, destinations = `127.0.0.1 web.example.ts.net ${port}\n`) =>
    front.update({ callers: parseCallers(callers), destinations: parseDestinations(destinations) });
  const ask = (authority: string, to: object = {}) =>
    connectTo({ host: '127.0.0.1', port: ipv4, ...to }, authority);
  const refused = async () => {
    const { series = [] } =
      parseExposition(await metrics.text()).get('mesh_gateway_front_refused_total') ?? {};
    const counted = series.filter(({ value }) => value > 0);
    const entries = counted.map(({ labels, value }) => [String(labels['reason']), value] as const);
    return Object.fromEntries(entries) as Readonly<Record<string, number>>;
  };
  const authority = `127.0.0.1:${port}`;
  return { meshd, port, authority, front, ipv6, clock, lines, serve, ask, refused };
}

type Answer = { readonly status: number; readonly why: string | undefined; readonly tunnel: Socket };

async function connectTo(
  to: { readonly host: string; readonly port: number; readonly localAddress?: string },
  path: string,
): Promise<Answer> {
  const sent = request({ ...to, method: 'CONNECT', path, headers: { host: path }, agent: false });
  const result = new Promise<Answer>((resolve, reject) => {
    sent.once('connect', ({ statusCode = 0, headers }, tunnel: Socket, early) => {
      if (early.length > 0) tunnel.unshift(early);
      tunnel.on('error', () => undefined);
      onTestFinished(() => void tunnel.destroy());
      const why = headers['tailscale-connect-error'];
      resolve({ status: statusCode, why: why?.toString(), tunnel });
    });
    sent.once('error', reject);
  });
  sent.end();
  return result;
}

async function echoed({ tunnel }: Answer, message: string): Promise<string> {
  tunnel.write(message);
  const [answer] = (await once(tunnel, 'data')) as [Buffer];
  return answer.toString();
}

describe('the front of a mesh pod', () => {
  it('passes bytes between a known caller and a declared destination, by its address and its name, on both families', async () => {
    const scene = await openScene();
    scene.serve('127.0.0.1\n::1\n');
    const answer = await scene.ask(scene.authority);
    expect(answer.status).toBe(200);
    expect(await echoed(answer, 'hello')).toBe('hello');
    const overIPv6 = await scene.ask(scene.authority, { host: '::1', port: scene.ipv6 });
    expect(await echoed(overIPv6, 'hello over IPv6')).toBe('hello over IPv6');
    // The fake of meshd does not resolve names of devices.
    await scene.ask(`WEB.example.ts.net:${scene.port}`);
    expect(scene.meshd.dialled.at(-1)).toBe(`WEB.example.ts.net ${scene.port}`);
    expect(await scene.refused()).toEqual({});
  });

  it('delivers what the device has sent before it closes, however slowly the caller reads', async () => {
    const scene = await openScene();
    const bytes = Buffer.alloc(3_000_000, 'x');
    const server = createServer(socket => void socket.end(bytes)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    scene.serve('127.0.0.1\n', `127.0.0.1 - ${port}\n`);
    const { tunnel } = await scene.ask(`127.0.0.1:${port}`);
    const received = await text(tunnel);
    expect(received).toHaveLength(bytes.length);
  });

  it('serves no caller before it has lists', async () => {
    const scene = await openScene();
    const asked = scene.ask(scene.authority);
    await eventually(async () => {
      await scene.clock.advance(2000);
      expect(await scene.refused()).toEqual({ caller: 1 });
    });
    expect(await asked).toMatchObject({ status: 403, why: 'caller' });
    expect(scene.meshd.dialled).toEqual([]);
  });

  it('refuses a caller that is not listed, logs it once a minute, and keeps its address for the operator', async () => {
    const scene = await openScene();
    scene.serve('10.0.0.7\n10.1.0.0/16\n');
    for (const times of [1, 2]) {
      const asked = scene.ask(scene.authority);
      await eventually(async () => {
        await scene.clock.advance(2000);
        expect(await scene.refused()).toEqual({ caller: times });
      });
      expect((await asked).status).toBe(403);
    }
    expect(scene.front.refusedCallers).toEqual(['127.0.0.1']);
    expect(scene.front.refused).toEqual({ caller: 2 });
    expect(scene.lines.filter(line => line.includes('refused connections to the proxy'))).toHaveLength(1);
    scene.serve('127.0.0.0/8\n');
    expect(scene.front.refusedCallers).toEqual([]);
    expect((await scene.ask(scene.authority)).status).toBe(200);
  });

  it('serves a destination for 10 s after the list has lost it, because Envoys may learn it later', async () => {
    const scene = await openScene();
    scene.serve('127.0.0.1\n');
    scene.serve('127.0.0.1\n', '127.0.0.1 - 1\n');
    expect(await echoed(await scene.ask(scene.authority), 'hello')).toBe('hello');
    await scene.clock.advance(10_000);
    const asked = scene.ask(scene.authority);
    await eventually(async () => {
      await scene.clock.advance(2000);
      expect(await scene.refused()).toEqual({ destination: 1 });
    });
    expect(await asked).toMatchObject({ status: 403, why: 'destination' });
  });

  it('lets a caller and a destination wait for newer lists, which Envoys may be ahead of', async () => {
    const scene = await openScene();
    scene.serve('', '');
    const asked = scene.ask(scene.authority);
    await eventually(() => expect(scene.front.connections).toBe(1));
    scene.serve('127.0.0.1\n', '');
    scene.serve('127.0.0.1\n');
    expect((await asked).status).toBe(200);
    expect(await scene.refused()).toEqual({});
  });

  const DEVICE = '100.64.0.9';
  it.each([
    ['another port of a declared device', `${DEVICE}:22`],
    ['loopback', '127.0.0.1:1055'],
    ['IPv6 loopback', '[::1]:9003'],
    ['the metadata service', '169.254.169.254:80'],
    ['the API server', '10.96.0.1:443'],
    ['the API server by name', 'kubernetes.default.svc:443'],
    ['the mapped form of a declared address', `[::ffff:${DEVICE}]:80`],
    ['the mapped form in hexadecimal digits', '[::ffff:6440:9]:80'],
    ['a declared name with a final dot', 'web.example.ts.net.:80'],
    ['an address in another notation', '0x64400009:80'],
  ])('refuses %s', async (_what, authority) => {
    const scene = await openScene();
    scene.serve('127.0.0.1\n', `${DEVICE} web.example.ts.net 80\n`);
    const asked = scene.ask(authority);
    await eventually(async () => {
      await scene.clock.advance(2000);
      const { destination = 0, malformed = 0 } = await scene.refused();
      expect(destination + malformed).toBe(1);
    });
    expect([400, 403]).toContain((await asked).status);
    expect(scene.meshd.dialled).toEqual([]);
  });

  it('refuses a declared address that no device has: meshd dials nothing then', async () => {
    const scene = await openScene();
    scene.serve('127.0.0.1\n');
    scene.meshd.dialling = 'outside';
    expect(await scene.ask(scene.authority)).toMatchObject({
      status: 502,
      why: 'no device of the tailnet has this address',
    });
    expect(await scene.refused()).toEqual({ outside: 1 });
  });

  it.each(['100.64.0.77', 'fd7a:115c:a1e0::77', 'Mesh-0.example.ts.net'])(
    'refuses %s, its own device, to which meshd would connect by the loopback of the pod',
    async own => {
      const scene = await openScene();
      scene.serve(
        '127.0.0.1\n',
        `${own.includes('.net') ? `100.64.0.9 ${own.toLowerCase()}` : `${own} -`} 9003\n`,
      );
      expect(await scene.ask(`${own.includes('::') ? `[${own}]` : own}:9003`)).toMatchObject({
        status: 502,
        why: 'this is the address of the mesh pod itself',
      });
      expect(await scene.refused()).toEqual({ outside: 1 });
      expect(scene.meshd.dialled).toEqual([]);
    },
  );

  it('learns of new addresses of its device within 10 s', async () => {
    const scene = await openScene();
    scene.serve('127.0.0.1\n');
    expect((await scene.ask(scene.authority)).status).toBe(200);
    scene.meshd.ownHosts.push('127.0.0.1');
    await scene.clock.advance(10_000);
    expect((await scene.ask(scene.authority)).status).toBe(502);
  });

  it('responds with the error of meshd, and tries a refused connection once more', async () => {
    const scene = await openScene();
    scene.serve('127.0.0.1\n');
    scene.meshd.dialling = 'refused';
    const why = 'connect tcp: connection was refused';
    expect(await scene.ask(scene.authority)).toMatchObject({ status: 500, why });
    expect(scene.meshd.dialled).toHaveLength(2);
    scene.meshd.dialling = 'refused once';
    expect((await scene.ask(scene.authority)).status).toBe(200);
    await scene.meshd.close();
    expect(await scene.ask(scene.authority)).toMatchObject({ status: 500, why: /^meshd: / });
  });

  it('stops dialling after 30 s', async () => {
    const scene = await openScene();
    scene.serve('127.0.0.1\n');
    scene.meshd.dialling = 'never';
    const asked = scene.ask(scene.authority);
    await eventually(() => expect(scene.meshd.dialled).toHaveLength(1));
    await scene.clock.advance(30_000);
    expect(await asked).toMatchObject({ status: 500, why: /no connection within 30 s|aborted/ });
  });

  it('resets connections beyond its limit, and those of strangers do not count', async () => {
    const scene = await openScene({ maxConnections: 1 });
    scene.serve('127.0.0.1\n');
    const first = await scene.ask(scene.authority);
    await expect(scene.ask(scene.authority)).rejects.toThrow();
    expect(await scene.refused()).toEqual({ too_many_connections: 1 });
    expect(await echoed(first, 'still open')).toBe('still open');
  });

  it('holds a bounded number of connections of one stranger, and goes on serving callers', async () => {
    const scene = await openScene();
    scene.serve('::1\n');
    const strangers = Array.from({ length: 40 }, () => connect(scene.front.ports[0] ?? 0, '127.0.0.1'));
    for (const stranger of strangers) {
      stranger.on('error', () => undefined);
      onTestFinished(() => void stranger.destroy());
    }
    await eventually(async () => expect(await scene.refused()).toEqual({ caller: 8 }));
    const served = await scene.ask(scene.authority, { host: '::1', port: scene.ipv6 });
    expect(await echoed(served, 'hello')).toBe('hello');
  });

  it('lets callers wait for newer lists, however many of them and of strangers wait', async () => {
    const scene = await openScene({ maxConnections: 1000 });
    scene.serve('127.0.0.1\n', '');
    const strangers = Array.from({ length: 256 }, (_, n) =>
      scene.ask(scene.authority, { localAddress: `127.0.1.${1 + (n >> 5)}` }),
    );
    await eventually(() => expect(scene.front.connections).toBe(256));
    const asked = Array.from({ length: 100 }, () => scene.ask(scene.authority));
    await eventually(() => expect(scene.front.connections).toBe(356));
    scene.serve('127.0.0.1\n');
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    await scene.clock.advance(2000);
    await Promise.all(strangers);
    expect(await scene.refused()).toEqual({ caller: 256 });
  });

  it('resets connections that it has not answered when it is closed', async () => {
    const scene = await openScene();
    scene.serve('127.0.0.1\n');
    scene.meshd.dialling = 'never';
    const socket = connect({ host: '127.0.0.1', port: scene.front.ports[0] ?? 0 });
    onTestFinished(() => void socket.destroy());
    socket.resume().write(`CONNECT ${scene.authority} HTTP/1.1\r\nHost: ${scene.authority}\r\n\r\n`);
    await eventually(() => expect(scene.meshd.dialled).toHaveLength(1));
    const failed = new Promise(resolve => socket.once('error', resolve).once('end', () => resolve('end')));
    scene.front.close();
    expect(await failed).toMatchObject({ code: 'ECONNRESET' });
  });

  it('closes a refused connection, also one that sends more or stays open on its side', async () => {
    const scene = await openScene();
    scene.serve('127.0.0.1\n', '');
    const [port = 0] = scene.front.ports;
    const refused = (bytes: string) => {
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      onTestFinished(() => void socket.destroy());
      socket.on('error', () => undefined).resume();
      socket.write(`CONNECT ${scene.authority} HTTP/1.1\r\nhost: a\r\n\r\n${bytes}`);
      return socket;
    };
    const [open, gone] = [refused(''), refused('more')];
    await eventually(() => expect(scene.front.connections).toBe(2));
    const ended = [once(open, 'end'), once(gone, 'end')];
    await eventually(async () => {
      await scene.clock.advance(2000);
      expect(await scene.refused()).toEqual({ destination: 2 });
    });
    await Promise.all(ended);
    gone.end();
    await eventually(() => expect(scene.front.connections).toBe(1));
    await scene.clock.advance(10_000);
    await eventually(() => expect(scene.front.connections).toBe(0));
  });

  it('responds to what is no CONNECT with 400, as meshd does, which operators send and is no refusal', async () => {
    const scene = await openScene();
    const [port] = scene.front.ports;
    const response = await fetch(`http://127.0.0.1:${port}/`);
    expect(response.status).toBe(400);
    expect(await scene.refused()).toEqual({});
  });

  it('refuses connections while meshd is away, and serves again once it is back', async () => {
    const scene = await openScene();
    const following = followMeshd(scene.meshd.socket, scene.front, scene.clock);
    onTestFinished(() => following.close());
    scene.serve('127.0.0.1\n');
    expect((await scene.ask(scene.authority)).status).toBe(200);
    await scene.meshd.close();
    await eventually(() => expect(scene.front.ports).toEqual([]));
    await expect(scene.ask(scene.authority)).rejects.toThrow('ECONNREFUSED');
    await scene.meshd.listen();
    await eventually(async () => {
      await scene.clock.advance(100);
      expect(scene.front.ports).toHaveLength(2);
    });
    const [port] = scene.front.ports;
    const answer = await scene.ask(scene.authority, { port });
    expect(await echoed(answer, 'hello again')).toBe('hello again');
  });

  it('listens on all addresses or on none, however soon meshd ends', async () => {
    const scene = await openScene();
    const steps: string[] = [];
    let listens = () => undefined as void;
    const slow = {
      listen: async () => {
        steps.push('begins');
        await new Promise<void>(resolve => (listens = resolve));
        steps.push('listens');
      },
      stopAccepting: () => void steps.push('stops'),
    };
    const following = followMeshd(scene.meshd.socket, slow, scene.clock);
    onTestFinished(() => following.close());
    await eventually(() => expect(steps).toEqual(['begins']));
    await scene.meshd.close();
    await eventually(() => expect(scene.clock.timers).toBe(1));
    listens();
    await eventually(() => expect(steps).toEqual(['begins', 'listens', 'stops']));
  });

  it('dials a meshd that ends each connection every 100 ms', async () => {
    const scene = await openScene();
    let accepted = 0;
    const path = join(mkdtempSync(join(tmpdir(), 'mesh-localapi-')), 'socket');
    onTestFinished(() => rmSync(dirname(path), { recursive: true }));
    const localApi = createServer(socket => {
      accepted++;
      socket.destroy();
    });
    await once(localApi.listen(path), 'listening');
    onTestFinished(() => void localApi.close());
    const following = followMeshd(path, scene.front, scene.clock);
    onTestFinished(() => following.close());
    // The second is at once: meshd may have been restarted.
    await eventually(() => expect([accepted, scene.clock.timers]).toEqual([2, 1]));
    await scene.clock.advance(99);
    expect(accepted).toBe(2);
    await scene.clock.advance(1);
    await eventually(() => expect(accepted).toBe(3));
  });

  it.each([
    ['while it listens', () => undefined],
    ['and while it accepts no more', (front: Front) => front.stopAccepting()],
  ])('ends a connection that sends no request within 10 s, %s', async (_, change) => {
    const scene = await openScene();
    const [port = 0] = scene.front.ports;
    const silent = connect({ host: '127.0.0.1', port });
    const reset = new Promise<Error>(resolve => silent.once('error', resolve));
    silent.write('CONNECT ');
    await eventually(() => expect(scene.front.connections).toBe(1));
    change(scene.front);
    await scene.clock.advance(9999);
    expect(scene.front.connections).toBe(1);
    await scene.clock.advance(1);
    expect(await reset).toMatchObject({ code: 'ECONNRESET' });
    await eventually(() => expect(scene.front.connections).toBe(0));
  });

  it('lets open connections go on while it accepts no more', async () => {
    const scene = await openScene();
    scene.serve('127.0.0.1\n');
    const open = await scene.ask(scene.authority);
    scene.front.stopAccepting();
    expect(await echoed(open, 'going on')).toBe('going on');
    await expect(scene.ask(scene.authority)).rejects.toThrow('ECONNREFUSED');
    const closed = once(open.tunnel, 'close');
    scene.front.close();
    await closed;
  });
});

describe('the lists of a front', () => {
  it('are the same texts for the same callers and destinations, and are read back', () => {
    const callers = formatCallers(['10.0.0.9', 'fd00::0:1', '10.0.0.10', '10.0.0.9', '10.1.0.0/16']);
    expect(callers).toBe('10.0.0.10\n10.0.0.9\n10.1.0.0/16\nfd00::1\n');
    expect(parseCallers(callers)).toEqual({
      addresses: new Set(['10.0.0.10', '10.0.0.9', 'fd00::1']),
      ranges: ['10.1.0.0/16'],
    });
    const destinations = formatDestinations([
      { address: '100.64.0.2', name: 'Web.example.ts.net', ports: [443, 80, 443] },
      { address: 'fd7a:115c:a1e0:0::1', name: undefined, ports: [53] },
    ]);
    expect(destinations).toBe('100.64.0.2 web.example.ts.net 80,443\nfd7a:115c:a1e0::1 - 53\n');
    expect(parseDestinations(destinations)).toEqual(
      new Set([
        '100.64.0.2 80',
        '100.64.0.2 443',
        'web.example.ts.net 80',
        'web.example.ts.net 443',
        'fd7a:115c:a1e0::1 53',
      ]),
    );
  });

  it('admit all where their text is any, and none where they are empty', () => {
    expect([parseCallers('any\n'), parseDestinations('any')]).toEqual([undefined, undefined]);
    expect(parseCallers('')).toEqual({ addresses: new Set(), ranges: [] });
    expect(parseDestinations('')).toEqual(new Set());
  });

  it('lose only the lines that are wrong, which are reported', () => {
    const ignored: unknown[] = [];
    const report = (each: unknown) => void ignored.push(each);
    expect(parseCallers('any\n10.0.0.1\n10.0.0.0/99\n', report)?.addresses).toEqual(new Set(['10.0.0.1']));
    const text = '100.64.0.1 - 80\n100.64.0.1 - 0\nweb - 80\n100.64.0.1 a b 80\n100.64.0.1 - 80,x\n';
    expect(parseDestinations(text, report)).toEqual(new Set(['100.64.0.1 80']));
    expect(ignored).toEqual([
      { count: 2, first: 'line 1 is neither an address nor a range of addresses' },
      { count: 4, first: 'line 2 is not a destination' },
    ]);
  });
});
