import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { PROJECT } from '../../../lab/install/image.ts';
import { documentedCommands, shellIn } from '../../../lab/install/installer.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import { refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { waitForAbsence } from '../../../lab/kube/wait.ts';
import { ownApiServer } from '../../support/cluster/own-api-server.ts';
import type { OwnApiServer } from '../../support/cluster/own-api-server.ts';
import { meshEndpoints } from '../../support/objects.ts';
import { CHART, helm } from '../../support/synth/chart.ts';
import { at } from '../../support/synth/parts.ts';

const NAMESPACE = 'mesh-system';

/** Runs the commands of a section of docs/install.md in the checkout. */
async function runDocumented(section: string): Promise<void> {
  const programs = mkdtempSync(join(tmpdir(), 'mesh-gateway-chart-'));
  onTestFinished(() => rmSync(programs, { recursive: true }));
  for (const name of ['helm', 'kubectl'] as const)
    symlinkSync(locateBinaries(process.env)(name), join(programs, name));
  const environment = {
    PATH: `${programs}:/usr/bin:/bin`,
    HOME: programs,
    KUBECONFIG: own.server.kubeconfig,
  };
  const sh = shellIn(PROJECT, environment);
  for (const block of documentedCommands('install.md', section))
    for (const command of block) await sh(command);
}

let own: OwnApiServer;
beforeAll(async () => {
  own = await ownApiServer();
});
afterAll(async () => {
  await own.end();
});

const release = (command: string, ...args: readonly string[]) =>
  helm([command, ...args, '--namespace', NAMESPACE, '--kubeconfig', own.server.kubeconfig]);

const install = (...args: readonly string[]) =>
  release('upgrade', '--install', 'mesh-gateway', CHART, '--create-namespace', ...args);

const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: NAMESPACE, name: 'mesh-operator' };

const replicas = async () => at(await own.server.client.get(deployment), 'spec', 'replicas');

const web = meshEndpoints() as KubeObject;

it('a release takes over an installation by manifests', async () => {
  const namespace: KubeObject = {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'envoy-gateway-system' },
  };
  await applyAll(own.server.client, [namespace, ...readManifests('dist/manifests')]);
  await expect(install()).rejects.toThrow('cannot be imported into the current release');
  await install('--take-ownership', '--force-conflicts');
  const { metadata } = await own.server.client.get(deployment);
  expect(metadata.annotations).toMatchObject({ 'meta.helm.sh/release-name': 'mesh-gateway' });
  // What has applied the manifests still owns their fields.
  await install('--force-conflicts', '--set', 'operator.replicas=3');
  expect(await replicas()).toBe(3);
});

it('keeps CRDs with their objects when it is removed, and has them again when it is installed by the documentation', async () => {
  const { metadata } = await own.server.client.create(web);
  await release('uninstall', 'mesh-gateway');
  await waitForAbsence(own.server.client, deployment);
  expect((await own.server.client.get(refOf(web))).metadata.uid).toBe(metadata.uid);
  await runDocumented('Install with Helm');
  expect(await replicas()).toBe(2);
});

it('has room in the Secret in which helm keeps it, with all of its CRDs', async () => {
  const type = { apiVersion: 'v1', kind: 'Secret', namespace: NAMESPACE };
  const secrets = (await own.server.client.list(type)).filter(each => each['type'] === 'helm.sh/release.v1');
  const sizes = secrets.map(
    ({ data }) => Buffer.from((data as { release: string }).release, 'base64').length,
  );
  console.log(`helm keeps ${Math.max(...sizes)} bytes`);
  expect(sizes.length).toBeGreaterThan(0);
  // The API server takes 1 MiB.
  expect(Math.max(...sizes)).toBeLessThan(2 ** 19);
});

it('is upgraded and rolled back', async () => {
  await install('--set', 'operator.replicas=3');
  expect(await replicas()).toBe(3);
  await release('rollback', 'mesh-gateway');
  expect(await replicas()).toBe(2);
});

it('deletes CRDs that it does not keep', async () => {
  await install('--set', 'crds.keep=false');
  await release('uninstall', 'mesh-gateway');
  const [definition, ...others] = readManifests('dist/crds').map(refOf);
  if (!definition) throw new Error('there are no CRDs');
  for (const ref of [definition, ...others]) await waitForAbsence(own.server.client, ref);
  await expect(own.server.client.get(definition)).rejects.toThrow('not found');
});
