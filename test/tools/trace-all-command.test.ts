import { execFile } from 'node:child_process';
import { cpSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { documentedObjects } from '../../lab/install/installer.ts';
import { runTrace, TRACE_HELP } from '../../src/tools/trace/command.ts';
import { makeFolders } from '../support/files/folder.ts';
import { PROJECT, typescript } from '../support/lab/command-line.ts';
import { parseOutput } from '../support/tools/output.ts';
import { runHere } from '../support/tools/run-here.ts';
import type { Run } from '../support/tools/run-here.ts';

const EXAMPLES = join(PROJECT, 'examples', 'quickstart');

/** Runs `mesh-gateway trace --all` in this process. */
const traceAll = (...args: readonly string[]): Promise<Run> =>
  runHere(PROJECT, () => runTrace(['--all', ...args], process.env), { name: 'trace', help: TRACE_HELP });

/** Runs it as a process, with these variables. */
function traceAllWith(variables: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Run> {
  const [program = '', ...rest] = typescript('src/cli.ts', 'trace', '--all', ...args);
  return new Promise(resolve => {
    const child = execFile(
      program,
      rest,
      { cwd: PROJECT, env: { ...process.env, ...variables } },
      (_error, out, err) => resolve({ status: child.exitCode ?? -1, out, err }),
    );
  });
}

/** A copy of the quickstart with one more file. */
function quickstartWith(file: string, text: string): string {
  const { folder } = makeFolders();
  cpSync(EXAMPLES, folder, { recursive: true });
  writeFileSync(join(folder, file), text);
  return folder;
}

/** The tailnet of the quickstart as a cluster with mesh pods would store it. */
function tailnetWith(status: string, metadata = 'uid: 0a'): string {
  return `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshTailnet
metadata: {name: quickstart, ${metadata}}
spec: {tailnet: example.ts.net}
${status}
`;
}

type Routes = {
  readonly routes: readonly {
    readonly route: { readonly name: string };
    readonly rules: readonly { readonly policies: readonly object[] }[];
  }[];
};

describe('mesh-gateway trace --all', () => {
  it('prints the endpoints of every route of the quickstart', async () => {
    const { status, out } = await traceAllWith({}, '--file', EXAMPLES);
    expect(out).toMatch(/^GRPCRoute default\/greeter .*^HTTPRoute default\/web .*^TCPRoute default\/echo /ms);
    expect(out).toContain('through 127.0.0.1:1055');
    expect(status).toBe(0);
  });

  it('uses the data path, and exits with 3 where a route leads nowhere', async () => {
    const { status, out } = await traceAll('--data-path', 'Direct', '--file', EXAMPLES);
    expect(out).not.toContain('through');
    expect(status).toBe(0);
    const lost = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost}
spec:
  rules: [{backendRefs: [{group: mesh-gateway.dev, kind: MeshEndpoints, name: missing, port: 80}]}]
`;
    const wrong = await traceAll('--file', quickstartWith('lost.yaml', lost));
    expect(wrong.out).toMatch(/not used: BackendNotFound: .*default\/missing/);
    expect(wrong.status).toBe(3);
  });

  it('has the routes whose backends are only meant for MeshEndpoints', async () => {
    const stray = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: stray}
spec:
  rules: [{backendRefs: [{kind: MeshEndpoints, name: web, port: 18081}]}]
`;
    const folder = quickstartWith('stray.yaml', stray);
    const { status, out } = await traceAll('--file', folder);
    expect(out).toMatch(
      /^HTTPRoute default\/stray has no MeshEndpoints among its backends\n {2}not used: GroupMissing: spec\.rules\[0\]\.backendRefs\[0\]: .*: add group: mesh-gateway\.dev$/m,
    );
    expect(status).toBe(3);
    const { routes } = parseOutput((await traceAll('--output', 'json', '--file', folder)).out) as Routes;
    expect(routes.find(({ route }) => route.name === 'stray')).toMatchObject({
      reaches: 'none',
      rules: [],
      problems: [{ reason: 'GroupMissing' }],
    });
  });

  it('names the policy of a rule that kubectl has printed, by the age of policies', async () => {
    const [retries] = documentedObjects('policies.md', 'Retries');
    const created = (name: string, creationTimestamp: string) =>
      stringify({ ...retries, metadata: { name, namespace: 'default', creationTimestamp } });
    const folder = quickstartWith(
      'policies.yaml',
      [created('a', '2026-01-02T00:00:00Z'), created('b', '2026-01-01T00:00:00Z')].join('---\n'),
    );
    const { out, status } = await traceAll('--file', folder);
    expect(out).toMatch(
      /^ {2}cluster httproute\/default\/web\/rule\/0: .*\n {4}policy: BackendTrafficPolicy default\/b of the route$/m,
    );
    expect(out).toContain(
      'policy not applied: BackendTrafficPolicy default/a: BackendTrafficPolicy default/b is older',
    );
    expect(status).toBe(0);
    const { routes } = parseOutput((await traceAll('--output', 'json', '--file', folder)).out) as Routes;
    const policy = (name: string) => ({ kind: 'BackendTrafficPolicy', namespace: 'default', name });
    expect(routes.find(({ route }) => route.name === 'web')?.rules[0]?.policies).toMatchObject([
      { by: [policy('b')], isApplied: true },
      { by: [policy('a')], isApplied: false },
    ]);
  });

  it('uses the status and the metadata of objects that kubectl has printed', async () => {
    const condition =
      '{type: PoolReady, status: "False", reason: ImagePull, message: check spec.pool.image, lastTransitionTime: "2026-01-01T00:00:00Z"}';
    const folder = quickstartWith('tailnet.yaml', tailnetWith(`status: {conditions: [${condition}]}`));
    const { out, status } = await traceAll('--file', folder);
    expect(out).toMatch(/has no proxy: PoolReady is False, ImagePull: check spec\.pool\.image$/m);
    expect(status).toBe(1);
    const deleted = tailnetWith('', 'deletionTimestamp: "2026-01-01T00:00:00Z"');
    expect((await traceAll('--file', quickstartWith('tailnet.yaml', deleted))).out).toContain(
      'it is being deleted',
    );
  });

  it('finds the relays of the namespace of mesh-gateway', async () => {
    const text = `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshTailnet
metadata: {name: second}
spec: {tailnet: other.ts.net}
status: {pool: {ready: 1, desired: 1, proxyAddress: "10.96.0.7:1055"}}
---
apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshEndpoints
metadata: {name: dns}
spec:
  tailnet: other.ts.net
  endpoints: [{name: dns, meshIP: 100.64.0.7, meshFQDN: dns.other.ts.net, port: 53, protocol: UDP}]
status: {endpoints: [{name: dns, status: Healthy, address: "100.64.0.7:53", relayPort: 20053}]}
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: UDPRoute
metadata: {name: dns}
spec:
  parentRefs: [{name: dns}]
  rules: [{backendRefs: [{group: mesh-gateway.dev, kind: MeshEndpoints, name: dns, port: 53}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: dns}
spec: {gatewayClassName: quickstart, listeners: [{name: dns, port: 53, protocol: UDP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: relay, namespace: elsewhere, labels: {kubernetes.io/service-name: mesh-relay-second}}
addressType: IPv4
ports: null
endpoints: [{addresses: [10.1.0.1], conditions: {ready: true, serving: true, terminating: false}}]
`;
    const folder = quickstartWith('dns.yaml', text);
    const found = await traceAll('--namespace', 'elsewhere', '--file', folder);
    expect(found.out).toMatch(/10\.1\.0\.1:20053 +relays to 100\.64\.0\.7:53 /);
    expect(found.status).toBe(0);
    const without = await traceAll('--file', folder);
    expect(without.out).toMatch(/ProxyUnknown: .*Service mesh-relay-second has no endpoints/);
    expect(without.status).toBe(3);
  });

  it('has the reason why no listener takes a route, whose requests then reach nothing', async () => {
    const text = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: quickstart, sectionName: https}]
  rules: [{backendRefs: [{group: mesh-gateway.dev, kind: MeshEndpoints, name: web, port: 18081}]}]
`;
    const { out, status } = await traceAll('--file', quickstartWith('web.yaml', text));
    expect(out).toContain(
      'HTTPRoute default/web at no Gateway\n  not attached: ListenerNotFound: spec.parentRefs[0].sectionName: Gateway default/quickstart has no listener https',
    );
    expect(status).toBe(3);
  });

  it('prints JSON, with the reason of each problem and its object', async () => {
    const lost = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost}
spec:
  rules: [{backendRefs: [{group: mesh-gateway.dev, kind: MeshEndpoints, name: missing, port: 80}]}]
`;
    const { out } = await traceAll('--output', 'json', '--file', quickstartWith('lost.yaml', lost));
    const { routes } = parseOutput(out) as {
      readonly routes: readonly { readonly route: { readonly name: string } }[];
    };
    const about = { kind: 'HTTPRoute', namespace: 'default', name: 'lost' };
    expect(routes.find(({ route }) => route.name === 'lost')).toMatchObject({
      route: about,
      reaches: 'none',
      rules: [{ problems: [{ reason: 'BackendNotFound', about, at: 'spec.rules[0].backendRefs[0]' }] }],
    });
  });

  it('writes no files', async () => {
    const { root } = makeFolders();
    const folder = quickstartWith('more.yaml', '# nothing\n');
    const stamps = () => readdirSync(folder).map(name => [name, statSync(join(folder, name)).ctimeMs]);
    const before = stamps();
    const { status } = await traceAllWith(
      { TMPDIR: root, HOME: root, XDG_STATE_HOME: root },
      '--file',
      folder,
    );
    expect(status).toBe(0);
    expect(stamps()).toEqual(before);
    expect(readdirSync(root)).toEqual([]);
  });

  it('reports the file and line of an object that cannot be read', async () => {
    const broken =
      'apiVersion: mesh-gateway.dev/v1alpha1\nkind: MeshEndpoints\nmetadata: {name: b}\nspec: {}\n';
    const { status, err } = await traceAll('--file', quickstartWith('broken.yaml', broken));
    expect(err).toMatch(/\/broken\.yaml:\d+: .*spec\.tailnet/m);
    expect(status).toBe(2);
  });

  it.each([
    { args: [], message: 'cannot be read (ENOENT)' },
    { args: ['--file', 'nowhere'], message: 'nowhere does not exist' },
    { args: ['--data-path', 'Sideways', '--file', EXAMPLES], message: 'neither Proxy nor Direct' },
  ])('refuses $args', async ({ args, message }) => {
    const { status, err } = await traceAll(...args);
    expect(err).toContain(message);
    expect(status).toBe(2);
  });
});
