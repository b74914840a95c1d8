import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { ENVOY_GATEWAY } from '../../../lab/cluster/envoy-gateway.ts';
import { withEnvoyAdmin } from '../../../lab/cluster/gateway.ts';
import { NETWORK } from '../../../lab/cluster/network.ts';
import { readConfigDump } from '../../../lab/gateway/envoy.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { freePorts } from '../../../lab/process/ports.ts';
import { killProcess } from '../../../lab/process/process.ts';
import type { ProcessRecord } from '../../../lab/process/process.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { extensionServerIn } from '../../../src/api/names.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { remoteEndpoints } from '../../support/cluster/install/mesh.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { eventually } from '../../support/eventually.ts';
import { ownFolder } from '../../support/lab/lab.ts';

const cluster = testCluster();
const own = ownFolder();

/** The other extension: it gives the cluster of one route an EDS configuration of its own, and returns all others as they came. */
const OTHER = 'other';

let scene: InstallScene;
let address: string;
let other: ProcessRecord;
let original: string;
beforeAll(async () => {
  scene = await installScene();
  await scene.use();
  await scene.answerOf('web-1');
  own.folder.create();
  const [port = 0] = await freePorts(1);
  address = `${NETWORK.outer}:${port}`;
  original = await readConfig();
  other = startOther();
});
afterAll(async () => {
  await writeConfig(original);
  await scene.end();
  await own.end();
});

function startOther(): ProcessRecord {
  const file = join(own.folder.path, 'resources.json');
  const object = remoteEndpoints(cluster, 'web-1', `${scene.namespace}/web`);
  writeFileSync(file, JSON.stringify([{ cluster: clusterOf('web'), object }]));
  const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const target = extensionServerIn(PLACE.system);
  const args = ['serve', `--address=${address}`, `--resources=${file}`, `--eds-target=${target}`];
  return starter.start(OTHER, 'extension-peer', args);
}

const clusterOf = (route: string) => `httproute/${scene.namespace}/${route}/rule/0`;

const CONFIG_MAP = {
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  ...{ namespace: ENVOY_GATEWAY.namespace, name: 'envoy-gateway-config' },
};
const KEY = 'envoy-gateway.yaml';

async function readConfig(): Promise<string> {
  const { data } = (await scene.client.get(CONFIG_MAP)) as {
    readonly data?: Readonly<Record<string, string>>;
  };
  return data?.[KEY] ?? '';
}

async function writeConfig(text: string): Promise<void> {
  const patch = JSON.stringify({ data: { [KEY]: text } });
  const inNamespace = `kubectl -n ${CONFIG_MAP.namespace}`;
  await scene.shell
    .sh(`${inNamespace} patch configmap ${CONFIG_MAP.name} --type=merge --patch-file=/dev/stdin <<'END'
${patch}
END
${inNamespace} rollout restart deployment/envoy-gateway
${inNamespace} rollout status deployment/envoy-gateway`);
}

/** Configures the other extension after ours, and restarts Envoy Gateway. */
async function configure(fields: {
  readonly failOpen: boolean;
  readonly maxMessageSize?: string;
}): Promise<void> {
  const { extensionManager, ...rest } = parse(original) as Readonly<Record<string, object>>;
  const [ip, port] = address.split(':');
  const translation = {
    cluster: { includeAll: true },
    route: { includeAll: true },
    secret: { includeAll: false },
  };
  const extension = {
    ...{ name: OTHER, service: { ip: { address: ip, port: Number(port) } }, maxMessageSize: '100M' },
    ...{ hooks: { xdsTranslator: { post: ['Translation'], translation } }, ...fields },
  };
  await writeConfig(
    stringify({ ...rest, extensionManagers: [{ name: 'mesh', ...extensionManager }, extension] }),
  );
}

/** Which extension has configured EDS of the cluster of the route last. */
async function lastIn(): Promise<string> {
  const gateway = { namespace: scene.namespace, name: 'public' };
  const parts = await withEnvoyAdmin(cluster, scene.client, gateway, readConfigDump);
  const found = parts
    .flatMap(
      part =>
        (part['dynamic_active_clusters'] ?? []) as readonly { readonly cluster: { readonly name: string } }[],
    )
    .find(each => each.cluster.name === clusterOf('web'));
  return JSON.stringify(found).includes('"stat_prefix":"mesh"') ? OTHER : 'mesh';
}

let hosts = 0;

/** Adds a host to the route, and expects requests to the first one to succeed and those to the new one to fail as long as `end` lasts. */
async function expectNoTranslation(end: () => Promise<void>): Promise<void> {
  const host = `away-${hosts++}.example.com`;
  const added = scene.addHost(host);
  for (let sent = 0; sent < 500; sent++) {
    expect((await scene.request()).status).toBe(200);
    expect((await scene.request(host)).status).toBe(404);
  }
  await end();
  await added;
}

it('an extension beside ours gets what ours returns, and Envoy what both return', async () => {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  await configure({ failOpen: false });
  await scene.addHost('both.example.com');
  await eventually(async () => expect(await lastIn()).toBe(OTHER));
});

it.each([false, true])(
  'an extension that cannot be reached stops all translations until it is back, with failOpen %s',
  async failOpen => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    if (failOpen) await configure({ failOpen });
    await scene.addHost(`before-${failOpen}.example.com`);
    await killProcess(other);
    await expectNoTranslation(() => {
      other = startOther();
      return Promise.resolve();
    });
  },
);

it('an extension that fails is left out with failOpen, and without it stops translations', async () => {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  // No request fits.
  await configure({ failOpen: true, maxMessageSize: '1' });
  await scene.addHost('open.example.com');
  await eventually(async () => expect(await lastIn()).toBe('mesh'));
  await configure({ failOpen: false, maxMessageSize: '1' });
  await expectNoTranslation(() => configure({ failOpen: false }));
});
