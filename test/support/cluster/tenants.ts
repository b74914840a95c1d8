import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { API_VERSION, GROUP } from '../../../src/api/generated/kinds.ts';
import { COMPONENTS } from '../../../src/api/names.ts';
import type { Access } from '../../../src/api/access.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { extensionServerAccess } from '../../../src/traffic/access.ts';
import type { ApiServerAlone } from '../../../lab/cluster/api-server-alone.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { until } from '../../../lab/process/wait.ts';
import type { WaitOptions } from '../../../lab/process/wait.ts';
import { testClient } from '../grpc/client.ts';
import type { TestClient } from '../grpc/client.ts';
import { listenForTest } from '../health/services.ts';
import type { Service } from '../health/services.ts';
import { startServed } from '../standalone/served-process.ts';
import type { ServedProcess } from '../standalone/served-process.ts';
import { createAccount, writeKubeconfig } from './account.ts';
import { ownApiServer } from './own-api-server.ts';
import { storeReleasedLease } from './released-lease.ts';

/** The tenant that takes whatever it can get, and the one whose figures count. */
export const [NOISY, QUIET] = ['noisy', 'quiet'];

const OPERATOR_NAMESPACE = 'mesh-system';
const TAILNET = 'example.ts.net';

/** An API server with two tenants. */
export type Tenants = {
  readonly server: ApiServerAlone;
  readonly admin: KubeClient;
  /** Starts the operator with the rights that it has in a cluster, and waits until it leads; it ends with the test. */
  readonly startOperator: (
    environment?: Readonly<Record<string, string>>,
    by?: readonly string[],
  ) => Promise<ServedProcess>;
  /** Starts an extension server with its rights, and returns a client of its gRPC; both end with the test. */
  readonly startExtensionServer: (environment?: Readonly<Record<string, string>>) => Promise<TestClient>;
  readonly end: () => Promise<void>;
};

/** Starts an API server with the namespaces of two tenants and of the operator. */
export async function startTenants(...flags: readonly string[]): Promise<Tenants> {
  const own = await ownApiServer(...flags);
  const admin = own.server.client;
  const folder = mkdtempSync(join(tmpdir(), 'mesh-tenants-'));
  for (const name of [OPERATOR_NAMESPACE, NOISY, QUIET])
    await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const environmentOf = async (name: string, access: Access) => {
    const token = await createAccount(admin, { namespace: OPERATOR_NAMESPACE, name }, access);
    const own = join(folder, name);
    mkdirSync(own);
    return { KUBECONFIG: writeKubeconfig(own, admin, token), POD_NAMESPACE: OPERATOR_NAMESPACE };
  };
  const ofOperator = await environmentOf(COMPONENTS.operator, operatorAccess);
  const ofExtensionServer = await environmentOf(COMPONENTS.extensionServer, extensionServerAccess);
  return {
    server: own.server,
    admin,
    startOperator: async (environment = {}, by = []) => {
      await storeReleasedLease(admin, OPERATOR_NAMESPACE);
      const operator = startServed(
        'operator',
        {},
        { ...ofOperator, POD_NAME: 'operator', ...environment },
        by,
      );
      await operator.line('became leader');
      return operator;
    },
    startExtensionServer: async (environment = {}) => {
      const server = startServed('extension-server', {}, { ...ofExtensionServer, ...environment });
      const { port } = await server.line('serving Envoy Gateway and Envoy');
      return testClient(Number(port));
    },
    end: async () => {
      rmSync(folder, { recursive: true, force: true });
      await own.end();
    },
  };
}

/** The MeshTailnet of both tenants, whose pool is a proxy of the test. */
export function tailnetBehind({ port }: Pick<Service, 'port'>): KubeObject {
  const pool = { mode: 'External', addresses: [`127.0.0.1:${port}`] };
  return {
    apiVersion: API_VERSION,
    kind: 'MeshTailnet',
    metadata: { name: 'example' },
    spec: { tailnet: TAILNET, pool },
  };
}

/** A MeshEndpoints of a tenant. */
export function tenantEndpoints(
  namespace: string,
  name: string,
  endpoints: readonly Readonly<Record<string, unknown>>[],
): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata: { namespace, name },
    spec: { tailnet: TAILNET, endpoints },
  };
}

/** A route of a tenant with as many rules to port 80 of a MeshEndpoints, which has its name by default. */
export function tenantRoute(namespace: string, name: string, { rules = 1, to = name } = {}): KubeObject {
  const backendRefs = [{ group: GROUP, kind: 'MeshEndpoints', name: to, port: 80 }];
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { namespace, name },
    spec: { parentRefs: [{ name }], rules: Array.from({ length: rules }, () => ({ backendRefs })) },
  };
}

/** Endpoints at addresses by their index, which are checked over HTTP. */
export function checkedEndpoints(
  count: number,
  addressOf: (index: number) => string,
  healthCheck: Readonly<Record<string, unknown>>,
): readonly Readonly<Record<string, unknown>>[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `e${index}`,
    meshIP: addressOf(index),
    meshFQDN: `e${index}.example.ts.net`,
    port: 80,
    protocol: 'HTTP',
    healthCheck: { enabled: true, ...healthCheck },
  }));
}

/** Reads a MeshEndpoints until its status is as awaited. */
export function statusWhen<T>(
  admin: KubeClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  pick: (status: TenantStatus) => T | undefined,
  options: WaitOptions = {},
): Promise<T> {
  const poll = async (note: (seen: string) => void) => {
    const path = await admin.pathOf({ apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace, name });
    const { body } = await admin.request('GET', path);
    const { status } = body as { readonly status?: TenantStatus };
    note(JSON.stringify(status ?? body).slice(0, 2000));
    return status && pick(status);
  };
  return until(`the status of ${namespace}/${name}`, poll, options);
}

/** What the tests read of the status of a MeshEndpoints. */
export type TenantStatus = {
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
  }[];
  readonly endpoints?: readonly {
    readonly name: string;
    readonly status: string;
    readonly error?: string;
    readonly lastChecked?: string;
    readonly relayPort?: number;
    readonly resolvedAddresses?: readonly string[];
  }[];
};

/** The HTTP status of a service on the mesh by its address, such as 100.64.0.1:8080, or that it stays silent. */
export type Respond = (target: string) => number | 'silence';

/** Starts an HTTP CONNECT proxy that is also every service behind it. */
export function startMeshProxy(respond: Respond): Promise<Service> {
  return listenForTest(createServer({ noDelay: true }, connection => void serve(connection, respond)));
}

async function serve(connection: Socket, respond: Respond): Promise<void> {
  const [head] = (await once(connection, 'data').catch(() => [])) as Buffer[];
  const [, target] = /^CONNECT (\S+) /.exec(head?.toString('latin1') ?? '') ?? [];
  if (target === undefined) {
    connection.destroy();
    return;
  }
  connection.write('HTTP/1.1 200 OK\r\n\r\n');
  connection.once('data', () => {
    const response = respond(target);
    if (response === 'silence') return;
    connection.end(`HTTP/1.1 ${response} Status\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
  });
}

/** Prints a figure of the quiet tenant, without and with the noisy one. */
export function printFigure(
  what: string,
  figures: { readonly alone: string; readonly beside: string },
): void {
  console.log(`${what}: ${figures.alone} alone, ${figures.beside} beside the noisy tenant`);
}
