import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { targetsVersion } from '../../src/api/relay-targets.ts';
import { runRelay } from '../../src/relay.ts';
import { parseRelayStatus } from '../../src/controllers/mesh-tailnet/relays/relay-status.ts';
import { eventually } from '../support/eventually.ts';
import { openClient, startUdpService } from '../support/relay/datagrams.ts';
import { makeFiles } from '../support/kubernetes/wire-kubeconfig.ts';
import { startConfigMapServer } from '../support/relay/config-map-server.ts';
import type { ConfigMapServer } from '../support/relay/config-map-server.ts';
import { nextAddress } from '../support/relay/running-relay.ts';
import { startSocksServer } from '../support/relay/socks-server.ts';
import { startFakeMeshd } from '../support/serving/fake-meshd.ts';
import { startServed } from '../support/standalone/served-process.ts';

const TOKEN = 'planted-token-5e1f';
const SECRET = 'planted-secret-77aa';

type Texts = Readonly<Record<string, string>>;

type Options = { readonly server?: ConfigMapServer; readonly settings?: Texts };

/** A relay as a process, with its API server, proxy and an echoing service on the mesh. */
async function startProcess(flags: Texts = {}, options: Options = {}) {
  const address = nextAddress();
  const [server, socks, service] = await Promise.all([
    options.server ?? startConfigMapServer(),
    startSocksServer({ host: address, port: 1055 }),
    startUdpService(),
  ]);
  onTestFinished(async () => {
    service.close();
    await socks.stop();
  });
  const settings = {
    POD_IPS: `${address},::1`,
    RELAY_CONFIG_MAP: 'mesh-relay-example',
    RELAY_HTTP_PORT: '9003',
    SOCKS_ADDRESS: `${address}:1055`,
    KUBECONFIG: server.kubeconfig(TOKEN),
    SOME_PASSWORD: SECRET,
    ...options.settings,
  };
  const running = startServed('relay', flags, settings);
  const get = async (path: string) => {
    const response = await fetch(`http://${address}:9003${path}`);
    return { status: response.status, text: await response.text() };
  };
  const expectVersion = (text: string) =>
    eventually(async () => {
      expect(parseRelayStatus((await get('/relay')).text).version).toBe(targetsVersion(text));
    });
  const expectEcho = async (port: number, text: string) => {
    const client = await openClient(address, port);
    await client.exchange(text);
    client.close();
  };
  await running.line('serving metrics and probes');
  return {
    socks,
    ...running,
    server,
    address,
    get,
    expectVersion,
    expectEcho,
    target: `127.0.0.1:${service.port}`,
  };
}

/** Not 1055, where the SOCKS5 proxy of a test listens. */
const FRONT_PORT = 1056;

/** A relay that is the front of a pod: beside a LocalAPI, with an echoing TCP service in its tailnet. */
async function startFront(options: Options = {}) {
  const meshd = await startFakeMeshd();
  const echo = createServer(socket => void socket.on('error', () => undefined).pipe(socket));
  await once(echo.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void echo.close());
  const { port } = echo.address() as AddressInfo;
  const settings = { MESHD_SOCKET: meshd.socket, FRONT_PORT: String(FRONT_PORT), ...options.settings };
  const relay = await startProcess({}, { ...options, settings });
  const callers = '127.0.0.1\n::1\n';
  const lists = { targets: '', callers, destinations: `127.0.0.1 web.example.ts.net ${port}\n` };
  return { ...relay, meshd, lists, destination: `127.0.0.1:${port}` };
}

/** Connects by a proxy; returns the status of its response, and the connection. */
async function connectBy(host: string, destination: string) {
  const sent = request({ host, port: FRONT_PORT, method: 'CONNECT', path: destination, agent: false });
  const [{ statusCode }, tunnel] = (await once(sent.end(), 'connect')) as [IncomingMessage, Socket];
  onTestFinished(() => void tunnel.destroy());
  tunnel.on('error', () => undefined);
  return { status: statusCode, tunnel };
}

async function expectEchoBy(host: string, destination: string): Promise<Socket> {
  const { status, tunnel } = await connectBy(host, destination);
  expect(status).toBe(200);
  tunnel.write('hello');
  const [echoed] = (await once(tunnel, 'data')) as [Buffer];
  expect(echoed.toString()).toBe('hello');
  return tunnel;
}

describe('mesh-gateway relay', () => {
  it('is ready once it listens on the ports of its ConfigMap, relays until SIGTERM, and exits with 0', async () => {
    const relay = await startProcess();
    await relay.line('the ConfigMap does not exist; the last relay targets are kept');
    expect(await relay.get('/readyz')).toMatchObject({
      status: 503,
      text: expect.stringContaining('the ConfigMap mesh-relay-example has not been read yet') as string,
    });
    expect(await relay.get('/livez')).toEqual({ status: 200, text: 'ok' });
    expect(await relay.get('/relay')).toEqual({ status: 200, text: '{"failed":{}}' });
    const targets = `20001 ${relay.target}\n`;
    relay.server.put({ targets });
    await eventually(async () => expect(await relay.get('/readyz')).toEqual({ status: 200, text: 'ok' }));
    await relay.expectVersion(targets);
    await relay.expectEcho(20001, 'hello');
    const { text } = await relay.get('/metrics');
    expect(text).toContain('mesh_gateway_relay_associations 1');
    expect(text).toContain('mesh_gateway_source_lists_total{kind="ConfigMap"} 1');
    relay.child.kill('SIGTERM');
    expect(await relay.ended).toBe(0);
    expect(relay.output()).toBe('');
  });

  it('keeps its targets while the ConfigMap is deleted, has no targets, or the API server is unavailable', async () => {
    const relay = await startProcess();
    const targets = `20001 ${relay.target}\n`;
    relay.server.put({ targets });
    await relay.expectVersion(targets);
    relay.server.remove();
    await relay.line('the ConfigMap does not exist; the last relay targets are kept');
    await relay.expectEcho(20001, 'deleted');
    relay.server.put({ other: targets });
    await relay.line('the ConfigMap has no relay targets; the last ones are kept');
    await relay.expectEcho(20001, 'empty');
    await relay.server.close();
    await relay.line('the cluster cannot be read');
    await relay.expectEcho(20001, 'unavailable');
    expect((await relay.get('/readyz')).status).toBe(200);
    const more = `${targets}20002 ${relay.target}\n`;
    relay.server.put({ targets: more });
    await relay.server.listen();
    await relay.expectVersion(more);
    await relay.expectEcho(20002, 'read again');
  });

  it('relays the valid targets of a ConfigMap, whatever else is in it', async () => {
    const relay = await startProcess();
    const hostile = [
      'x\n20009\n99999 127.0.0.1:1\n20001 example.com:53\n',
      `${'9'.repeat(100_000)}\n`,
      'not a target\n'.repeat(70_000),
      '\u0000\u001b[2J"}{\\ <script>\u2028\n',
    ];
    for (const [index, lines] of hostile.entries()) {
      const port = 20001 + index;
      const targets = `${port} ${relay.target}\n${lines}`;
      relay.server.put({ targets });
      await relay.expectVersion(targets);
      await relay.expectEcho(port, 'hello');
    }
    const warnings = relay.lines.filter(({ msg }) => msg === 'ignored lines of relay targets');
    expect(warnings.map(({ count }) => count)).toEqual([4, 1, 65_534, 1]);
  });

  it('reports ports that it cannot listen on, and is ready', async () => {
    const relay = await startProcess();
    const targets = `20001 ${relay.target}\n`;
    const other = createSocket('udp4').bind(20001, relay.address);
    await once(other, 'listening');
    relay.server.put({ targets });
    await relay.expectVersion(targets);
    const { failed } = parseRelayStatus((await relay.get('/relay')).text);
    expect(failed).toEqual(new Map([[20001, 'EADDRINUSE']]));
    expect((await relay.get('/readyz')).status).toBe(200);
    other.close();
  });

  it('has no secret of its environment in its log, its metrics and its responses', async () => {
    const relay = await startProcess({ 'log-level': 'debug' });
    relay.server.put({ targets: `20001 ${relay.target}\n` });
    await eventually(async () => expect((await relay.get('/readyz')).status).toBe(200));
    await relay.server.close();
    await relay.line('the cluster cannot be read');
    const paths = ['/metrics', '/readyz?verbose', '/livez?verbose', '/relay', '/unknown'];
    const responses = await Promise.all(paths.map(relay.get));
    relay.child.kill('SIGTERM');
    expect(await relay.ended).toBe(0);
    const all = JSON.stringify([relay.lines, responses, relay.output()]);
    expect(all).not.toContain(TOKEN);
    expect(all).not.toContain(SECRET);
  });

  it('has no proxy without the socket of meshd', async () => {
    const relay = await startProcess({ 'front-port': String(FRONT_PORT) });
    relay.server.put({ targets: '', callers: 'any\n', destinations: 'any\n' });
    await eventually(async () => expect((await relay.get('/readyz')).status).toBe(200));
    await expect(connectBy(relay.address, '127.0.0.1:1')).rejects.toThrow('ECONNREFUSED');
  });

  it.each([
    [{ 'pod-ips': '0.0.0.0' }, '--pod-ips: "0.0.0.0" is not a list of IP addresses of a pod'],
    [{ 'pod-ips': '' }, '--pod-ips: "" is not a list of IP addresses of a pod'],
    [{ 'socks-address': 'meshd:1055' }, '--socks-address: "meshd:1055" is not an address to connect to'],
    [{ 'relay-http-port': '90030' }, '--relay-http-port: "90030" is not a port'],
    [{ 'relay-config-map': '' }, '--relay-config-map: is not set'],
    [{ 'pod-ips': '192.0.2.1' }, 'RELAY_HTTP_PORT: cannot listen on 192.0.2.1:9003: EADDRNOTAVAIL'],
    [{ 'front-port': '0x1' }, '--front-port: "0x1" is not a port'],
    [
      { 'pod-ips': '192.0.2.1', 'meshd-socket': '/nonexistent' },
      'POD_IPS: cannot listen on 192.0.2.1:1055: EADDRNOTAVAIL',
    ],
    [{ kubeconfig: '/nonexistent' }, 'KUBECONFIG: /nonexistent cannot be read'],
  ])('does not start with %j, and reports why', async (flags, message) => {
    const server = await startConfigMapServer();
    const environment = {
      POD_IPS: nextAddress(),
      RELAY_CONFIG_MAP: 'mesh-relay-example',
      KUBECONFIG: server.kubeconfig(TOKEN),
    };
    const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    await expect(runRelay({ args, environment }, 'test')).rejects.toThrow(message);
  });
});

describe('the front of a mesh pod', () => {
  it('is ready once its ConfigMap has callers and destinations, and serves them on both addresses until SIGTERM', async () => {
    const relay = await startFront();
    const { callers, destinations } = relay.lists;
    relay.server.put({ targets: '' });
    await relay.expectVersion('');
    expect(await relay.get('/readyz')).toMatchObject({
      status: 503,
      text: expect.stringContaining('has no callers and destinations') as string,
    });
    relay.server.put(relay.lists);
    await eventually(async () => expect(await relay.get('/readyz')).toEqual({ status: 200, text: 'ok' }));
    const tunnel = await expectEchoBy(relay.address, relay.destination);
    await expectEchoBy('::1', relay.destination);
    expect(JSON.parse((await relay.get('/relay')).text)).toMatchObject({
      front: { version: targetsVersion(`${callers}\n${destinations}`), refusedCallers: [], refused: {} },
    });
    expect((await relay.get('/metrics')).text).toContain('mesh_gateway_front_connections 2');
    const ended = once(tunnel, 'close');
    relay.child.kill('SIGTERM');
    expect(await relay.ended).toBe(0);
    await ended;
    expect(relay.output()).toBe('');
  });

  it('keeps its lists while the ConfigMap is deleted, or is written by an operator without lists', async () => {
    const relay = await startFront();
    relay.server.put(relay.lists);
    await eventually(async () => expect((await relay.get('/readyz')).status).toBe(200));
    relay.server.remove();
    await relay.line('the ConfigMap does not exist; the last relay targets are kept');
    await expectEchoBy(relay.address, relay.destination);
    const targets = `20001 ${relay.target}\n`;
    relay.server.put({ targets });
    await relay.expectVersion(targets);
    await expectEchoBy(relay.address, relay.destination);
    expect((await relay.get('/readyz')).status).toBe(200);
  });

  it('serves again after a restart while the API server is away', async () => {
    const keptFile = makeFiles().path('relay.json');
    const settings = { KEPT_FILE: keptFile };
    const before = await startFront({ settings });
    const { server, destination } = before;
    const targets = `20001 ${before.target}\n`;
    server.put({ ...before.lists, targets });
    await eventually(() => expect(readFileSync(keptFile, 'utf8')).toContain(destination.split(':')[1]));
    before.child.kill('SIGKILL');
    await before.ended;
    await server.close();
    const after = await startFront({ settings, server });
    await after.line('the cluster cannot be read');
    await expectEchoBy(after.address, destination);
    await after.expectEcho(20001, 'hello');
    expect((await after.get('/readyz')).status).toBe(200);
  });
});
