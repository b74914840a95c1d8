import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { status } from '@grpc/grpc-js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GROUP } from '../../src/api/generated/kinds.ts';
import { readDocuments } from '../../src/api/yaml-documents.ts';
import { runExtensionServer } from '../../src/extension-server.ts';
import { eventually } from '../support/eventually.ts';
import { gatewayObject, meshBackend, named, route } from '../support/declared.ts';
import { makeFolders, writeWhole } from '../support/files/folder.ts';
import type { Folders } from '../support/files/folder.ts';
import { testClient } from '../support/grpc/client.ts';
import { RawConnection } from '../support/grpc/raw.ts';
import { PROJECT, typescript } from '../support/lab/command-line.ts';
import { endpoint, meshBinding, meshEndpoints, meshTailnet } from '../support/objects.ts';
import { startHere } from '../support/standalone/served-here.ts';
import { requestPath, startServed } from '../support/standalone/served-process.ts';
import type { ServedProcess } from '../support/standalone/served-process.ts';
import { generatedIn } from '../support/standalone/generated.ts';

const gateway = gatewayObject('Gateway', 'public', {
  gatewayClassName: 'mesh',
  listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
});
const WORLD = [
  gateway,
  // Proxies that others run need no control API.
  named(meshTailnet({ pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } }), 'one'),
  named(meshEndpoints(), 'web'),
  route('HTTPRoute', 'web'),
];

function declare(folder: string, ...objects: readonly object[]): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'all.yaml'), objects.map(object => JSON.stringify(object)).join('\n---\n'));
}

/** Standalone on the folders of a test. */
function start({ folder, state, generated }: Folders, flags: Readonly<Record<string, string>> = {}) {
  const folders = { 'resources-dir': folder, 'state-dir': state, 'gateway-dir': generated };
  return startServed('standalone', { ...folders, ...flags });
}

async function stop({ child, ended }: ServedProcess): Promise<number | string> {
  child.kill('SIGTERM');
  return ended;
}

describe('standalone', () => {
  it('logs Events of objects', async () => {
    const folders = makeFolders();
    declare(folders.folder, named(meshEndpoints(), 'web'));
    const { line } = await startHere(folders);
    expect(await line('event')).toMatchObject({
      level: 'warn',
      reason: 'TailnetNotFound',
      object: 'MeshEndpoints default/web',
      why: expect.stringContaining('example.ts.net') as unknown,
    });
  });

  it('logs that of a route whose rule also has a backend that cannot be mixed', async () => {
    const folders = makeFolders();
    const shop = { group: 'example.com', kind: 'Bucket', name: 'shop', port: 80 };
    const mixed = route('HTTPRoute', 'web', { rules: [{ backendRefs: [meshBackend(), shop] }] });
    declare(folders.folder, ...WORLD.slice(0, 3), mixed);
    const { line } = await startHere(folders);
    expect(await line('event')).toMatchObject({
      reason: 'MixedBackends',
      object: 'MeshEndpoints default/web',
    });
  });

  it('logs what it does at the level of LOG_LEVEL', async () => {
    const folders = makeFolders();
    const healthCheck = { enabled: true, type: 'TCP', interval: '1s' };
    // Nothing listens on port 1, so that the proxy of the tailnet cannot be reached.
    const pool = { mode: 'External', addresses: ['127.0.0.1:1'] };
    const checked = named(meshEndpoints({ endpoints: [endpoint({ healthCheck })] }), 'web');
    declare(folders.folder, named(meshTailnet({ pool }), 'one'), checked);
    const [quiet, loud] = await Promise.all(
      ['info', 'debug'].map((level, at) =>
        startHere(
          { ...folders, state: `${folders.state}-${at}`, generated: `${folders.generated}-${at}` },
          { 'log-level': level },
        ),
      ),
    );
    expect(await loud?.line('health check has no result')).toMatchObject({ level: 'debug' });
    expect(quiet?.lines.filter(({ level }) => level === 'debug')).toEqual([]);
  });

  it('is ready when it serves, has written the folder of Envoy Gateway, and exits with 0', async () => {
    const folders = makeFolders();
    declare(folders.folder, ...WORLD);
    const running = start(folders);
    const { port } = await running.line('serving Envoy Gateway and Envoy');
    const { healthPort, metricsPort } = await running.line('serving metrics and probes');
    expect(port).toBeGreaterThan(0);
    expect(await requestPath(healthPort, '/readyz')).toEqual([200, 'ok']);
    const { generated, state } = folders;
    await eventually(() =>
      expect([...generatedIn(generated).keys()]).toEqual([
        'Gateway/default/public',
        'HTTPRoute/default/web',
        'MeshBinding/default/public',
        'MeshEndpoints/default/web',
      ]),
    );
    // A file is written before the reconcile that asked for it is counted.
    await eventually(async () => {
      const [, metrics] = await requestPath(metricsPort, '/metrics');
      expect(metrics).toContain(
        'controller_runtime_reconcile_total{controller="mesh-binding",result="success"}',
      );
      expect(metrics).toContain('grpc_server_requests_total');
    });
    expect(await stop(running)).toBe(0);
    expect(running.lines.filter(({ level, msg }) => level !== 'info' && msg !== 'event')).toEqual([]);
    expect(running.output()).toBe('');
    expect(existsSync(generated)).toBe(true);
    expect(readdirSync(state)).toEqual(['installation-id']);
  });

  it('is not ready, and does not listen for calls, before the folder exists', async () => {
    const folders = makeFolders();
    const running = await startHere(folders);
    const { healthPort } = await running.line('serving metrics and probes');
    expect((await requestPath(healthPort, '/readyz'))[0]).toBe(503);
    await running.line('problem in a resource file');
    const [status, text] = await requestPath(healthPort, '/readyz');
    expect(status).toBe(503);
    expect(text).toContain('[-]folder failed: not synced yet');
    expect(text).toContain('[-]grpc failed: not listening');
    expect(await running.line('problem in a resource file')).toMatchObject({
      reason: 'FolderMissing',
    });
    declare(folders.folder, ...WORLD);
    await running.line('serving Envoy Gateway and Envoy');
    await running.stop();
  });

  it('exits with 0 also while it waits for its folder', async () => {
    const running = await startHere(makeFolders());
    await running.line('serving metrics and probes');
    await running.line('problem in a resource file');
    await expect(running.stop()).resolves.toBeUndefined();
  });

  it('logs what is wrong with a declaration, with file and line', async () => {
    const folders = makeFolders();
    declare(folders.folder, ...WORLD, { apiVersion: 'v1', kind: 'Service', metadata: { name: 'plain' } });
    await writeWhole(
      join(folders.folder, 'bad.yaml'),
      `kind: MeshEndpoints\napiVersion: ${GROUP}/v1alpha1\nspec: {}\n`,
    );
    const running = await startHere(folders);
    const wrong = await running.line('problem in a resource file');
    expect(wrong).toMatchObject({ reason: 'Invalid', file: 'bad.yaml', level: 'warn' });
    const left = await running.line('object is not written for Envoy Gateway');
    expect(left).toMatchObject({ object: 'Service/default/plain', file: 'all.yaml' });
    await running.stop();
  });

  it('makes Envoy Gateway translate again after a change, and keeps the revision after a restart', async () => {
    const folders = makeFolders();
    declare(folders.folder, ...WORLD);
    const first = await startHere(folders);
    await first.line('serving Envoy Gateway and Envoy');
    const binding = () => generatedIn(folders.generated).get('MeshBinding/default/public') ?? '';
    await eventually(() => expect(binding()).toContain('"attempt": 1'));
    const before = binding();
    await first.stop();
    const second = await startHere(folders);
    await second.line('serving Envoy Gateway and Envoy');
    await eventually(() => expect(binding()).toBe(before));
    await second.stop();
  });

  it("does not change a MeshBinding in a user's file, and logs that", async () => {
    const folders = makeFolders();
    declare(folders.folder, ...WORLD, named(meshBinding({ revision: 'ffffffff' }), 'public'));
    const running = await startHere(folders);
    await running.line('serving Envoy Gateway and Envoy');
    const binding = () => generatedIn(folders.generated).get('MeshBinding/default/public') ?? '';
    await eventually(() => expect(binding()).toContain('ffffffff'));
    await eventually(() =>
      expect(JSON.stringify(running.lines)).toContain('which mesh-gateway does not own'),
    );
    await running.stop();
  });
});

/** The error with which it does not start and exits. */
async function refusalOf(folders: Folders, flags: Readonly<Record<string, string>>): Promise<string> {
  try {
    const { started } = await startHere(folders, flags);
    return `serves at ${await started}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

describe('standalone that cannot start', () => {
  it('prints what is wrong, and exits', async () => {
    const running = start(makeFolders(), { 'grpc-adress': ':1' });
    expect(await running.ended).toBe(2);
    expect(running.output()).toContain('--grpc-adress: there is no such flag; did you mean --grpc-address?');
  });

  it.each([
    [{ 'log-level': 'loud' }, 'LOG_LEVEL: "loud" is not a level'],
    [{ 'sync-period': 'never' }, '--sync-period: "never" is not a duration'],
    [{ 'extension-server-address': '' }, 'EXTENSION_SERVER_ADDRESS: is not set, and GRPC_ADDRESS has port 0'],
  ])('reports what is wrong with %j', async (flags, message) => {
    expect(await refusalOf(makeFolders(), flags)).toContain(message);
  });

  it.each([
    ['gateway-dir', 'generated', 'GATEWAY_DIR'],
    ['gateway-dir', '', 'GATEWAY_DIR'],
    ['state-dir', 'below/state', 'STATE_DIR'],
  ])('reports that %s must not be inside of what it reads: %j', async (flag, below, setting) => {
    const folders = makeFolders();
    expect(await refusalOf(folders, { [flag]: join(folders.folder, below) })).toContain(`${setting}: `);
  });

  it('exits when the port for calls is in use, and names the setting', async () => {
    const folders = makeFolders();
    declare(folders.folder, ...WORLD);
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await new Promise(resolve => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo;
    const running = start(folders, { 'grpc-address': `127.0.0.1:${port}` });
    expect(await running.ended).toBe(2);
    expect(running.output()).toContain(`GRPC_ADDRESS: cannot listen on 127.0.0.1:${port}: EADDRINUSE`);
  });

  it('prints what is wrong with its state folder', async () => {
    const folders = makeFolders();
    writeFileSync(folders.state, 'a file');
    expect(await refusalOf(folders, {})).toContain(`the state folder ${folders.state} cannot be used`);
  });
});

describe('standalone with --print-envoy-gateway-config', () => {
  it('prints the configuration for its settings, and exits', async () => {
    const { folder, generated } = makeFolders();
    const [program = '', ...rest] = typescript('src/cli.ts', 'standalone', '--print-envoy-gateway-config');
    const args = [`--resources-dir=${folder}`, `--gateway-dir=${generated}`, '--grpc-address=:7005'];
    const { stdout } = await promisify(execFile)(program, [...rest, ...args], { cwd: PROJECT });
    const [document] = readDocuments(stdout).documents;
    expect(document?.value).toMatchObject({
      kind: 'EnvoyGateway',
      provider: { custom: { resource: { file: { paths: [generated] } } } },
      extensionManager: { service: { ip: { address: '127.0.0.1', port: 7005 } } },
    });
  });
});

describe('the extension server', () => {
  it('serves what a folder declares, and writes nothing for Envoy Gateway', async () => {
    const folders = makeFolders();
    declare(folders.folder, ...WORLD);
    const running = startServed('extension-server', {}, { RESOURCES_DIR: folders.folder });
    const { healthPort } = await running.line('serving metrics and probes');
    await running.line('serving Envoy Gateway and Envoy');
    expect(await requestPath(healthPort, '/readyz')).toEqual([200, 'ok']);
    expect(readdirSync(folders.root)).toEqual(['declared']);
    expect(await stop(running)).toBe(0);
  });

  it('has MAX_MESSAGE_SIZE and GRPC_KEEPALIVE_TIME of its environment', async () => {
    const { folder } = makeFolders();
    declare(folder, ...WORLD);
    const limits = { MAX_MESSAGE_SIZE: '1000', GRPC_KEEPALIVE_TIME: '50ms' };
    const running = startServed('extension-server', {}, { RESOURCES_DIR: folder, ...limits });
    const { port } = await running.line('serving Envoy Gateway and Envoy');
    const idle = await RawConnection.open(Number(port));
    await eventually(() => expect(idle.of('ping')).not.toEqual([]));
    const client = testClient(Number(port));
    const check = '/grpc.health.v1.Health/Check';
    expect(await client.call(check, Buffer.alloc(1001))).toEqual({
      code: status.RESOURCE_EXHAUSTED,
      details: 'Received message larger than max (1001 vs 1000)',
    });
    expect(await client.call(check, Buffer.alloc(0))).toMatchObject({ code: 0 });
    expect(await stop(running)).toBe(0);
  });

  it('prints what it needs without a folder and a cluster', async () => {
    const environment = { METRICS_ADDRESS: '127.0.0.1:0', HEALTH_ADDRESS: '127.0.0.1:0' };
    await expect(runExtensionServer({ args: [], environment }, 'test')).rejects.toThrow(
      'KUBECONFIG: is needed outside of a cluster: name a file',
    );
  });
});
