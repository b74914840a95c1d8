import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runStatus } from '../../src/tools/status/command.ts';
import type { Status } from '../../src/tools/status/status.ts';
import { PROJECT } from '../support/lab/command-line.ts';
import { serveInstallation } from '../support/tools/api.ts';
import { find, healthyInstallation, set } from '../support/tools/installation.ts';
import { parseOutput } from '../support/tools/output.ts';

let out: string[] = [];
beforeEach(() => {
  out = [];
  vi.spyOn(console, 'log').mockImplementation((text: string) => void out.push(text));
});
afterEach(() => vi.restoreAllMocks());

async function status(kubeconfig: string, ...args: readonly string[]) {
  const code = await runStatus(['--kubeconfig', kubeconfig, ...args], {});
  return { code, out: out.join('\n') };
}

const POD = 'mesh-extension-server-1';
const METRICS = `# HELP mesh_gateway_eds_streams Open EDS streams of Envoys
mesh_gateway_eds_streams 4
mesh_gateway_eds_answers_total{answer="ack"} 118
mesh_gateway_eds_answers_total{answer="nack"} 1
mesh_gateway_hook_failures_total{hook="translation"} 0
grpc_server_requests_total{method="/envoygateway.extension.EnvoyGatewayExtension/PostTranslateModify",code="OK"} 9
grpc_server_requests_total{method="/grpc.health.v1.Health/Check",code="OK"} 420
`;
const NACK = {
  ...{ level: 'warn', time: '2026-11-26T11:58:00.000Z', gateway: 'default/public' },
  ...{ clusters: ['httproute/default/web/rule/0'], error: 'malformed IP address: web', nacks: 1 },
  msg: 'Envoy rejected endpoints',
  reason: 'EndpointsRejected',
};
const LOG = [
  JSON.stringify({
    level: 'info',
    time: '2026-11-26T11:00:00.000Z',
    msg: 'serving',
    secret: 'planted-7f3a9',
  }),
  JSON.stringify(NACK),
  'a line that is no JSON, with EndpointsRejected',
  '',
].join('\n');
const texts = (log: string, metrics = METRICS) => ({
  [`${POD}:8080/proxy/metrics`]: metrics,
  [`${POD}/log`]: log,
});
const nothingRefused = () => false;

describe('mesh-gateway status', () => {
  it('prints what docs/why-is-my-route-not-working.md shows', async () => {
    const { code, out } = await status(
      await serveInstallation(healthyInstallation(), nothingRefused, texts(LOG)),
    );
    const page = readFileSync(join(PROJECT, 'docs/why-is-my-route-not-working.md'), 'utf8');
    const [, block = ''] = /\$ npx mesh-gateway status\n([^]*?)```/.exec(page) ?? [];
    expect(`${out}\n`).toBe(block);
    expect(code).toBe(1);
  });

  it('exits with 0 where all is translated and nothing was rejected, and prints JSON', async () => {
    const log = LOG.replace(JSON.stringify(NACK), '');
    const kubeconfig = await serveInstallation(healthyInstallation(), nothingRefused, texts(log));
    const { code, out } = await status(kubeconfig, '--output', 'json');
    expect(parseOutput(out)).toEqual({
      version: 'v1',
      gateways: [
        {
          ...{ gateway: 'default/public', revision: '0123456789abcdef', isTranslated: true },
          ...{ acceptedSince: '2026-11-26T11:00:00Z', envoys: { ready: 1, total: 1 }, rejections: 0 },
        },
      ],
      servers: [
        {
          ...{ pod: POD, isReady: true, streams: 4, acknowledged: 118, rejected: 1 },
          ...{ translations: 9, failures: 0 },
        },
      ],
      rejections: [],
      unknown: [],
    });
    expect(code).toBe(0);
  });

  it('exits with 1 where Envoy Gateway has not translated the present revision', async () => {
    const installation = healthyInstallation();
    set(find(installation.declared, 'public', 'MeshBinding'), 'metadata.generation', 2);
    const { code, out } = await status(await serveInstallation(installation, nothingRefused, texts('')));
    expect(out).toMatch(/^default\/public +0123456789abcdef +NO /m);
    expect(code).toBe(1);
  });

  it('leaves out what it may not read, with the refusal', async () => {
    const refused = (path: string) => /\/(log|metrics)$|^\/api\/v1\/pods$/.test(path);
    const kubeconfig = await serveInstallation(healthyInstallation(), refused, texts(LOG));
    const { code, out } = await status(kubeconfig, '--output', 'json');
    const { gateways, servers, unknown } = parseOutput(out) as Status;
    expect(gateways.map(each => Object.keys(each))).toEqual([
      ['gateway', 'revision', 'isTranslated', 'acceptedSince'],
    ]);
    expect(servers).toEqual([{ pod: POD, isReady: true }]);
    expect(unknown.map(({ reason, about }) => [reason, about])).toEqual([
      ['NotRead', { kind: 'Pod' }],
      ['NotRead', { kind: 'Pod', name: POD }],
      ['NotRead', { kind: 'Pod', name: POD }],
    ]);
    expect(unknown.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^Envoys: you have no right to list/),
      expect.stringMatching(/^metrics of pod mesh-extension-server-1: .*no right to read/),
      expect.stringMatching(/^log of pod mesh-extension-server-1: .*no right to read/),
    ]);
    expect(code).toBe(0);
  });

  it('names the extension servers and MeshBindings that it may not list', async () => {
    const refused = (path: string) => /mesh-system\/pods$|meshbindings$/.test(path);
    const { out } = await status(await serveInstallation(healthyInstallation(), refused));
    expect(out).toContain('no Gateway has a route to MeshEndpoints, or MeshBindings cannot be read');
    expect(out).toMatch(/^not known: meshbindings cannot be read/m);
    expect(out).toMatch(/^not known: extension servers: you have no right to list/m);
  });

  it('fits a terminal of 80 columns, in colours, with a summary last', async () => {
    const kubeconfig = await serveInstallation(healthyInstallation(), nothingRefused, texts(LOG));
    const before = { isTTY: process.stdout.isTTY, columns: process.stdout.columns };
    onTestFinished(() => void Object.assign(process.stdout, before));
    Object.assign(process.stdout, { isTTY: true, columns: 80 });
    const lines = (await status(kubeconfig)).out.split('\n');
    expect(lines).toContain(`EXTENSION SERVER ${POD}`);
    expect(lines.join('\n')).toContain('\u001b[31m2026-11-26T11:58:00.000Z');
    const plain = lines.map(stripVTControlCharacters);
    expect(plain.filter(line => line.length > 80)).toEqual([]);
    expect(plain.at(-1)).toBe('1 of 1 translated, 1 rejected, 0 not known');
  });

  it('shows nothing else of a log', async () => {
    const kubeconfig = await serveInstallation(healthyInstallation(), nothingRefused, texts(LOG));
    const { out } = await status(kubeconfig);
    expect(LOG).toContain('planted-7f3a9');
    expect(out).not.toContain('planted-7f3a9');
  });

  it('refuses what it does not know', async () => {
    await expect(runStatus(['--output', 'xml'], {})).rejects.toThrow('neither text nor json');
    await expect(runStatus(['--kubeconfig', '/none'], {})).rejects.toThrow('none cannot be read');
  });
});
