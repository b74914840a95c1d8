import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { guard } from '../../../lab/process/guard.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { freePorts } from '../../../lab/process/ports.ts';
import { isRunning, withLogTail, startProcess, stopProcess } from '../../../lab/process/process.ts';
import type { ProcessRecord } from '../../../lab/process/process.ts';
import { meshBackend, named, route } from '../../support/declared.ts';
import { PROJECT } from '../../support/lab/command-line.ts';
import { programPath } from '../../support/programs/programs.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';

const client = locateBinaries(process.env)('extension-peer');

const endpoints = (name: string, protocol: string, addresses: readonly string[]) =>
  named(
    meshEndpoints({
      endpoints: addresses.map((meshIP, at) =>
        endpoint({ name: `e${at}`, meshIP, meshFQDN: `e${at}.example.ts.net`, protocol }),
      ),
    }),
    name,
  );

const OBJECTS = {
  tailnet: meshTailnet({ pool: { mode: 'External', addresses: ['10.0.0.9:1055'] } }),
  web: endpoints('web', 'HTTP', ['100.64.0.1', '100.64.0.2']),
  webRoute: route('HTTPRoute', 'web', { rules: [{ backendRefs: [meshBackend({ name: 'web' })] }] }),
  greeter: endpoints('greeter', 'gRPC', ['100.64.0.3']),
  greeterRoute: route('GRPCRoute', 'greeter', {
    rules: [{ backendRefs: [meshBackend({ name: 'greeter' })] }],
  }),
};

const scratch = mkdtempSync(join(tmpdir(), 'mesh-client-test-'));
const folder = join(scratch, 'folder');
const fileOf = (name: string) => join(folder, `${name}.yaml`);

let server: ProcessRecord;
let address: string;

beforeAll(async () => {
  mkdirSync(folder);
  for (const [name, object] of Object.entries(OBJECTS)) writeFileSync(fileOf(name), JSON.stringify(object));
  const [port, metrics, health] = await freePorts(3);
  address = `127.0.0.1:${port}`;
  server = startProcess({
    name: 'extension-server',
    command: process.execPath,
    args: [programPath('src/cli.ts'), 'extension-server'],
    environment: {
      PATH: process.env['PATH'] ?? '',
      RESOURCES_DIR: folder,
      GRPC_ADDRESS: address,
      METRICS_ADDRESS: `127.0.0.1:${metrics}`,
      HEALTH_ADDRESS: `127.0.0.1:${health}`,
    },
    folder: PROJECT,
    log: join(scratch, 'log'),
  });
  const cleaner = guard(['kill', '-KILL', '--', `-${server.pid}`], PROJECT);
  afterAll(() => cleaner.release());
  await run('serving');
});

afterAll(async () => {
  await stopProcess(server);
  rmSync(scratch, { recursive: true });
});

/** Runs the client to its end; returns its output, even if it found problems. */
async function run(mode: string, ...args: readonly string[]): Promise<unknown> {
  const ran = promisify(execFile)(client, [mode, '--address', address, ...args]);
  const { stdout } = await withLogTail(
    server,
    ran.catch((error: unknown) => {
      const { stdout } = error as { readonly stdout?: string };
      if (stdout) return { stdout };
      throw error;
    }),
  );
  return JSON.parse(stdout);
}

/** A file with one cluster and its object for the client. */
function resources(cluster: string, object: object): string {
  const path = join(scratch, `resources-${cluster.replaceAll('/', '-')}.json`);
  writeFileSync(path, JSON.stringify([{ cluster, object }]));
  return path;
}

const WEB = 'httproute/default/web/rule/0';

describe('the extension server with a client in Go', () => {
  it.each([
    { cluster: WEB, object: OBJECTS.web, addresses: ['100.64.0.1:8080', '100.64.0.2:8080'] },
    { cluster: 'grpcroute/default/greeter/rule/0', object: OBJECTS.greeter, addresses: ['100.64.0.3:8080'] },
  ])('answers everything as it must about $cluster', async ({ cluster, object, addresses }) => {
    const services = [
      'envoy.service.endpoint.v3.EndpointDiscoveryService',
      'envoygateway.extension.EnvoyGatewayExtension',
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'grpc.reflection.v1alpha.ServerReflection',
    ];
    expect(await run('check', '--resources', resources(cluster, object))).toEqual({
      health: {
        check: 'SERVING',
        checkUnknown: 'NotFound',
        watch: 'SERVING',
        watchUnknown: 'SERVICE_UNKNOWN',
      },
      reflection: { v1: services, v1alpha: services },
      hooks: {
        Route: 'unchanged',
        VirtualHost: 'unchanged',
        HTTPListener: 'unchanged',
        Endpoints: 'unchanged',
        Cluster: 'unchanged',
        Translation: 'changed',
        'Translation of others': 'unchanged',
      },
      endpoints: addresses,
      problems: [],
    });
  });

  it('returns 8192 clusters of a translation, and changes those with mesh backends', async () => {
    const args = ['--resources', resources(WEB, OBJECTS.web), '--calls', '3'];
    expect(await run('translation', ...args)).toMatchObject({ calls: 3, verified: 3 });
  });

  it('sends an added endpoint to every Envoy that watches its cluster', async () => {
    const from = join(scratch, 'staged');
    const more = endpoints('web', 'HTTP', ['100.64.0.1', '100.64.0.2', '100.64.0.9']);
    writeFileSync(from, JSON.stringify(more));
    const change = { from, to: fileOf('web'), cluster: WEB, address: '100.64.0.9' };
    const args = ['--address', address, '--resources', resources(WEB, OBJECTS.web), '--envoys', '3'];
    const child = spawn(client, ['eds', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end(`${JSON.stringify(change)}\n`);
    const lines = (await child.stdout.setEncoding('utf8').toArray()).join('').trim().split('\n');
    expect(lines.map(line => JSON.parse(line) as unknown)).toEqual([
      expect.objectContaining({ streams: 3, withEndpoints: 3 }),
      { cluster: WEB, tookMs: [expect.any(Number), expect.any(Number), expect.any(Number)] },
    ]);
  });

  it('is still running', () => {
    expect(isRunning(server)).toBe(true);
  });
});
