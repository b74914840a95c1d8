import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startControlApi } from '../../../lab/control-api/control-api.ts';
import type { ControlApi } from '../../../lab/control-api/control-api.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { until } from '../../../lab/process/wait.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { COMPONENTS } from '../../../src/api/names.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { extensionServerAccess } from '../../../src/traffic/access.ts';
import { createAccount, writeKubeconfig } from '../../support/cluster/account.ts';
import { ownApiServer } from '../../support/cluster/own-api-server.ts';
import type { OwnApiServer } from '../../support/cluster/own-api-server.ts';
import { storeReleasedLease } from '../../support/cluster/released-lease.ts';
import { named, openGateway } from '../../support/declared.ts';
import { testClient } from '../../support/grpc/client.ts';
import { RawConnection } from '../../support/grpc/raw.ts';
import { endpoint, meshEndpoints, meshGateway, meshTailnet } from '../../support/objects.ts';
import { requestPath, startServed } from '../../support/standalone/served-process.ts';
import type { ServedProcess } from '../../support/standalone/served-process.ts';
import { parseExposition } from '../../support/telemetry/exposition.ts';

const NAMESPACE = 'mesh-system';
const TAILNETS = ['one', 'two', 'three'];
let own: OwnApiServer;
let admin: KubeClient;
let folder: string;
const apis: ControlApi[] = [];
let token: string;

beforeAll(async () => {
  own = await ownApiServer();
  admin = own.server.client;
  folder = mkdtempSync(join(tmpdir(), 'mesh-settings-'));
  await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  token = await createAccount(admin, { namespace: NAMESPACE, name: COMPONENTS.operator }, operatorAccess);
  await put(openGateway('default/public'), named(meshGateway(), 'default/edge'));
  for (const name of TAILNETS) await putTailnet(name);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  for (const api of apis) await api.close();
  await own.end();
});

async function put(...objects: readonly object[]): Promise<void> {
  for (const object of objects) await admin.apply(object as KubeObject);
}

/** A tailnet with a control API of its own, and a VIP service of the same name in it. */
async function putTailnet(name: string): Promise<void> {
  const domain = `${name}.ts.net`;
  const api = await startControlApi({ domain });
  apis.push(api);
  const { id, secret } = api.addClient(['devices:core', 'auth_keys', 'services']);
  const vipServices = [{ name, port: 443, targetEndpoint: 'web' }];
  await put(
    {
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: NAMESPACE, name: `oauth-${name}` } },
      stringData: { 'client-id': id, 'client-secret': secret },
    },
    named(
      meshTailnet({
        ...{ tailnet: domain, controlURL: api.url, syncInterval: '1s' },
        ...{ oauth: { secretRef: { name: `oauth-${name}` } } },
        pool: { mode: 'External', addresses: ['127.0.0.1:1055'] },
      }),
      name,
    ),
    named(
      meshEndpoints({
        ...{ tailnet: domain, endpoints: [endpoint({ meshFQDN: `web.${domain}` })] },
        serviceDiscovery: { vipServices },
      }),
      `default/${name}`,
    ),
  );
}

/** An operator that leads, with the rights that it has in a cluster. */
async function startOperator(more: Readonly<Record<string, string>> = {}): Promise<ServedProcess> {
  await storeReleasedLease(admin, NAMESPACE);
  const KUBECONFIG = writeKubeconfig(folder, admin, token);
  const operator = startServed('operator', {}, { KUBECONFIG, POD_NAMESPACE: NAMESPACE, ...more });
  await operator.line('became leader');
  return operator;
}

/** Ends a process, so that another one can lead. */
async function end({ child, ended }: ServedProcess): Promise<void> {
  child.kill('SIGTERM');
  await ended;
}

async function metricsOf(process: ServedProcess) {
  const { metricsPort } = await process.line('serving metrics and probes');
  const [, text] = await requestPath(metricsPort, '/metrics');
  return parseExposition(text);
}

/** The sum of the series of a metric of one controller. */
async function figure(process: ServedProcess, name: string, of: string): Promise<number> {
  const series = (await metricsOf(process)).get(name)?.series ?? [];
  return series
    .filter(({ labels }) => Object.values(labels).includes(of))
    .reduce((sum, { value }) => sum + value, 0);
}

type VipService = {
  readonly status: string;
  readonly reason?: string;
  readonly vipAddress?: string;
  readonly lastUpdated: string;
};

async function statusOf(name: string) {
  const object = await admin.get({
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    namespace: 'default',
    name,
  });
  const { status } = object as unknown as {
    readonly status?: {
      readonly conditions?: readonly { readonly type: string; readonly reason: string }[];
      readonly endpoints?: readonly { readonly name: string }[];
      readonly vipServices?: readonly VipService[];
    };
  };
  return status;
}

describe('CONTROLLER_MAX_CONCURRENT_RECONCILES', () => {
  it.each([
    ['1', 1, 2],
    ['10', 3, 0],
  ])(
    'of %s has %i of three reconciles run that wait for control APIs, and %i wait for them',
    async (limit, active, waiting) => {
      const operator = await startOperator({ CONTROLLER_MAX_CONCURRENT_RECONCILES: limit });
      await until('the VIP services to be registered', async note => {
        const statuses = await Promise.all(TAILNETS.map(statusOf));
        note(JSON.stringify(statuses));
        return statuses.every(status => status?.vipServices?.[0]?.status === 'Registered');
      });
      const repairs = apis.map(api => api.fail({ routes: ['services.list'], fault: { is: 'hang' } }));
      const seen = await until('reconciles that wait', async note => {
        const running = await figure(operator, 'controller_runtime_active_workers', 'vip-services');
        const queued = await figure(operator, 'workqueue_depth', 'vip-services');
        note(`${running} run, and ${queued} are queued`);
        return running + queued === TAILNETS.length && { running, queued };
      });
      for (const repair of repairs) repair();
      await end(operator);
      expect(seen).toEqual({ running: active, queued: waiting });
    },
  );
});

describe('SYNC_PERIOD', () => {
  it('is how often objects that do not change are reconciled', async () => {
    const ca = (data: object) => ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'ca' }, data },
    });
    const tls = { caRef: { name: 'ca' } };
    await put(
      ca({ 'ca.crt': 'no certificate' }),
      named(
        meshEndpoints({
          tailnet: 'one.ts.net',
          endpoints: [endpoint({ meshFQDN: 'web.one.ts.net', protocol: 'HTTPS', tls })],
        }),
        'default/secure',
      ),
    );
    const reconciles = (operator: ServedProcess) =>
      figure(operator, 'controller_runtime_reconcile_total', 'mesh-gateway');
    const readyIs = (reason: string) =>
      until(`the reason ${reason}`, async note => {
        const status = await statusOf('secure');
        note(JSON.stringify(status));
        return status?.conditions?.some(each => each.type === 'Ready' && each.reason === reason);
      });
    const rare = await startOperator({ SYNC_PERIOD: '1h' });
    await readyIs('InvalidReference');
    const first = await reconciles(rare);
    await end(rare);

    const often = await startOperator({ SYNC_PERIOD: '1s' });
    // Each object once at the start; one more for each second.
    await until('20 more reconciles', async note => {
      const count = await reconciles(often);
      note(String(count));
      return count >= first + 20;
    });
    await end(often);
    expect(first).toBeLessThan(20);
  });
});

describe('LOG_LEVEL', () => {
  it('debug adds lines that there are not by default', async () => {
    const healthCheck = { enabled: true, type: 'TCP', interval: '1s', timeout: '1s' };
    // Nothing listens at the port of the proxy.
    const pool = { mode: 'External', addresses: ['127.0.0.1:1'] };
    await put(
      named(meshTailnet({ tailnet: 'closed.ts.net', pool }), 'closed'),
      named(
        meshEndpoints({
          tailnet: 'closed.ts.net',
          endpoints: [endpoint({ meshFQDN: 'web.closed.ts.net', healthCheck })],
        }),
        'default/checked',
      ),
    );
    const quiet = await startOperator();
    await until('a check without a result', async () => {
      const count = await figure(quiet, 'mesh_gateway_health_check_unknown_total', 'closed');
      return count > 0;
    });
    await end(quiet);
    const loud = await startOperator({ LOG_LEVEL: 'debug' });
    expect(await loud.line('health check has no result')).toMatchObject({ level: 'debug' });
    await end(loud);
    expect(quiet.lines.filter(({ level }) => level === 'debug')).toEqual([]);
  });
});

describe('MAX_MESSAGE_SIZE and GRPC_KEEPALIVE_TIME', () => {
  it('limit the messages that an extension server takes, and have idle connections pinged', async () => {
    const account = { namespace: NAMESPACE, name: COMPONENTS.extensionServer };
    const home = mkdtempSync(join(folder, 'extension-server-'));
    const token = await createAccount(admin, account, extensionServerAccess);
    const server = startServed(
      'extension-server',
      {},
      {
        ...{ KUBECONFIG: writeKubeconfig(home, admin, token), POD_NAMESPACE: NAMESPACE },
        ...{ MAX_MESSAGE_SIZE: '1000', GRPC_KEEPALIVE_TIME: '50ms' },
      },
    );
    const port = Number((await server.line('serving Envoy Gateway and Envoy'))['port']);
    const connection = await RawConnection.open(port);
    await until('a ping', () => connection.of('ping').length > 0);
    const client = testClient(port);
    const codeOf = async (bytes: number) =>
      (await client.call('/grpc.health.v1.Health/Check', Buffer.alloc(bytes))).code;
    expect(await codeOf(1001)).toBe(status.RESOURCE_EXHAUSTED);
    expect(await codeOf(1000)).not.toBe(status.RESOURCE_EXHAUSTED);
    await end(server);
  });
});

describe('a VIP service', () => {
  it('is registered once autoRegister and its MeshGateway allow it, and states when it changed', async () => {
    const begin = Math.floor(Date.now() / 1000) * 1000;
    const vipServices = [{ name: 'late', port: 443, targetEndpoint: 'web' }];
    const late = (autoRegister: boolean) =>
      named(
        meshEndpoints({
          ...{ tailnet: 'one.ts.net', endpoints: [endpoint({ meshFQDN: 'web.one.ts.net' })] },
          serviceDiscovery: { autoRegister, vipServices },
        }),
        'default/late',
      );
    const enabled = (isEnabled: boolean) =>
      named(meshGateway({ serviceCoordination: { enabled: isEnabled } }), 'default/edge');
    const becomes = (is: string, reason?: string) =>
      until(`the service to be ${is}`, async note => {
        const [entry] = (await statusOf('late'))?.vipServices ?? [];
        note(JSON.stringify(entry));
        return entry?.status === is && entry.reason === reason && entry;
      });
    await put(late(false));
    const operator = await startOperator();
    await becomes('Pending', 'NotFound');
    await put(enabled(false), late(true));
    const waiting = await becomes('Pending', 'NotRegistered');
    expect(apis[0]?.state.services.current('svc:late')).toBeUndefined();
    await put(enabled(true));
    const registered = await becomes('Registered', 'NotServed');
    expect(apis[0]?.state.services.current('svc:late')?.addrs).toContain(registered.vipAddress);
    const times = [waiting, registered].map(({ lastUpdated }) => Date.parse(lastUpdated));
    expect([begin, ...times, Date.now()]).toEqual([begin, ...times, Date.now()].toSorted((a, b) => a - b));
    expect(registered.lastUpdated).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    await end(operator);
  });
});

describe('a tag selector', () => {
  it('with In finds the devices whose tags have one of its values', async () => {
    for (const hostname of ['blue', 'green', 'red'])
      apis[0]?.addDevice({ hostname, tags: [`tag:env-${hostname}`] });
    await put(
      named(
        meshEndpoints({
          ...{ tailnet: 'one.ts.net', endpoints: undefined },
          tagSelectors: [{ key: 'env', operator: 'In', values: ['blue', 'green'] }],
          endpointTemplate: { protocol: 'HTTP', port: 8080 },
        }),
        'default/found',
      ),
    );
    const operator = await startOperator();
    const names = await until('endpoints', async () => {
      const { endpoints = [] } = (await statusOf('found')) ?? {};
      return endpoints.length > 0 && endpoints.map(({ name }) => name);
    });
    expect(names).toEqual(['blue', 'green']);
    await end(operator);
  });
});
