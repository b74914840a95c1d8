import { connect as connectTls } from 'node:tls';
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { readServices, setService } from '../../../lab/tailnet/backends.ts';
import { processesOf } from '../../../lab/process/process-table.ts';
import { isRunning } from '../../../lab/process/process.ts';
import { changeNode, listNodes } from '../../../lab/tailnet/tailnet.ts';
import { until } from '../../../lab/process/wait.ts';
import { remoteOf, serviceAt, startTestLab } from '../../support/lab/lab.ts';
import type { TestLab } from '../../support/lab/lab.ts';
import { portsToTry, startStranger } from '../../support/lab/stranger.ts';
import { exchange, exchangeDatagram, connectTunnel, socksTunnel } from '../../support/lab/tunnel.ts';

let own: TestLab;
beforeAll(async () => {
  own = await startTestLab();
});
afterAll(async () => {
  await own.end();
});

const HTTP = 'GET /hello HTTP/1.1\r\nhost: web\r\n\r\n';

describe('a service on a remote node answers through the proxy of the mesh node', () => {
  it('by CONNECT to its address', async () => {
    const web = remoteOf(own.lab, 'web-1');
    const answer = await exchange(await connectTunnel(own.lab.proxy, serviceAt(web, 'http')), HTTP);
    expect(answer).toMatch(/^HTTP\/1.1 200 OK/);
    expect(answer).toContain('"backend":"web-1"');
  });

  it('by CONNECT to its MagicDNS name', async () => {
    const web = remoteOf(own.lab, 'web-2');
    const answer = await exchange(
      await connectTunnel(own.lab.proxy, `${web.fqdn}:${web.ports['http']}`),
      HTTP,
    );
    expect(answer).toContain('"backend":"web-2"');
  });

  it('by SOCKS5 over TCP', async () => {
    const target = serviceAt(remoteOf(own.lab, 'web-1'), 'tcp');
    expect(await exchange(await socksTunnel(own.lab.proxy, target), 'over tcp')).toContain('over tcp');
  });

  it('by SOCKS5 over UDP', async () => {
    const target = serviceAt(remoteOf(own.lab, 'web-1'), 'udp');
    expect(await exchangeDatagram(own.lab.proxy, target, 'over udp')).toContain('over udp');
  });

  it('over TLS with a certificate of its own authority, for its MagicDNS name', async () => {
    const web = remoteOf(own.lab, 'web-1');
    const socket = await connectTunnel(own.lab.proxy, serviceAt(web, 'tls'));
    const secure = connectTls({ socket, servername: web.fqdn, ca: readFileSync(web.caFile) });
    await once(secure, 'secureConnect');
    expect(secure.authorized).toBe(true);
    expect(await exchange(secure, 'over tls')).toContain('over tls');
  });
});

describe('another device of the tailnet', () => {
  it('gets no answer of the mesh node, at any port of this machine or of mesh pods', async () => {
    const { lab, folder } = own;
    const stranger = await startStranger(lab.tailnet);
    onTestFinished(() => stranger.end());
    const meshd = folder.processes().find(({ name }) => name === 'meshd');
    const nodes = await listNodes(lab.tailnet.admin);
    const address = nodes.find(({ hostname }) => hostname === 'meshd')?.addresses[0] ?? '';
    const web = remoteOf(lab, 'web-1');
    const echo = serviceAt(remoteOf(lab, 'web-2'), 'udp');
    const [, proxyPort = ''] = lab.proxy.split(':');
    const targets = ['169.254.169.254:80', `127.0.0.1:${web.ports['http']}`];
    const ports = portsToTry(meshd?.pid ?? 0, [Number(proxyPort)]);
    expect(ports.tcp).toEqual(expect.arrayContaining([Number(proxyPort), 1055, 9002, 9003, 20_000]));
    expect(await stranger.answersAt({ address, ...ports, targets, echo })).toEqual([]);

    // Of a remote node, which serves, it gets all that listens on loopback: also the proxy, which would lead on.
    const serving = { tcp: [Number(proxyPort), web.ports['http'] ?? 0], udp: [web.ports['udp'] ?? 0] };
    const open = [
      `tcp ${proxyPort}, GET http://${targets[1]}/: "HTTP/1.1 200 OK"`,
      `tcp ${proxyPort}, CONNECT ${targets[1]}: "HTTP/1.1 200 OK"`,
      `tcp ${proxyPort}, SOCKS5: "\\u0005\\u0000"`,
      `tcp ${web.ports['http']}`,
      `udp ${web.ports['udp']}`,
    ];
    const answers = await stranger.answersWith(open, { address: web.address, ...serving, targets, echo });
    expect(answers).toEqual(expect.arrayContaining(open));
  });
});

describe('a service can be broken and repaired', () => {
  it('so that it responds with 503 and then with 200 again', async () => {
    const web = remoteOf(own.lab, 'web-1');
    const status = async () =>
      (await exchange(await connectTunnel(own.lab.proxy, serviceAt(web, 'http')), HTTP)).slice(9, 12);
    await setService(web.control, 'http', { mode: 'failing' });
    expect(await status()).toBe('503');
    await setService(web.control, 'http', { mode: 'healthy' });
    expect(await status()).toBe('200');
  });

  it('so that nothing listens, which the proxy reports', async () => {
    const web = remoteOf(own.lab, 'web-2');
    await setService(web.control, 'tcp', { mode: 'dead' });
    const echo = async () => exchange(await connectTunnel(own.lab.proxy, serviceAt(web, 'tcp')), 'there?');
    await expect(echo()).rejects.toThrow();
    await setService(web.control, 'tcp', { mode: 'healthy' });
    expect(await echo()).toContain('there?');
  });

  it('and its control endpoint reports its mode and the number of requests', async () => {
    const web = remoteOf(own.lab, 'web-2');
    await setService(web.control, 'http', { mode: 'slow', delayMs: 1 });
    const before = (await readServices(web.control)).http;
    expect(before).toMatchObject({ mode: 'slow', delayMs: 1 });
    await exchange(await connectTunnel(own.lab.proxy, serviceAt(web, 'http')), HTTP);
    expect((await readServices(web.control)).http.requests).toBe(before.requests + 1);
    await setService(web.control, 'http', { mode: 'healthy' });
  });
});

describe('a node can be disconnected from the tailnet and connected again', () => {
  it('so that it is unreachable, and then reachable again', async () => {
    const web = remoteOf(own.lab, 'web-2');
    const { admin } = own.lab.tailnet;
    const node = (await listNodes(admin)).find(({ hostname }) => hostname === 'web-2');
    const echo = async () => exchange(await connectTunnel(own.lab.proxy, serviceAt(web, 'tcp')), 'there?');
    await changeNode(admin, node?.id ?? '', 'offline');
    const isCutOff = async () =>
      await echo().then(
        () => undefined,
        () => true,
      );
    expect(await until('web-2 to be cut off', isCutOff)).toBe(true);
    await changeNode(admin, node?.id ?? '', 'online');
    expect(await until('web-2 to be back', echo)).toContain('there?');
  });
});

describe('ending a lab', () => {
  it('leaves no process of it behind', async () => {
    const other = await startTestLab();
    const processes = other.folder.processes();
    expect(processes.filter(isRunning)).toHaveLength(6);
    await other.end();
    expect(processes.filter(isRunning)).toEqual([]);
    expect(processesOf(other.folder.path)).toEqual([]);
  });
});
