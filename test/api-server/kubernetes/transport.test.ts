import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { kubeClient } from '../../../lab/kube/client.ts';
import { DEFAULT_TIMEOUT_MS } from '../../../lab/process/wait.ts';
import { restConfigSource } from '../../../src/kubernetes/auth/config-source.ts';
import { openTransport } from '../../../src/kubernetes/transport/open-transport.ts';
import type { KubeRequest, KubeTransport } from '../../../src/kubernetes/transport/transport.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { tokenOf } from '../../support/cluster/account.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { kubeconfigText, makeFiles } from '../../support/kubernetes/wire-kubeconfig.ts';
import type { Files } from '../../support/kubernetes/wire-kubeconfig.ts';
import { relayTo } from '../../support/kubernetes/wire-relay.ts';
import type { Relay } from '../../support/kubernetes/wire-relay.ts';
import { kubeErrorOf, wireTransport } from '../../support/kubernetes/wire-transport.ts';

const { access: admin, kubeconfig } = sharedApiServer();
const client = kubeClient(admin);
const ports = { clock: systemClock, now: () => new Date() };

let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

const configMaps = () => `/api/v1/namespaces/${namespace}/configmaps`;

function settings(color: string, name = 'settings'): KubeRequest {
  return {
    verb: 'apply',
    path: `${configMaps()}/${name}`,
    query: { fieldManager: 'mesh-gateway-tests', force: 'true' },
    body: {
      type: 'application/apply-patch+yaml',
      value: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { color } },
    },
  };
}

type List = { readonly metadata: { readonly resourceVersion: string }; readonly items: readonly unknown[] };

async function list(transport: KubeTransport): Promise<List> {
  return (await transport.send({ verb: 'list', path: configMaps() })) as List;
}

async function watch(transport: KubeTransport, resourceVersion: string): Promise<AsyncIterator<unknown>> {
  const query = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion };
  const values = await transport.stream({ verb: 'watch', path: configMaps(), query });
  return values[Symbol.asyncIterator]();
}

type Event = {
  readonly type: string;
  readonly object: { readonly metadata: { readonly name: string; readonly resourceVersion: string } };
};

/** Reads a watch until `count` names have arrived; a busy server may end it, and it is started again then. */
async function namesOf(
  transport: KubeTransport,
  position: { readonly events: AsyncIterator<unknown>; readonly version: string },
  count: number,
): Promise<readonly string[]> {
  const seen = new Set<string>();
  let { events, version } = position;
  while (seen.size < count) {
    const next = await events.next();
    if (next.done) {
      events = await watch(transport, version);
      continue;
    }
    const { type, object } = next.value as Event;
    version = object.metadata.resourceVersion;
    if (type !== 'BOOKMARK') seen.add(object.metadata.name);
  }
  return [...seen].sort();
}

/** A transport through a relay that counts and resets connections. */
async function relayed(): Promise<{ readonly relay: Relay; readonly transport: KubeTransport }> {
  const relay = await relayTo(new URL(admin.server));
  const cluster = { server: relay.url, 'certificate-authority': admin.caFile };
  const config = makeFiles().write('config', kubeconfigText({ cluster, user: { token: admin.token } }));
  const configSource = await restConfigSource({ kubeconfig: config, environment: {}, ...ports });
  // The timeout of a request begins before it has a connection, and there are 200 at once.
  return { relay, transport: wireTransport('', { configSource, timeoutMs: DEFAULT_TIMEOUT_MS }) };
}

it('a kubeconfig is enough to list, apply, watch and delete', async () => {
  const configSource = await restConfigSource({ kubeconfig, environment: {}, ...ports });
  const transport = openTransport({ configSource, ...ports });
  const { metadata } = await list(transport);
  const events = await watch(transport, metadata.resourceVersion);
  expect(await transport.send(settings('blue'))).toMatchObject({
    kind: 'ConfigMap',
    data: { color: 'blue' },
  });
  expect(await events.next()).toMatchObject({
    value: { type: 'ADDED', object: { data: { color: 'blue' }, metadata: { name: 'settings' } } },
  });
  await transport.send(settings('red'));
  expect(await events.next()).toMatchObject({
    value: { type: 'MODIFIED', object: { data: { color: 'red' } } },
  });
  await transport.send({ verb: 'delete', path: `${configMaps()}/settings` });
  expect(await events.next()).toMatchObject({ value: { type: 'DELETED' } });
  const failed = kubeErrorOf(events.next());
  await transport.close();
  expect((await failed).reason).toBe('Aborted');
});

it('12 watches and 200 concurrent requests use one connection for each watch and four for the rest', async () => {
  const { relay, transport } = await relayed();
  const { metadata } = await list(transport);
  const watches = await Promise.all(
    Array.from({ length: 12 }, () => watch(transport, metadata.resourceVersion)),
  );
  const names = Array.from({ length: 200 }, (_, n) => `many-${n}`);
  await Promise.all(names.map(name => transport.send(settings('blue', name))));
  const version = metadata.resourceVersion;
  const received = watches.map(events => namesOf(transport, { events, version }, names.length));
  for (const one of await Promise.all(received)) expect(one).toEqual([...names].sort());
  expect(relay.open()).toBeLessThanOrEqual(12 + 4);
});

it('watches notice a cut connection, and resume where they were', async () => {
  const { relay, transport } = await relayed();
  const { metadata } = await list(transport);
  const watches = await Promise.all(
    Array.from({ length: 12 }, () => watch(transport, metadata.resourceVersion)),
  );
  relay.cut();
  for (const events of watches) expect((await kubeErrorOf(events.next())).reason).toBe('Unreachable');
  await transport.send(settings('green', 'after-the-cut'));
  const again = await watch(transport, metadata.resourceVersion);
  expect(await again.next()).toMatchObject({ value: { object: { metadata: { name: 'after-the-cut' } } } });
});

function writeAccount(files: Files, token: string): void {
  files.write('token', token);
  files.write('ca.crt', readFileSync(admin.caFile, 'utf8'));
}

it('a pod uses its token, and the next one after rotation', async () => {
  const files = makeFiles();
  const account = { namespace, name: 'default' };
  writeAccount(files, await tokenOf(client, account));
  const { hostname, port } = new URL(admin.server);
  const environment = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
  const configSource = await restConfigSource({
    kubeconfig: '',
    environment,
    serviceAccountFolder: files.folder,
    ...ports,
  });
  const transport = wireTransport('', { configSource });
  const forbidden = await kubeErrorOf(list(transport));
  expect([forbidden.reason, forbidden.status]).toEqual(['Forbidden', 403]);
  expect(forbidden.message).toContain(`system:serviceaccount:${namespace}:default`);
  writeAccount(files, 'no-token-at-all');
  const clock = { ...systemClock, now: () => systemClock.now() + 60_000 };
  const late = wireTransport('', { configSource, clock });
  expect((await kubeErrorOf(list(late))).reason).toBe('Unauthorized');
  writeAccount(files, await tokenOf(client, account));
  expect((await kubeErrorOf(list(late))).reason).toBe('Forbidden');
});

it.each([
  ['a kind that is not there', { verb: 'list', path: '/apis/none.example/v1/things' }, 'NotFound', /^404/],
  [
    'the rest of a list that never was',
    { verb: 'list', path: '/api/v1/pods', query: { limit: '1', continue: 'x' } },
    'Invalid',
    /^400 .* not valid/,
  ],
  [
    'what is no object',
    { ...settings('x'), body: { type: 'application/json-patch+json', value: 'x' } },
    'Invalid',
    /^4\d\d .*/,
  ],
] as const)('%s is refused in words of the server', async (_what, request, reason, words) => {
  const { transport } = await relayed();
  const error = await kubeErrorOf(transport.send(request));
  expect(error.reason).toBe(reason);
  expect(error.message.slice(`${request.verb} ${request.path}: `.length)).toMatch(words);
});
