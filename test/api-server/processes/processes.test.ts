import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { COMPONENTS, RELAY } from '../../../src/api/names.ts';
import { TARGETS_KEY, targetsVersion } from '../../../src/api/relay-targets.ts';
import { parseRelayStatus } from '../../../src/controllers/mesh-tailnet/relays/relay-status.ts';
import { until } from '../../../lab/process/wait.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { extensionServerAccess } from '../../../src/traffic/access.ts';
import { createAccount, writeKubeconfig } from '../../support/cluster/account.ts';
import { ownApiServer } from '../../support/cluster/own-api-server.ts';
import type { OwnApiServer } from '../../support/cluster/own-api-server.ts';
import {
  forbiddenToAll,
  FORBIDDEN_TO_READERS,
  mayDo,
  wordsOf,
} from '../../support/cluster/install/rights.ts';
import type { Right } from '../../support/cluster/install/rights.ts';
import { eventually } from '../../support/eventually.ts';
import { nextAddress } from '../../support/relay/running-relay.ts';
import { gatewayObject, named, route } from '../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { requestPath, startServed } from '../../support/standalone/served-process.ts';
import type { ServedProcess } from '../../support/standalone/served-process.ts';

const NAMESPACE = 'mesh-system';
let own: OwnApiServer;
let admin: KubeClient;
let folder: string;
const tokens: Record<string, string> = {};
beforeAll(async () => {
  own = await ownApiServer();
  admin = own.server.client;
  folder = mkdtempSync(join(tmpdir(), 'mesh-processes-'));
  await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  const { operator, extensionServer } = COMPONENTS;
  tokens[operator] = await createAccount(admin, { namespace: NAMESPACE, name: operator }, operatorAccess);
  tokens[extensionServer] = await createAccount(
    admin,
    { namespace: NAMESPACE, name: extensionServer },
    extensionServerAccess,
  );
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await own.end();
});

/** One of our processes, with the ServiceAccount that it has in a cluster. */
function start(command: string, account: string, more: Readonly<Record<string, string>> = {}): ServedProcess {
  const KUBECONFIG = writeKubeconfig(folder, admin, tokens[account] ?? '');
  return startServed(
    command,
    {},
    { KUBECONFIG, POD_NAMESPACE: NAMESPACE, PROXY_NAMESPACES: NAMESPACE, ...more },
  );
}

const operator = (more: Readonly<Record<string, string>> = {}) =>
  start('operator', COMPONENTS.operator, more);

/** Objects of all kinds that decide traffic, so that one Gateway has a mesh route. */
const WORLD = [
  gatewayObject('Gateway', 'public', {
    gatewayClassName: 'mesh',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
  }),
  // Proxies that others run need no control API.
  named(meshTailnet({ pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } }), 'example'),
  named(meshEndpoints(), 'web'),
  route('HTTPRoute', 'web'),
] as readonly KubeObject[];

const binding = { apiVersion: API_VERSION, kind: 'MeshBinding', namespace: 'default', name: 'public' };

async function revision(): Promise<string | undefined> {
  const answer = await admin.request('GET', await admin.pathOf(binding));
  return (answer.body as { readonly spec?: { readonly revision: string } }).spec?.revision;
}

async function becomesReady(process: ServedProcess): Promise<void> {
  const { healthPort } = await process.line('serving metrics and probes');
  await until('the process to be ready', async note => {
    const [status, text] = await requestPath(healthPort, '/readyz');
    note(text);
    return status === 200;
  });
}

/** The leader, for which it waits. */
function leaderOf(operators: readonly ServedProcess[]): Promise<ServedProcess> {
  const leads = ({ lines }: ServedProcess) =>
    lines.filter(({ msg }) => msg === 'became leader' || msg === 'lost leadership').at(-1)?.msg ===
    'became leader';
  return until('a leader', () => operators.find(leads));
}

/** The time of day of a process whose machine is an hour ahead. */
const ANOTHER_HOUR = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`
    const [Before, now] = [Date, Date.now];
    globalThis.Date = class extends Before {
      static now = () => now() + 3_600_000;
      constructor(...given) { super(...(given.length > 0 ? given : [now() + 3_600_000])); }
    };`)}`,
};

/** An API server that has just started refuses the first watches of a kind for a moment, with 429. */
const STARTING = /: 429 storage is \(re\)initializing/;

function troublesOf({ lines }: ServedProcess): readonly string[] {
  return lines
    .filter(({ level, error }) => level !== 'info' && !STARTING.test(String(error)))
    .map(line => JSON.stringify(line));
}

describe('the operator in a cluster', () => {
  it('keeps a MeshBinding for a Gateway with mesh routes, and follows what they change', async () => {
    const running = operator();
    await becomesReady(running);
    for (const object of WORLD) await admin.apply(object);
    const first = await until('the MeshBinding', revision);
    const secure = meshEndpoints({ endpoints: [endpoint({ protocol: 'HTTPS' })] });
    await admin.apply(named(secure, 'web') as KubeObject);
    await until('another revision', async () => (await revision()) !== first);
    await admin.remove({ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute', name: 'web' });
    const isGone = async () => (await revision()) === undefined;
    expect(await until('the MeshBinding to be deleted', isGone)).toBe(true);
    running.child.kill('SIGTERM');
    expect(await running.ended).toBe(0);
    expect(troublesOf(running).join('\n')).toBe('');
  });

  it('releases leadership when it ends', async () => {
    const first = operator({ POD_NAME: 'first' });
    await first.line('became leader');
    const second = operator({ POD_NAME: 'second' });
    await becomesReady(second);
    first.child.kill('SIGTERM');
    expect(await first.ended).toBe(0);
    await second.line('became leader');
    second.child.kill('SIGTERM');
    expect(await second.ended).toBe(0);
    expect([...troublesOf(first), ...troublesOf(second)]).toEqual([]);
  });

  it('has another leader soon after one of three was killed or frozen, even if clocks were changed', async () => {
    const three = [
      operator({ POD_NAME: 'a' }),
      operator({ POD_NAME: 'b', ...ANOTHER_HOUR }),
      operator({ POD_NAME: 'c' }),
    ];
    await Promise.all(three.map(becomesReady));
    const [, ahead] = three;
    expect(Date.parse(String(ahead?.lines[0]?.['time']))).toBeGreaterThan(Date.now() + 3_000_000);
    const first = await leaderOf(three);
    first.child.kill('SIGKILL');
    await first.ended;
    const two = three.filter(one => one !== first);
    const second = await leaderOf(two);
    second.child.kill('SIGSTOP');
    const rest = two.filter(one => one !== second);
    const third = await leaderOf(rest);
    second.child.kill('SIGCONT');
    await second.line('lost leadership');
    expect(third.lines.map(({ msg }) => msg)).not.toContain('lost leadership');
    for (const { child, ended } of two) {
      child.kill('SIGTERM');
      expect(await ended).toBe(0);
    }
  });

  it('reports a right that it lacks, and neither exits nor leads until its caches have synced', async () => {
    const rules = operatorAccess.cluster.map(rule => ({
      ...rule,
      resources: rule.resources.filter(resource => resource !== 'httproutes'),
    }));
    const name = 'mesh-blind-operator';
    tokens[name] = await createAccount(
      admin,
      { namespace: NAMESPACE, name },
      { ...operatorAccess, cluster: rules },
    );
    const blind = start('operator', name, { POD_NAME: 'blind' });
    const refused = await blind.line('the cluster cannot be read');
    expect(refused).toMatchObject({ kind: 'HTTPRoute', reason: 'Forbidden' });
    const { healthPort } = await blind.line('serving metrics and probes');
    expect((await requestPath(healthPort, '/readyz'))[0]).toBe(503);
    expect(await requestPath(healthPort, '/healthz')).toEqual([200, 'ok']);
    const seeing = operator({ POD_NAME: 'seeing' });
    await seeing.line('became leader');
    for (const { child, ended } of [blind, seeing]) {
      child.kill('SIGTERM');
      expect(await ended).toBe(0);
    }
    expect(blind.lines.map(({ msg }) => msg)).not.toContain('became leader');
  });
});

describe('the extension server in a cluster', () => {
  it('serves once its caches have synced, and exits with 0', async () => {
    const running = start('extension-server', COMPONENTS.extensionServer);
    await running.line('serving Envoy Gateway and Envoy');
    await becomesReady(running);
    running.child.kill('SIGTERM');
    expect(await running.ended).toBe(0);
    expect(troublesOf(running).join('\n')).toBe('');
  });
});

describe('the relay in a cluster', () => {
  it('reads its targets with the right to list and watch one ConfigMap', async () => {
    const [name, account] = ['mesh-relay-example', 'mesh-relay-account'];
    const one = { apiGroups: [''], resources: ['configmaps'], resourceNames: [name] };
    const rule = { ...one, verbs: ['list', 'watch'] } as const;
    tokens[account] = await createAccount(
      admin,
      { namespace: NAMESPACE, name: account },
      { cluster: [], own: [rule] },
    );
    const POD_IPS = nextAddress();
    const running = start('relay', account, { POD_IPS, RELAY_CONFIG_MAP: name });
    await running.line('the ConfigMap does not exist; the last relay targets are kept');
    const metadata = { namespace: NAMESPACE, name };
    const store = (targets: string) =>
      admin.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { [TARGETS_KEY]: targets } });
    const expectVersion = (targets: string) =>
      eventually(async () => {
        const response = await fetch(`http://${POD_IPS}:${RELAY.ports.http}/relay`);
        expect(parseRelayStatus(await response.text()).version).toBe(targetsVersion(targets));
      });
    for (const targets of ['20001 100.64.0.7:53\n', '20001 100.64.0.7:53\n20002 100.64.0.8:53\n', '']) {
      await store(targets);
      await expectVersion(targets);
    }
    running.child.kill('SIGTERM');
    expect(await running.ended).toBe(0);
    expect(troublesOf(running)).toHaveLength(1);
  });
});

const FORBIDDEN: readonly (readonly [account: string, right: string, Right])[] = [
  ...Object.values(COMPONENTS).flatMap(account =>
    forbiddenToAll(NAMESPACE).map(right => [account, right] as const),
  ),
  ...FORBIDDEN_TO_READERS.map(right => [COMPONENTS.extensionServer, right] as const),
].map(([account, right]) => [account, wordsOf(right), right]);

describe('the account of a process', () => {
  it.each(FORBIDDEN)('%s may not %s', async (account, _words, right) => {
    expect(await mayDo(admin.withToken(tokens[account] ?? ''), right)).toBe(false);
  });

  it('is refused by the API server', async () => {
    const asOperator = admin.withToken(tokens[COMPONENTS.operator] ?? '');
    const answers = await Promise.all([
      asOperator.request('GET', '/api/v1/namespaces/default/secrets'),
      asOperator.request('DELETE', '/api/v1/namespaces/default'),
      asOperator.request('GET', '/apis/coordination.k8s.io/v1/namespaces/mesh-system/leases/another'),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403]);
  });
});
