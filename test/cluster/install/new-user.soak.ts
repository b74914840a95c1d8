import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { gatewayAddress } from '../../../lab/cluster/gateway.ts';
import { requestThrough } from '../../../lab/gateway/envoy.ts';
import { PROJECT } from '../../../lab/install/image.ts';
import { documentedCommands } from '../../../lab/install/installer.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { tryAll } from '../../../lab/process/errors.ts';
import { until } from '../../../lab/process/wait.ts';
import { listNodes } from '../../../lab/tailnet/tailnet.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import type { ManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { installationShell, isInstalled, removeImages } from '../../support/cluster/install/shared.ts';
import type { Shell } from '../../support/cluster/install/shared.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { remoteOf } from '../../support/lab/lab.ts';

const cluster = testCluster();
const client = kubeClient(cluster.access);

/** Where README.md is read: a checkout with what its commands use. */
const CHECKOUT = ['dist/chart', 'dist/crds', 'dist/manifests', 'examples'];

let shell: Shell;
let tailnet: ManagedTailnet;
beforeAll(async () => {
  expect(isInstalled(), 'the installation of other files is not tested here').toBe(false);
  [shell, tailnet] = await Promise.all([installationShell(), startManagedTailnet(cluster)]);
  for (const name of CHECKOUT) {
    mkdirSync(join(checkout(), dirname(name)), { recursive: true });
    cpSync(join(PROJECT, name), join(checkout(), name), { recursive: true });
  }
});
afterAll(async () => {
  await tryAll([
    () => paste('kubectl delete --ignore-not-found --timeout=60s -f examples/cluster'),
    () => paste('helm restore'),
    () => paste(`${ENVOY_GATEWAY} rollout restart deployment/envoy-gateway`),
    () => paste(`${ENVOY_GATEWAY} rollout status deployment/envoy-gateway --timeout=300s`),
    () => paste('helm -n mesh-system uninstall mesh-gateway --ignore-not-found'),
    () => paste('kubectl delete --ignore-not-found -f dist/crds -f dist/manifests/namespace.yaml'),
    removeImages,
    tailnet.end,
  ]);
  rmSync(checkout(), { recursive: true });
});

const ENVOY_GATEWAY = 'kubectl -n envoy-gateway-system';

const checkout = () => join(shell.folder, 'checkout');

/** Runs lines of a page in the checkout. */
const paste = (lines: string) => shell.sh(`cd checkout\n${lines}`);

/** The text of README.md below a heading. */
function readme(heading: string): string {
  const text = readFileSync(join(PROJECT, 'README.md'), 'utf8');
  return text.split(/^#{2,3} /m).find(part => part.startsWith(`${heading}\n`)) ?? '';
}

/** Writes what README.md asks for into examples/cluster: the domain, and the addresses of devices. */
function describeTailnet(): void {
  const edit = (name: string, change: (text: string) => string) => {
    const file = join(checkout(), 'examples/cluster', name);
    writeFileSync(file, change(readFileSync(file, 'utf8')));
  };
  const control = `controlURL: ${tailnet.api.url}\n  loginServer: ${cluster.tailnet.url}`;
  edit('tailnet.yaml', text => text.replace(/controlURL: .*/, control));
  const devices = ['web-1', 'web-2'].map(name => remoteOf(cluster, name));
  edit('web.yaml', text =>
    devices
      .reduce((all, { address }, at) => all.replace(`100.64.0.1${at + 1}`, address), text)
      .replaceAll('8080', String(devices[0]?.ports['http']))
      .replaceAll(/\n +path: \/healthz/g, ''),
  );
}

it('a new user who pastes the commands of README.md has traffic from Envoy to a device', async () => {
  printLogsOnFailure(client, 'mesh-system', 'envoy-gateway-system');
  const section = readme('On your cluster');
  const [, variables = '', commands = ''] = [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(
    ([, block = '']) => block,
  );
  expect(commands).toContain('helm upgrade --install mesh-gateway');
  const { id, secret } = tailnet.client;
  const filled = variables
    .replace('CLIENT_ID=...', `CLIENT_ID=${id}`)
    .replace('SECRET=...', `SECRET=${secret}`);
  expect(filled).not.toContain('...');
  describeTailnet();
  await paste(`${filled}\n${commands}`);
  // "If Envoy Gateway was already running, restart it once": it was.
  expect(section).toContain('restart it once');
  await paste(`${ENVOY_GATEWAY} rollout restart deployment/envoy-gateway`);
  const address = await gatewayAddress(client, { namespace: 'default', name: 'public' });
  const [, host = ''] = /curl -H 'host: (\S+)' http:\/\/ADDRESS\//.exec(section) ?? [];
  await until('the first answer', async note => {
    const { status, body } = await requestThrough(address, { host, path: '/' });
    note(`${status} ${body}`);
    return status === 200 && body.includes('"backend":"web-');
  });
});

it('the next commands of the pages succeed', async () => {
  const [first = [], label = []] = documentedCommands('install.md', 'Install with Helm');
  expect(first.join('\n')).toContain('helm upgrade --install mesh-gateway');
  await paste(label.join('\n'));
  expect(await paste('helm -n mesh-system get notes mesh-gateway')).toContain('kubectl');
  const [wait = []] = documentedCommands('install.md', 'The first endpoint');
  expect(await paste(wait.join('\n'))).toContain('condition met');
  const joining = documentedCommands('tailnets.md', 'Join a tailnet').flat();
  const ready = joining.find(line => line.includes('meshtailnet/example')) ?? '';
  expect(await paste(ready)).toContain('condition met');
});

it('the commands of the pages remove all of it, and the devices of the mesh pods', async () => {
  await paste('helm restore');
  await paste(`${ENVOY_GATEWAY} rollout restart deployment/envoy-gateway`);
  await paste(`${ENVOY_GATEWAY} rollout status deployment/envoy-gateway --timeout=300s`);
  const [removal = []] = documentedCommands('install.md', 'Remove');
  const [last, ...others] = removal.toReversed();
  expect(last).toBe('kubectl delete -k manifests');
  await paste(others.toReversed().join('\n'));
  await paste('helm -n mesh-system uninstall mesh-gateway');
  await paste('kubectl delete -f dist/crds');
  const hostnames = (await listNodes(cluster.tailnet.admin)).map(({ hostname }) => hostname);
  expect(hostnames.toSorted()).toEqual(cluster.remotes.map(({ hostname }) => hostname).toSorted());
});
