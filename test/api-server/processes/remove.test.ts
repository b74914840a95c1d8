import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readManifests } from '../../../lab/kube/manifests.ts';
import { nameRef, refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { KubeError } from '../../../lab/kube/error.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { ownApiServer } from '../../support/cluster/own-api-server.ts';
import type { OwnApiServer } from '../../support/cluster/own-api-server.ts';
import { documentedCommands, folderOfUser } from '../../../lab/install/installer.ts';
import { named } from '../../support/declared.ts';
import { meshEndpoints } from '../../support/objects.ts';

let own: OwnApiServer;
let user: ReturnType<typeof folderOfUser>;
beforeAll(async () => {
  own = await ownApiServer();
  const kubectl = locateBinaries(process.env)('kubectl');
  user = folderOfUser({ kubeconfig: own.server.kubeconfig, kubectl });
});
afterAll(async () => {
  rmSync(user.folder, { recursive: true, force: true });
  await own.end();
});

/** The objects of the manifests that exist. */
async function present(): Promise<readonly string[]> {
  const { client } = own.server;
  const refs = readManifests(join(user.folder, 'manifests'))
    .filter(({ kind }) => kind !== 'Kustomization')
    .map(refOf);
  const found = refs.map(async ref => {
    try {
      await client.get(ref);
      return [nameRef(ref)];
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return [];
      throw error;
    }
  });
  return (await Promise.all(found)).flat();
}

it("the commands of the documentation remove an installation completely, users' objects too", async () => {
  const [[namespace = '', apply = ''] = []] = documentedCommands('install.md', 'Apply the manifests');
  const [removal = []] = documentedCommands('install.md', 'Remove');
  await user.sh(namespace);
  await user.sh(apply);
  await own.server.client.create(named(meshEndpoints(), 'default/web') as KubeObject);
  expect((await present()).length).toBeGreaterThan(20);
  for (const command of removal) await user.sh(command);
  expect(await present()).toEqual([]);
});
