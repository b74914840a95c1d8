import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { isFree } from '../../../lab/process/ports.ts';
import { QUICKSTART_GATEWAY, QUICKSTART_HOST, QUICKSTART_PORTS } from '../../../lab/quickstart/quickstart.ts';
import { until } from '../../../lab/process/wait.ts';
import { LabFolder } from '../../../lab/state.ts';
import { listNodes } from '../../../lab/tailnet/tailnet.ts';
import { runCommand } from '../../support/lab/command-line.ts';
import { remoteOf, serviceAt } from '../../support/lab/lab.ts';
import { portsToTry, startStranger } from '../../support/lab/stranger.ts';
import { callGrpc, textMessage } from '../../support/lab/grpc.ts';
import { requestWeb, QUICKSTART_LISTENER, startQuickstart } from '../../support/lab/quickstart.ts';
import type { RunningQuickstart } from '../../support/lab/quickstart.ts';
import { exchange } from '../../support/lab/tunnel.ts';
import { generatedIn } from '../../support/standalone/generated.ts';

/** A second removal is applied after the first. */
const SOON = { everyMs: 20 };

let running: RunningQuickstart;
let remove = () => Promise.resolve();

beforeAll(async () => {
  running = await startQuickstart();
  remove = running.remove;
});

afterAll(() => remove());

async function backendOf(): Promise<string> {
  const { status, body } = await requestWeb();
  return status === 200 ? (JSON.parse(body) as { backend: string }).backend : String(status);
}

/** The backends that answer a number of requests. */
async function backends(count = 20): Promise<readonly string[]> {
  const answers: string[] = [];
  for (let at = 0; at < count; at++) answers.push(await backendOf());
  return [...new Set(answers)].sort();
}

const untilBackends = (...wanted: readonly string[]) =>
  until(
    `answers of ${wanted.join(', ')}`,
    async note => {
      const found = await backends();
      note(found.join(', '));
      return found.join() === wanted.join();
    },
    SOON,
  );

describe('npm start', () => {
  it('prints a curl line whose request goes through the mesh', async () => {
    const [line = ''] = /curl -H .*/.exec(running.output()) ?? [];
    const { code, output } = await runCommand(['sh', '-c', `${line} --silent --show-error`]);
    expect([code, (JSON.parse(output) as { host: string }).host]).toEqual([0, QUICKSTART_HOST]);
  });

  it('sends half of the requests to each device, and follows an edited weight', async () => {
    // The first check of a device may need longer than that of the other, which answered the first request.
    expect(await untilBackends('web-1', 'web-2')).toBe(true);
    running.edit(text => text.replace(/weight: 1\n$/, 'weight: 0\n'));
    expect(await untilBackends('web-1')).toBe(true);
    running.edit(text => text.replace(/weight: 0\n$/, 'weight: 1\n'));
    expect(await untilBackends('web-1', 'web-2')).toBe(true);
  });

  it('reports an invalid edit, and keeps the last valid version', async () => {
    running.edit(text => text.replace('port: 18082', 'port: 0'));
    await until('it to be reported', () => running.output().includes('is not a port'), SOON);
    expect(await backends()).toEqual(['web-1', 'web-2']);
    running.restore();
    expect(await untilBackends('web-1', 'web-2')).toBe(true);
  });

  it('reports why an endpoint gets no requests', async () => {
    running.edit(text => text.replace('          port: 18081', '          port: 18080'));
    const isReported = () => Promise.resolve(running.output().includes('PortNotFound'));
    expect(await until('it to be reported', isReported, SOON)).toBe(true);
    running.restore();
    expect(await untilBackends('web-1', 'web-2')).toBe(true);
  });

  it('fails for the share of a missing backend alone, as Envoy Gateway does, and reports why', async () => {
    running.edit(text => text.replace(/name: web\n( +port: 18082\n +weight)/, 'name: gone\n$1'));
    expect(await untilBackends('500', 'web-1')).toBe(true);
    const isReported = () => Promise.resolve(running.output().includes('BackendNotFound'));
    expect(await until('it to be reported', isReported, SOON)).toBe(true);
    running.restore();
    expect(await untilBackends('web-1', 'web-2')).toBe(true);
  });

  it('reports what Envoy Gateway refuses, and continues when it is corrected', async () => {
    running.edit(text =>
      text.replace('    - backendRefs:', '    - filters: [{ type: Nonsense }]\n      backendRefs:'),
    );
    const isReported = () => Promise.resolve(running.output().includes('reads no file until'));
    expect(await until('it to be reported', isReported, SOON)).toBe(true);
    expect(running.output()).toMatch(
      /corrected: web\.yaml: HTTPRoute\S* "web" .*Unsupported value: "Nonsense"/,
    );
    running.restore();
    running.edit(text => text.replace(/weight: 1\n$/, 'weight: 0\n'));
    expect(await untilBackends('web-1')).toBe(true);
    running.restore();
    expect(await untilBackends('web-1', 'web-2')).toBe(true);
  });

  it('routes TCP and gRPC, without any other route to these objects', async () => {
    const port = Number(QUICKSTART_GATEWAY.listeners.tcp);
    const overTcp = () => exchange(connect(port, '127.0.0.1'), 'hello');
    // The web service may be in use before these objects are.
    expect(await until('an answer over TCP', overTcp)).toContain('hello');
    const [host, httpPort] = QUICKSTART_LISTENER.split(':');
    const sent = textMessage('hello');
    const overGrpc = async () => {
      const socket = connect(Number(httpPort), host);
      const { message } = await callGrpc(socket, 'grpc.example.com', '/lab.v1.Echo/Say', sent);
      return message.toString() || undefined;
    };
    expect(await until('an answer over gRPC', overGrpc)).toContain('hello');
  });

  it('answers no device of its tailnet at the port of its proxy, or at any other', async () => {
    const lab = new LabFolder(join(running.state, 'lab'));
    const { tailnet, remotes } = lab.running() ?? {};
    if (!tailnet || !remotes) throw new Error('npm start has no lab');
    const stranger = await startStranger(tailnet);
    onTestFinished(() => stranger.end());
    const meshd = lab.processes().find(({ name }) => name === 'meshd');
    const nodes = await listNodes(tailnet.admin);
    const address = nodes.find(({ hostname }) => hostname === 'meshd')?.addresses[0] ?? '';
    const ports = portsToTry(meshd?.pid ?? 0, [QUICKSTART_PORTS.proxyPort]);
    const targets = ['169.254.169.254:80', QUICKSTART_LISTENER];
    const echo = serviceAt(remoteOf({ remotes }, 'web-1'), 'udp');
    expect(await stranger.answersAt({ address, ...ports, targets, echo })).toEqual([]);
  });
});

function untilStatus(wanted: number, host?: string, headers?: Readonly<Record<string, string>>) {
  return until(
    `status ${wanted}`,
    async note => {
      const { status, body } = await requestWeb(host, headers);
      note(`${status} ${body.slice(0, 100)}`);
      return status === wanted;
    },
    SOON,
  );
}

/** Waits until Envoy Gateway has the route under `count` names. */
function untilNames(count: number) {
  const folder = join(running.state, 'envoy-gateway');
  return until(
    `${count} names`,
    note => {
      const text = generatedIn(folder).get('HTTPRoute/default/web') ?? '';
      note(text);
      return Promise.resolve(text.split('\n---\n').length === count);
    },
    SOON,
  );
}

/** Sends requests until it is stopped; returns how often each status came. */
function load(headers: Readonly<Record<string, string>> = {}) {
  const statuses = new Map<number | string, number>();
  const over = new AbortController();
  const askOnce = async () => {
    const status = await requestWeb(QUICKSTART_HOST, headers).then(
      answer => answer.status,
      (error: unknown) => String(error),
    );
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  };
  const askers = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) {
      await askOnce();
      await new Promise(resolve => setTimeout(resolve, 20));
    }
  });
  return {
    end: async () => {
      over.abort();
      await Promise.all(askers);
      return Object.fromEntries(statuses);
    },
  };
}

const OTHER = 'other.example.com';
const withoutHosts = (text: string) => text.replace(/ {2}hostnames:\n {4}- web\.example\.com\n/, '');

const policy = (kind: string, spec: object, target: object = { kind: 'HTTPRoute', name: 'web' }) =>
  JSON.stringify({
    apiVersion: 'gateway.envoyproxy.io/v1alpha1',
    kind,
    metadata: { name: 'web', namespace: 'default' },
    spec: { targetRefs: [{ group: 'gateway.networking.k8s.io', ...target }], ...spec },
  });

describe('a field that is removed from a declaration', () => {
  it('is removed from a route, and no request fails', async () => {
    const { end } = load();
    expect((await requestWeb(OTHER)).status).toBe(404);
    running.edit(withoutHosts);
    expect(await untilStatus(200, OTHER)).toBe(true);
    // Until only the new name is left.
    expect(await untilNames(1)).toBe(true);
    const statuses = await end();
    console.log('statuses while a route lost its hostnames:', JSON.stringify(statuses));
    expect(Object.keys(statuses)).toEqual(['200']);
    running.restore();
    expect(await untilStatus(404, OTHER)).toBe(true);
  });

  it('is removed from a policy', async () => {
    const faultInjection = { abort: { httpStatus: 418, percentage: 100 } };
    const loadBalancer = { type: 'RoundRobin' };
    running.declare('policy.yaml', policy('BackendTrafficPolicy', { faultInjection, loadBalancer }));
    expect(await untilStatus(418)).toBe(true);
    running.declare('policy.yaml', policy('BackendTrafficPolicy', { loadBalancer }));
    expect(await untilStatus(200)).toBe(true);
    running.declare('policy.yaml', policy('BackendTrafficPolicy', { faultInjection }));
    expect(await untilStatus(418)).toBe(true);
    running.declare('policy.yaml', '');
    expect(await untilStatus(200)).toBe(true);
  });

  it('is removed from a Secret, and a policy applies to its route at every moment', async () => {
    const secret = (data: object) =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'keys', namespace: 'default' },
        data,
      });
    const guard = policy('SecurityPolicy', {
      apiKeyAuth: { credentialRefs: [{ name: 'keys' }], extractFrom: [{ headers: ['x-key'] }] },
    });
    const [one, two] = [{ one: btoa('first') }, { two: btoa('second') }];
    running.declare('secret.yaml', `${secret({ ...one, ...two })}\n---\n${guard}`);
    expect(await untilStatus(401)).toBe(true);
    expect(await untilStatus(200, QUICKSTART_HOST, { 'x-key': 'second' })).toBe(true);
    running.declare('secret.yaml', `${secret(one)}\n---\n${guard}`);
    expect(await untilStatus(401, QUICKSTART_HOST, { 'x-key': 'second' })).toBe(true);
    expect(await untilStatus(200, QUICKSTART_HOST, { 'x-key': 'first' })).toBe(true);

    const { end } = load({ 'x-key': 'wrong' });
    running.edit(withoutHosts);
    expect(await untilStatus(401, OTHER)).toBe(true);
    running.restore();
    expect(await untilStatus(404, OTHER)).toBe(true);
    expect(Object.keys(await end())).toEqual(['401']);
    running.declare('secret.yaml', '');
    expect(await untilStatus(200)).toBe(true);
  });
});

describe('npm start, once more and at its end', () => {
  it('is not started twice', async () => {
    const { code, output } = await runCommand(running.command);
    expect([code, output]).toEqual([2, expect.stringContaining('npm start runs already')]);
  });

  it('leaves nothing when it is ended', async () => {
    expect(await running.end('SIGINT')).toBe(0);
    const ports = [QUICKSTART_PORTS.proxyPort, ...Object.values(QUICKSTART_GATEWAY.listeners), 18_000];
    expect(await Promise.all(ports.map(isFree))).toEqual(ports.map(() => true));
  });
});
