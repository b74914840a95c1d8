import { readFileSync } from 'node:fs';
import { connect as connectTls } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readServices, setService } from '../../../lab/tailnet/backends.ts';
import type { ServiceName } from '../../../lab/tailnet/backends.ts';
import type { RemoteNode } from '../../../lab/state.ts';
import { until } from '../../../lab/process/wait.ts';
import { callGrpc, textMessage } from '../../support/lab/grpc.ts';
import { remoteOf, serviceAt, startTestLab } from '../../support/lab/lab.ts';
import type { TestLab } from '../../support/lab/lab.ts';
import { exchange, connectTunnel, openDatagrams } from '../../support/lab/tunnel.ts';

let own: TestLab;
let web: RemoteNode;
let other: RemoteNode;
beforeAll(async () => {
  own = await startTestLab();
  web = remoteOf(own.lab, 'web-1');
  other = remoteOf(own.lab, 'web-2');
});
afterAll(async () => {
  await own.end();
});

const REQUEST = 'GET /hello HTTP/1.1\r\nhost: web\r\n\r\n';
const SERVING = 1;
const NOT_SERVING = 2;
const UNAVAILABLE = 14;

const tunnelTo = (service: ServiceName, remote = web) =>
  connectTunnel(own.lab.proxy, serviceAt(remote, service));

/** Without CAs it trusts those of Node. */
async function secureTunnelTo(service: ServiceName, ca?: Buffer, remote = web): Promise<TLSSocket> {
  const socket = await tunnelTo(service, remote);
  return connectTls({ socket, servername: remote.fqdn, ...(ca ? { ca } : {}) });
}

const statusIn = (answer: string) => /^HTTP\/1.1 (\d+)/.exec(answer)?.[1] ?? answer;
const ownAuthority = (remote = web) => readFileSync(remote.caFile);

async function callEcho(text: string, remote = web) {
  return callGrpc(await tunnelTo('grpc', remote), remote.fqdn, '/lab.v1.Echo/Say', textMessage(text));
}

/** The answer of the health service is one number behind its tag. */
async function grpcHealth(): Promise<number | undefined> {
  const method = '/grpc.health.v1.Health/Check';
  const { message } = await callGrpc(await tunnelTo('grpc'), web.fqdn, method, textMessage('lab.v1.Echo'));
  return message[1];
}

/** How each service of a remote node is requested through the proxy, and its answer when it is healthy and when it fails. */
const SERVICES = [
  {
    name: 'http',
    call: async (remote: RemoteNode) => statusIn(await exchange(await tunnelTo('http', remote), REQUEST)),
    well: '200',
    failing: '503',
  },
  {
    name: 'https',
    call: async (remote: RemoteNode) =>
      statusIn(await exchange(await secureTunnelTo('https', ownAuthority(remote), remote), REQUEST)),
    well: '200',
    failing: '503',
  },
  {
    name: 'grpc',
    call: async (remote: RemoteNode) => String((await callEcho('there?', remote)).status),
    well: '0',
    failing: String(UNAVAILABLE),
  },
  {
    name: 'tls',
    call: async (remote: RemoteNode) =>
      exchange(await secureTunnelTo('tls', ownAuthority(remote), remote), 'there?'),
    well: 'there?',
    failing: 'refused',
  },
  {
    name: 'tcp',
    call: async (remote: RemoteNode) => exchange(await tunnelTo('tcp', remote), 'there?'),
    well: 'there?',
    failing: 'refused',
  },
] as const;

/** A refused or closed connection is an answer; a hanging one is not. */
async function answerOf(call: (remote: RemoteNode) => Promise<string>): Promise<string> {
  return call(web).catch((error: unknown) => {
    if (/AbortError|TimeoutError|no answer for/.test(String(error))) throw error;
    return 'refused';
  });
}

describe.each(SERVICES)('the $name service behind the tailnet', ({ name, call, well, failing }) => {
  it.each([
    { mode: 'failing', answer: failing },
    { mode: 'dead', answer: 'refused' },
  ] as const)('answers $answer while it is $mode, and recovers', async ({ mode, answer }) => {
    await setService(web.control, name, { mode });
    const broken = await answerOf(call);
    await setService(web.control, name, { mode: 'healthy' });
    expect({ broken, mended: await answerOf(call) }).toEqual({ broken: answer, mended: well });
  });

  it('responds after one that was called later while it is slow', async () => {
    const answers: string[] = [];
    const requests = async () => (await readServices(web.control))[name].requests;
    const before = await requests();
    await setService(web.control, name, { mode: 'slow', delayMs: 60_000 });
    const slow = answerOf(call).then(answer => answers.push(`slow ${answer}`));
    const hasArrived = async () => (await requests()) > before;
    await until('the slow request to arrive', hasArrived, { everyMs: 5 });
    answers.push(`quick ${await call(other)}`);
    await setService(web.control, name, { mode: 'healthy' });
    await slow;
    expect(answers).toEqual([`quick ${well}`, `slow ${well}`]);
  });

  it('responds no sooner than its delay while it is slow', async () => {
    const delayMs = 300;
    await setService(web.control, name, { mode: 'slow', delayMs });
    const startMs = performance.now();
    const answer = await answerOf(call);
    const tookMs = performance.now() - startMs;
    await setService(web.control, name, { mode: 'healthy' });
    expect(answer).toBe(well);
    expect(tookMs).toBeGreaterThanOrEqual(delayMs);
  });
});

describe('the udp service behind the tailnet', () => {
  it('is silent while it fails, and responds when it is healthy again', async () => {
    const datagrams = await openDatagrams(own.lab.proxy, serviceAt(web, 'udp'));
    const requests = async () => (await readServices(web.control)).udp.requests;
    const before = await requests();
    await setService(web.control, 'udp', { mode: 'failing' });
    const firstAnswer = datagrams.next();
    datagrams.send('while it fails');
    const arrived = async () => (await requests()) > before;
    await until('the datagram to arrive', arrived, { everyMs: 10 });
    await setService(web.control, 'udp', { mode: 'healthy' });
    datagrams.send('when it is mended');
    expect(await firstAnswer).toContain('when it is mended');
    datagrams.close();
  });
});

describe('the grpc service behind the tailnet', () => {
  it('echoes a call', async () => {
    const { status, message } = await callEcho('over grpc');
    expect(status).toBe(0);
    expect(message.toString()).toContain('over grpc');
    expect(message.toString()).toContain(web.fqdn);
  });

  it('reports in its health service whether it fails', async () => {
    expect(await grpcHealth()).toBe(SERVING);
    await setService(web.control, 'grpc', { mode: 'failing' });
    expect(await grpcHealth()).toBe(NOT_SERVING);
    await setService(web.control, 'grpc', { mode: 'healthy' });
    expect(await grpcHealth()).toBe(SERVING);
  });
});

describe('the https service behind the tailnet', () => {
  it('has a certificate of its own CA, which no default trust store contains', async () => {
    const trusting = await exchange(await secureTunnelTo('https', ownAuthority()), REQUEST);
    expect(trusting).toContain('"backend":"web-1"');
    const careful = exchange(await secureTunnelTo('https'), REQUEST);
    await expect(careful).rejects.toThrow(/certificate/);
  });
});
