import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { targetsVersion } from '../../src/api/relay-targets.ts';
import { runRelay } from '../../src/relay.ts';
import { parseRelayStatus } from '../../src/controllers/mesh-tailnet/relays/relay-status.ts';
import { eventually } from '../support/eventually.ts';
import { openClient, startUdpService } from '../support/relay/datagrams.ts';
import { startConfigMapServer } from '../support/relay/config-map-server.ts';
import { nextAddress } from '../support/relay/running-relay.ts';
import { startSocksServer } from '../support/relay/socks-server.ts';
import { startServed } from '../support/standalone/served-process.ts';

const TOKEN = 'planted-token-5e1f';
const SECRET = 'planted-secret-77aa';

/** A relay as a process, with its API server, proxy and an echoing service on the mesh. */
async function startProcess(flags: Readonly<Record<string, string>> = {}) {
  const address = nextAddress();
  const [server, socks, service] = await Promise.all([
    startConfigMapServer(),
    // Where the meshd of a pod listens.
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
    KUBECONFIG: server.kubeconfig(TOKEN),
    SOME_PASSWORD: SECRET,
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

  it('serves the proxy of meshd on the other address of its pod, until SIGTERM', async () => {
    const relay = await startProcess();
    const client = connect({ host: '::1', port: 1055 });
    client.write(Buffer.from([5, 1, 0]));
    const [greeting] = (await once(client, 'data')) as [Buffer];
    expect([...greeting]).toEqual([5, 0]);
    const ended = once(client, 'close');
    client.on('error', () => undefined);
    relay.child.kill('SIGTERM');
    expect(await relay.ended).toBe(0);
    await ended;
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

  it.each([
    [{ 'pod-ips': '0.0.0.0' }, '--pod-ips: "0.0.0.0" is not a list of IP addresses of a pod'],
    [{ 'pod-ips': '' }, '--pod-ips: "" is not a list of IP addresses of a pod'],
    [{ 'socks-address': 'meshd:1055' }, '--socks-address: "meshd:1055" is not an address to connect to'],
    [{ 'relay-http-port': '90030' }, '--relay-http-port: "90030" is not a port'],
    [{ 'relay-config-map': '' }, '--relay-config-map: is not set'],
    [{ 'pod-ips': '192.0.2.1' }, 'RELAY_HTTP_PORT: cannot listen on 192.0.2.1:9003: EADDRNOTAVAIL'],
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
