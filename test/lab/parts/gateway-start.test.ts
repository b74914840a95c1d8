import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readConfigDump, requestThrough } from '../../../lab/gateway/envoy.ts';
import { startLab } from '../../../lab/lab.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import type { BinaryName } from '../../../lab/parts/parts.ts';
import { putResources } from '../../../lab/gateway/resource-files.ts';
import { gatewayOf, startTestLab } from '../../support/lab/lab.ts';
import type { TestLab } from '../../support/lab/lab.ts';

const ends: (() => Promise<void> | void)[] = [];
let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'mesh-lab-test-'));
  ends.push(() => rmSync(scratch, { recursive: true }));
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function listening(port: number, host: string): Promise<Server> {
  const server = createServer(socket => socket.on('error', () => undefined)).listen(port, host);
  await once(server, 'listening');
  ends.push(() => void server.close());
  return server;
}

async function labWithGateway(more: Parameters<typeof startTestLab>[0] = {}): Promise<TestLab> {
  const own = await startTestLab({ gateway: {}, ...more });
  ends.push(own.end);
  return own;
}

const pathOf = locateBinaries(process.env);

const options = {
  pathOf,
  searchPath: process.env['PATH'] ?? '',
  onStep: () => undefined,
  stop: new AbortController().signal,
};

/** Envoy behind a script that fails the first `times` times. */
function envoyFailing(times: number): (name: BinaryName) => string {
  const script = join(scratch, 'envoy');
  const lines = [
    '#!/bin/sh',
    `echo >> ${scratch}/starts`,
    `[ $(wc -l < ${scratch}/starts) -gt ${times} ] || { echo cannot start today >&2; exit 1; }`,
    `exec ${pathOf('envoy')} "$@"`,
  ];
  writeFileSync(script, `${lines.join('\n')}\n`, { mode: 0o755 });
  return name => (name === 'envoy' ? script : pathOf(name));
}

describe('a gateway', () => {
  it('is started again when Envoy does not start the first time', async () => {
    const { lab, folder } = await labWithGateway({ pathOf: envoyFailing(1) });
    const { status } = await requestThrough(gatewayOf(lab).listeners.http, { host: 'lab' });
    expect(status).toBe(404);
    expect(folder.processes().map(({ name }) => name)).toHaveLength(8);
    expect(folder.running()).toEqual(lab);
  });

  it("that never starts is an error with Envoy's log, and leaves nothing", async () => {
    const folder = join(scratch, 'lab');
    const start = startLab({ ...options, folder, pathOf: envoyFailing(9), gateway: {} });
    await expect(start).rejects.toThrow('cannot start today');
    expect(existsSync(folder)).toBe(false);
  });

  it.each(['0.0.0.0', '127.0.0.1'])('is not started while something listens on %s:18000', async host => {
    await listening(18_000, host);
    const steps: string[] = [];
    const start = startTestLab({ gateway: {}, onStep: step => steps.push(step) });
    await expect(start).rejects.toThrow(/^port 18000 is in use/);
    expect(steps).toEqual([]);
  });

  it('is kept when started again with the same options, and refused with others', async () => {
    const { lab, folder } = await labWithGateway();
    const again = { ...options, folder: folder.path };
    expect(await startLab({ ...again, gateway: {} })).toEqual(lab);
    await expect(startLab(again)).rejects.toThrow('a lab with no extension server is up');
    const other = startLab({ ...again, gateway: { extension: '127.0.0.1:1' } });
    await expect(other).rejects.toThrow('end it first');
  });
});

describe('a gateway with an extension server', () => {
  it('calls it, reads its kinds, and serves nothing before it responds', async () => {
    const extension = await listening(0, '127.0.0.1');
    const connected = once(extension, 'connection');
    const address = `127.0.0.1:${(extension.address() as AddressInfo).port}`;
    const gateway = gatewayOf((await labWithGateway({ gateway: { extension: address } })).lab);
    await connected;
    const kinds = ['MeshEndpoints', 'MeshBinding'].map(kind => ({
      apiVersion: 'mesh-gateway.dev/v1alpha1',
      kind,
      metadata: { name: 'web', namespace: 'default' },
      spec: {},
    }));
    await putResources(gateway, 'mesh', kinds);
    await expect(requestThrough(gateway.listeners.http, { host: 'lab' })).rejects.toThrow('ECONNREFUSED');
    const types = (await readConfigDump(gateway.admin)).map(part => part['@type'].split('.').at(-1));
    expect(types).toContain('BootstrapConfigDump');
  });
});
