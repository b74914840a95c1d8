import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setService } from '../../../lab/tailnet/backends.ts';
import type { ServiceMode, ServiceName } from '../../../lab/tailnet/backends.ts';
import { readClusters, readConfigDump, requestThrough } from '../../../lab/gateway/envoy.ts';
import type { EnvoyEndpoint } from '../../../lab/gateway/envoy.ts';
import { withLogTail } from '../../../lab/process/process.ts';
import { putResources, removeResources } from '../../../lab/gateway/resource-files.ts';
import type { Gateway, ListenerName, RemoteNode } from '../../../lab/state.ts';
import { until } from '../../../lab/process/wait.ts';
import { callGrpc, textMessage } from '../../support/lab/grpc.ts';
import { gatewayOf, remoteOf, startTestLab } from '../../support/lab/lab.ts';
import type { TestLab } from '../../support/lab/lab.ts';
import { routeToPort } from '../../support/lab/routes.ts';
import type { RouteOptions } from '../../support/lab/routes.ts';
import { exchange, exchangeUdp } from '../../support/lab/tunnel.ts';

let own: TestLab;
let gateway: Gateway;
let web: RemoteNode;
beforeAll(async () => {
  own = await startTestLab({ gateway: {} });
  gateway = gatewayOf(own.lab);
  web = remoteOf(own.lab, 'web-1');
});
afterAll(async () => {
  await own.end();
});

const SOON = { everyMs: 10 };

type Put = { readonly service: ServiceName; readonly host?: string };

/** Writes a route to a service of web-1 on this machine, without the tailnet. */
async function putRoute(name: string, kind: RouteOptions['kind'], { service, host }: Put): Promise<string> {
  const port = web.ports[service] ?? 0;
  const objects = routeToPort(gateway, { name, kind, port, ...(host ? { hostnames: [host] } : {}) });
  await putResources(gateway, name, objects);
  return `127.0.0.1:${port}`;
}

/** Writes a route for NAME.test. */
const putHttpRoute = (name: string) => putRoute(name, 'HTTPRoute', { service: 'http', host: `${name}.test` });

async function statusOf(name: string): Promise<number> {
  return (await requestThrough(gateway.listeners.http, { host: `${name}.test` })).status;
}

/** Envoy applies a route some moments after Envoy Gateway has read it. */
async function untilStatus(name: string, wanted: number): Promise<number> {
  const poll = async (note: (seen: string) => void) => {
    const status = await statusOf(name);
    note(`status ${status}`);
    return status === wanted ? status : undefined;
  };
  return withLogTail(gateway, until(`${name} to be answered with ${wanted}`, poll, SOON));
}

async function endpointOf(cluster: string): Promise<EnvoyEndpoint | undefined> {
  return (await readClusters(gateway.admin)).find(({ name }) => name === cluster)?.endpoints[0];
}

describe('an HTTPRoute to a service', () => {
  const breakAndMend = async (broken: ServiceMode) => {
    await setService(web.control, 'http', broken);
    const status = await statusOf('web');
    await setService(web.control, 'http', { mode: 'healthy' });
    return [status, await statusOf('web')];
  };

  it('reaches it through the real Envoy, by its host', async () => {
    await putHttpRoute('web');
    await untilStatus('web', 200);
    const request = { host: 'web.test', path: '/hello' };
    const { status, body } = await requestThrough(gateway.listeners.http, request);
    expect(status).toBe(200);
    expect(JSON.parse(body)).toMatchObject({ backend: 'web-1', path: '/hello' });
    expect(await statusOf('other')).toBe(404);
  });

  it.each(['failing', 'dead'] as const)(
    'responds with 503 while the service is %s, then with 200',
    async mode => {
      expect(await breakAndMend({ mode })).toEqual([503, 200]);
    },
  );

  it('is in the clusters of Envoy, with the counters of its requests', async () => {
    const address = await putHttpRoute('counted');
    await untilStatus('counted', 200);
    const before = await endpointOf('httproute/default/counted/rule/0');
    expect(before).toMatchObject({ address, health: 'HEALTHY', failing: [] });
    await setService(web.control, 'http', { mode: 'failing' });
    await statusOf('counted');
    await setService(web.control, 'http', { mode: 'healthy' });
    const { rq_error: errors } = (await endpointOf('httproute/default/counted/rule/0'))?.stats ?? {};
    expect(errors).toBe((before?.stats['rq_error'] ?? 0) + 1);
  });

  it('is removed with its file', async () => {
    await putHttpRoute('passing');
    expect(await untilStatus('passing', 200)).toBe(200);
    await removeResources(gateway, 'passing');
    expect(await untilStatus('passing', 404)).toBe(404);
  });
});

/** A connection to a listener, which may not be forwarded yet. */
function connectTo(listener: ListenerName): Socket {
  const [host, port] = gateway.listeners[listener].split(':');
  return connect(Number(port), host);
}

const TRAFFIC = [
  {
    kind: 'GRPCRoute',
    service: 'grpc',
    host: 'grpc.test',
    call: async () => {
      const sent = textMessage('hello');
      const { message } = await callGrpc(connectTo('http'), 'grpc.test', '/lab.v1.Echo/Say', sent);
      return message.toString();
    },
  },
  {
    kind: 'TLSRoute',
    service: 'tls',
    host: 'web-1.example.ts.net',
    call: () => {
      const ca = readFileSync(web.caFile);
      return exchange(connectTls({ socket: connectTo('tls'), servername: web.fqdn, ca }), 'hello');
    },
  },
  { kind: 'TCPRoute', service: 'tcp', call: () => exchange(connectTo('tcp'), 'hello') },
  { kind: 'UDPRoute', service: 'udp', call: () => exchangeUdp(gateway.listeners.udp, 'hello') },
] as const;

describe('the other kinds of routes', () => {
  it.each(TRAFFIC)('reach their services: $kind', async ({ kind, call, ...put }) => {
    await putRoute(kind.toLowerCase(), kind, put);
    const isAnswered = async (note: (seen: string) => void) => {
      const answer = await call();
      note(answer);
      return answer.includes('hello');
    };
    const answered = until(`an answer by a ${kind}`, isAnswered, SOON);
    expect(await withLogTail(gateway, answered)).toBe(true);
  });
});

describe('the configuration of Envoy', () => {
  it('has all listeners of the Gateway', async () => {
    const dump = await readConfigDump(gateway.admin);
    const listeners = JSON.stringify(dump.find(part => part['@type'].endsWith('.ListenersConfigDump')));
    for (const address of Object.values(gateway.listeners))
      expect(listeners).toContain(`"port_value":${address.split(':').at(-1)}`);
  });
});

describe('an object that Envoy Gateway refuses', () => {
  it('is an error with its reason, and does not keep others from being read', async () => {
    const [, route] = routeToPort(gateway, { name: 'bad', kind: 'HTTPRoute', port: 99_999_999 });
    const refused = putResources(gateway, 'bad', route ? [route] : []);
    await expect(refused).rejects.toThrow('should be less than or equal to 65535');
    await putHttpRoute('after');
    expect(await untilStatus('after', 200)).toBe(200);
  });

  it('is replaced by its previous version, which keeps working', async () => {
    await putHttpRoute('kept');
    await untilStatus('kept', 200);
    const before = readFileSync(join(gateway.resources, 'kept.yaml'), 'utf8');
    const [, route] = routeToPort(gateway, { name: 'kept', kind: 'HTTPRoute', port: 99_999_999 });
    await expect(putResources(gateway, 'kept', route ? [route] : [])).rejects.toThrow('refused');
    expect(readFileSync(join(gateway.resources, 'kept.yaml'), 'utf8')).toBe(before);
    await putHttpRoute('next');
    expect(await untilStatus('next', 200)).toBe(200);
    expect(await statusOf('kept')).toBe(200);
  });
});
