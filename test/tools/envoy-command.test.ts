import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runStatus } from '../../src/tools/status/command.ts';
import type { Status } from '../../src/tools/status/status.ts';
import { runTrace } from '../../src/tools/trace/command.ts';
import type { Step } from '../../src/tools/trace/step.ts';
import { PROJECT } from '../support/lab/command-line.ts';
import { serveInstallation } from '../support/tools/api.ts';
import { serveEnvoyAdmin } from '../support/tools/envoy.ts';
import type { EnvoyParts } from '../support/tools/envoy.ts';
import { find, healthyInstallation, set } from '../support/tools/installation.ts';
import type { Json } from '../support/tools/installation.ts';
import { meshBackend, named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshBinding, meshEndpoints, meshGateway } from '../support/objects.ts';
import { relaysObject } from '../support/traffic/objects.ts';
import { ENVOY_POD } from '../../src/api/names.ts';
import { parseOutput } from '../support/tools/output.ts';

let out: string[] = [];
beforeEach(() => {
  out = [];
  vi.spyOn(console, 'log').mockImplementation((text: string) => void out.push(text));
});
afterEach(() => vi.restoreAllMocks());

const CLUSTER = 'httproute/default/web/rule/0';
const WEB = { address: '100.64.0.1', proxy: '10.96.0.7:1055' };
const EJECTED: EnvoyParts = {
  clusters: { [CLUSTER]: [{ ...WEB, health: { failed_outlier_check: true } }] },
};

/** Where the report of the mesh pod is, and the address of the Envoy. */
const [RELAY_REPORT, ENVOY_ADDRESS] = ['meshd-example-0:9003/proxy/relay', '10.244.0.7'];

/** A cluster with one running Envoy, whose admin interface is at a port of loopback. */
async function clusterWith(
  port: number,
  refused: (path: string) => boolean = () => false,
  front?: object,
): Promise<string> {
  const installation = healthyInstallation();
  const envoy = find(installation.envoys, 'envoy-default-public-1');
  set(envoy, 'status.phase', 'Running');
  set(envoy, 'status.podIPs', [{ ip: ENVOY_ADDRESS }]);
  if (front) set(find(installation.pods, 'meshd-example-0'), 'status.phase', 'Running');
  const portOf = (pod: string, wanted: number) =>
    pod === 'envoy-default-public-1' && wanted === 19_000 ? port : 0;
  const texts = {
    ...{ 'mesh-extension-server-1:8080/proxy/metrics': '', 'mesh-extension-server-1/log': '' },
    ...(front ? { [RELAY_REPORT]: JSON.stringify({ front }) } : {}),
  };
  return await serveInstallation(installation, refused, texts, portOf);
}

async function trace(kubeconfig: string, ...args: readonly string[]) {
  const code = await runTrace(
    ['http://web.example.com/', '--envoy', '--kubeconfig', kubeconfig, ...args],
    {},
  );
  return { code, out: out.join('\n') };
}

async function status(kubeconfig: string, ...args: readonly string[]) {
  const code = await runStatus(['--envoy', '--kubeconfig', kubeconfig, ...args], {});
  return { code, out: out.join('\n') };
}

const CLASS = 'gateway.envoyproxy.io/owning-gatewayclass';
const GATEWAY = { group: 'gateway.networking.k8s.io', kind: 'Gateway' };
const MORE = 'httproute/default/more/rule/0';
const HOST = 'shared.example.com';

/** A cluster in which two Gateways of the class mesh are merged, with a route to each, in one Envoy, and more objects. */
async function mergedCluster(parts: EnvoyParts, ...more: readonly object[]): Promise<string> {
  const installation = healthyInstallation();
  installation.declared.push(
    named(meshBinding({ attempt: 0, targetRefs: [{ ...GATEWAY, name: 'other' }] }), 'default/other') as Json,
    openGateway('default/other') as Json,
    route('HTTPRoute', 'default/more', {
      parentRefs: [{ name: 'other' }],
      rules: [{ backendRefs: [meshBackend()] }],
    }) as Json,
    ...(more as Json[]),
  );
  const envoy = find(installation.envoys, 'envoy-default-public-1');
  const labels = { ...ENVOY_POD.labels, [CLASS]: 'mesh' };
  set(envoy, 'metadata.labels', labels);
  set(envoy, 'status.phase', 'Running');
  const port = await serveEnvoyAdmin(parts);
  const texts = { 'mesh-extension-server-1:8080/proxy/metrics': '', 'mesh-extension-server-1/log': '' };
  return await serveInstallation(installation, undefined, texts, () => port);
}

/** What a page of the documentation prints below a command. */
function documented(page: string, command: string): string {
  const text = readFileSync(join(PROJECT, page), 'utf8');
  const [, block = ''] = text.split(`$ npx mesh-gateway ${command}\n`);
  return block.split('```')[0] ?? '';
}

describe('mesh-gateway trace --envoy', () => {
  it('prints what docs/why-is-my-route-not-working.md shows', async () => {
    const { code, out: printed } = await trace(await clusterWith(await serveEnvoyAdmin(EJECTED)));
    expect(`${printed}\n`).toBe(
      documented('docs/why-is-my-route-not-working.md', 'trace http://web.example.com/ --envoy'),
    );
    expect(code).toBe(1);
  });

  it('exits with 0 where Envoys have what the objects have', async () => {
    const port = await serveEnvoyAdmin({ clusters: { [CLUSTER]: [WEB] } });
    const { code, out: printed } = await trace(await clusterWith(port), '--output', 'json');
    const {
      ways: [way],
    } = parseOutput(printed) as { readonly ways: readonly { readonly steps: readonly object[] }[] };
    expect(Object.keys(way ?? {})).toEqual(['gateway', 'hasRule', 'reaches', 'steps']);
    expect(way?.steps.at(-1)).toEqual({
      ...{ is: 'ok', name: 'envoy' },
      text: 'envoy-default-public-1 has endpoint web at 100.64.0.1:8080 through 10.96.0.7:1055: HEALTHY',
    });
    expect(code).toBe(0);
  });

  it('goes on without what RBAC refuses', async () => {
    const port = await serveEnvoyAdmin(EJECTED);
    const refused = (path: string) => path.endsWith('/portforward');
    const { code, out: printed } = await trace(await clusterWith(port, refused));
    expect(printed.split('\n').at(-1)).toBe(
      '?       envoy     envoy-default-public-1: you have no right to forward ports of pods in namespace envoy-gateway-system (get and create pods/portforward)',
    );
    expect(code).toBe(0);
  });

  it.each<
    readonly [string, { readonly front: object; readonly refused?: string }, number, readonly string[]]
  >([
    ['has refused nothing', { front: { refused: {}, refusedCallers: [] } }, 0, []],
    [
      'has refused others',
      { front: { refused: { caller: 2, destination: 3 }, refusedCallers: ['10.0.0.1'] } },
      0,
      ['ok meshd-example-0 has refused 5 connections (caller 2, destination 3) since it started'],
    ],
    [
      'refuses the Envoy',
      { front: { refused: { caller: 2 }, refusedCallers: ['10.0.0.1', ENVOY_ADDRESS] } },
      1,
      [
        'broken meshd-example-0 refuses connections of the Envoy at 10.244.0.7, which is not among its callers: see the condition FrontReady of MeshTailnet example',
      ],
    ],
    [
      'may not be asked',
      { front: {}, refused: '/proxy/relay' },
      0,
      [
        'unknown meshd-example-0: you have no right to ask mesh pods in namespace mesh-system (get pods/proxy)',
      ],
    ],
    [
      'may not be listed',
      { front: {}, refused: '/mesh-system/pods' },
      0,
      ['unknown you have no right to list /api/v1/namespaces/mesh-system/pods'],
    ],
  ])('shows what a mesh pod %s', async (_what, { front, refused }, expected, lines) => {
    const port = await serveEnvoyAdmin({ clusters: { [CLUSTER]: [WEB] } });
    const isRefused = (path: string) => refused !== undefined && path.endsWith(refused);
    const { code, out: printed } = await trace(await clusterWith(port, isRefused, front), '--output', 'json');
    const {
      ways: [way],
    } = parseOutput(printed) as { readonly ways: readonly { readonly steps: readonly Step[] }[] };
    const ofPods = way?.steps.filter(({ text }) => / meshd-|^meshd-|mesh-system/.test(text)) ?? [];
    const textOf = ({ is, text, problem }: Step) => `${is} ${[text, problem?.fix ?? []].flat().join(': ')}`;
    expect(ofPods.map(textOf)).toEqual(lines);
    expect(code).toBe(expected);
  });

  it('names Envoys that it may not list', async () => {
    const { out: printed } = await trace(await clusterWith(1, path => path === '/api/v1/pods'));
    expect(printed).toMatch(/\? +envoy +you have no right to list \/api\/v1\/pods$/);
  });

  it('is for a cluster', async () => {
    await expect(trace('', '--file', 'web.yaml')).rejects.toThrow('leave it out, or --file');
  });
});

describe('mesh-gateway status --envoy', () => {
  it('prints what docs/commands.md shows', async () => {
    const { code, out: printed } = await status(await clusterWith(await serveEnvoyAdmin(EJECTED)));
    expect(`${printed.split('\n\nEXTENSION SERVER')[0]}\n`).toBe(
      documented('docs/commands.md', 'status --envoy'),
    );
    expect(code).toBe(1);
  });

  it('is about Envoys of Gateways with routes to MeshEndpoints, and names those without a Gateway', async () => {
    const installation = healthyInstallation();
    const labels = {
      'app.kubernetes.io/component': 'proxy',
      'app.kubernetes.io/managed-by': 'envoy-gateway',
    };
    const ofOther = {
      'gateway.envoyproxy.io/owning-gateway-namespace': 'default',
      'gateway.envoyproxy.io/owning-gateway-name': 'other',
    };
    const at = (name: string) => ({ name, namespace: 'envoy-gateway-system' });
    installation.envoys = [
      { metadata: { ...at('envoy-other'), labels: { ...labels, ...ofOther } }, status: { phase: 'Running' } },
      { metadata: { ...at('envoy-unknown'), labels }, status: { phase: 'Running' } },
      { metadata: { ...at('envoy-pending'), labels }, status: { phase: 'Pending' } },
    ];
    const { out: printed } = await status(await serveInstallation(installation), '--output', 'json');
    const { envoys, unknown } = parseOutput(printed) as Status;
    expect(envoys).toEqual([]);
    expect(unknown.map(({ text }) => text).filter(text => text.startsWith('Envoy '))).toEqual([
      'Envoy envoy-unknown: its labels name neither a Gateway nor a GatewayClass',
    ]);
  });

  it('knows the mesh pods that relay UDP', async () => {
    const dns = endpoint({ name: 'dns', meshIP: '100.64.0.7', port: 53, protocol: 'UDP' });
    const entry = { name: 'dns', status: 'Healthy', address: '100.64.0.7:53', relayPort: 20_053 };
    const installation = healthyInstallation();
    installation.declared.push(
      {
        ...named(meshEndpoints({ endpoints: [dns] }), 'default/dns'),
        status: { endpoints: [entry] },
      },
      route('UDPRoute', 'default/dns', {
        rules: [{ backendRefs: [meshBackend({ name: 'dns', port: 53 })] }],
      }) as Json,
      relaysObject('example', { '10.244.0.8': 'ready' }) as Json,
    );
    set(find(installation.envoys, 'envoy-default-public-1'), 'status.phase', 'Running');
    const relay = { address: '10.244.0.8', port: 20_053 };
    const clusters = { [CLUSTER]: [WEB], 'udproute/default/dns/rule/-1': [relay] };
    const port = await serveEnvoyAdmin({ clusters });
    const kubeconfig = await serveInstallation(installation, undefined, {}, () => port);
    const { out: printed } = await status(kubeconfig, '--output', 'json');
    expect((parseOutput(printed) as Status).differences).toEqual([]);
  });

  it('judges by the configuration that its flags give', async () => {
    const port = await serveEnvoyAdmin({ clusters: { [CLUSTER]: [WEB] } });
    const kubeconfig = await clusterWith(port);
    const { out: printed } = await status(kubeconfig, '--refused-addresses', WEB.address);
    expect(printed).toMatch(/^DIFFERENT: envoy-default-public-1 /m);
  });

  it('goes on without an Envoy that does not answer', async () => {
    const { code, out: printed } = await status(await clusterWith(1), '--output', 'json');
    const { envoys, differences, unknown } = parseOutput(printed) as Status;
    expect({ envoys, differences }).toEqual({ envoys: [], differences: [] });
    expect(unknown.map(({ text }) => text)).toEqual([
      expect.stringMatching(
        /^Envoy envoy-default-public-1: port-forward to port 19000 of pod .*: an error occurred forwarding 19000: connect ECONNREFUSED/,
      ),
    ]);
    expect(code).toBe(0);
  });

  it('goes on without an Envoy that answers with something else', async () => {
    const server = createServer((_, response) => void response.end('<html>'));
    await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { out: printed } = await status(await clusterWith((server.address() as AddressInfo).port));
    expect(printed).toMatch(/^not known: Envoy envoy-default-public-1: \/\w+ of Envoy .*not valid JSON$/m);
  });

  it('shows nothing of the configuration but names and versions', async () => {
    const secret = 'planted-3d9b1e';
    const host = { ...WEB, health: { [secret]: 'value' } };
    const port = await serveEnvoyAdmin({ clusters: { [CLUSTER]: [host], [secret]: [] }, node: secret });
    const kubeconfig = await clusterWith(port);
    await trace(kubeconfig);
    const { out: printed } = await status(kubeconfig, '--output', 'json');
    expect(printed).toContain(CLUSTER);
    expect(printed).not.toContain(secret);
  });
});

describe('an Envoy', () => {
  const ofPublic = {
    ...ENVOY_POD.labels,
    'gateway.envoyproxy.io/owning-gateway-namespace': 'default',
    'gateway.envoyproxy.io/owning-gateway-name': 'public',
  };
  /** A cluster in which pods have the labels of an Envoy of default/public, each with an admin interface. */
  async function clusterOf(ports: Readonly<Record<string, number>>): Promise<string> {
    const installation = healthyInstallation();
    installation.envoys = Object.keys(ports).map(path => {
      const [namespace = '', name = ''] = path.split('/');
      return { metadata: { namespace, name, labels: ofPublic }, status: { phase: 'Running' } };
    });
    const texts = { 'mesh-extension-server-1:8080/proxy/metrics': '', 'mesh-extension-server-1/log': '' };
    const portOf = (pod: string) =>
      Object.entries(ports).find(([path]) => path.endsWith(`/${pod}`))?.[1] ?? 0;
    return await serveInstallation(installation, undefined, texts, portOf);
  }

  it('is taken only from where Envoy Gateway deploys it, whatever labels a tenant gives a pod', async () => {
    const good = await serveEnvoyAdmin({ clusters: { [CLUSTER]: [WEB] } });
    const forged = await serveEnvoyAdmin(EJECTED);
    const pods = { 'tenant/forged': forged, 'envoy-gateway-system/envoy-1': good, 'default/envoy-2': good };
    const kubeconfig = await clusterOf(pods);
    const { code, out: printed } = await trace(kubeconfig);
    expect(printed).toContain('envoy-1 and 1 more has cluster');
    expect(printed).not.toContain('forged');
    expect(code).toBe(0);
    out = [];
    const { gateways, envoys } = parseOutput((await status(kubeconfig, '--output', 'json')).out) as Status;
    expect(envoys?.map(({ pod }) => pod)).toEqual(['envoy-1', 'envoy-2']);
    expect(gateways.map(each => each.envoys?.total)).toEqual([2]);
    out = [];
    const other = await trace(kubeconfig, '--envoy-gateway-namespace', 'tenant');
    expect(other.out).toContain('forged');
  });

  it('is read up to 16 MB, and at most four at a time', async () => {
    let [open, most] = [0, 0];
    const server = createServer((_, response) => {
      most = Math.max(most, ++open);
      response.once('close', () => {
        open--;
      });
      const part = Buffer.alloc(1024 * 1024, ' ');
      const write = (left: number) => {
        if (left === 0) response.end('{}');
        else
          response.write(part, () => {
            write(left - 1);
          });
      };
      write(9);
    });
    await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const names = Array.from({ length: 6 }, (_, at) => [`envoy-gateway-system/envoy-${at}`, port]);
    const { out: printed } = await trace(
      await clusterOf(Object.fromEntries(names) as Record<string, number>),
    );
    expect(printed.match(/clusters of Envoy .*: the response has more than \d+ bytes$/gm)).toHaveLength(6);
    expect(most).toBeLessThanOrEqual(4);
  });
});

describe('the Envoy of Gateways that are merged', () => {
  it('is compared for the Gateway that a request is traced through', async () => {
    const kubeconfig = await mergedCluster({ clusters: { [CLUSTER]: [WEB], [MORE]: [] } });
    expect((await trace(kubeconfig, '--from', 'default/public')).code).toBe(0);
    out = [];
    const { code, out: printed } = await trace(kubeconfig, '--from', 'default/other');
    expect(printed).toMatch(
      /^BROKEN +envoy +envoy-default-public-1 has no endpoint web at 100\.64\.0\.1:8080/,
    );
    expect(code).toBe(1);
  });

  it('is compared by the data path that the processes have', async () => {
    const direct = { address: WEB.address };
    const kubeconfig = await mergedCluster({ clusters: { [CLUSTER]: [direct], [MORE]: [direct] } });
    expect(await trace(kubeconfig, '--from', 'default/public', '--data-path', 'Direct')).toMatchObject({
      code: 0,
    });
  });

  it('has the rules of all these Gateways, by the name of their GatewayClass', async () => {
    const kubeconfig = await mergedCluster({ clusters: { [CLUSTER]: [WEB], [MORE]: [WEB] } });
    const { code, out: printed } = await status(kubeconfig, '--output', 'json');
    const { gateways, envoys = [], differences } = parseOutput(printed) as Status;
    expect(
      envoys.map(({ gateway, expected, clusters }) => ({ gateway, expected, found: clusters.length })),
    ).toEqual([{ gateway: 'mesh', expected: 2, found: 2 }]);
    expect(gateways.map(({ gateway, envoys: counts }) => ({ gateway, ...counts }))).toEqual([
      { gateway: 'default/public', ready: 1, total: 1 },
      { gateway: 'default/other', ready: 1, total: 1 },
    ]);
    expect({ code, differences }).toEqual({ code: 1, differences: [] });
  });

  it('has the settings of the oldest MeshGateway for a route on several of them', async () => {
    const parentRefs = ['public', 'other'].map(name => ({ name }));
    const rules = [{ backendRefs: [meshBackend()] }];
    const shared = route('HTTPRoute', 'default/shared', { hostnames: [HOST], parentRefs, rules });
    const decides = (gateway: string, mode: string, since: string) =>
      named(
        meshGateway({ targetRefs: [{ ...GATEWAY, name: gateway }], dataPath: { mode } }),
        `default/${gateway}`,
        { creationTimestamp: since },
      );
    const direct = { address: WEB.address };
    const clusters = { [CLUSTER]: [direct], [MORE]: [WEB], 'httproute/default/shared/rule/0': [direct] };
    const kubeconfig = await mergedCluster(
      { clusters },
      shared,
      decides('public', 'Direct', '2026-01-01T00:00:00Z'),
      decides('other', 'Proxy', '2026-01-02T00:00:00Z'),
    );
    const { out: printed } = await status(kubeconfig, '--output', 'json');
    expect((parseOutput(printed) as Status).differences).toEqual([]);
    for (const from of ['default/public', 'default/other']) {
      out = [];
      const code = await runTrace(
        [`http://${HOST}/`, '--envoy', '--kubeconfig', kubeconfig, '--from', from],
        {},
      );
      expect(out.join('\n')).toContain('envoy-default-public-1 has endpoint web at 100.64.0.1:8080: HEALTHY');
      expect(code).toBe(0);
    }
  });
});
