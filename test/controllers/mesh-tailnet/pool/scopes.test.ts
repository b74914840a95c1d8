import { expect, it, onTestFinished } from 'vitest';
import {
  expectReady,
  expectRemoved,
  startPoolScene,
} from '../../../support/controllers/mesh-tailnet/scene.ts';

const NEEDED = 'grant the client devices:core and auth_keys';

async function sceneOf(dialect: 'vendor' | 'headscale', scopes: readonly string[]) {
  const scene = await startPoolScene({ dialect });
  onTestFinished(() => scene.close());
  const installation = scene.install();
  installation.storeCredentials(scopes);
  installation.put();
  return { scene, installation };
}

const DIALECTS = ['vendor', 'headscale'] as const;

it.each(DIALECTS)('a client that may not list devices is to get all scopes at once, at %s', async dialect => {
  const { scene, installation } = await sceneOf(dialect, ['auth_keys']);
  await scene.until(() => expect(installation.condition('Ready')?.message).toContain(NEEDED));
  installation.storeCredentials();
  await scene.until(() => expectReady(scene, installation, 2));
});

it.each(DIALECTS)('a client that may not create keys is to get all scopes at once, at %s', async dialect => {
  const { scene, installation } = await sceneOf(dialect, ['devices:core']);
  await scene.until(() => {
    expect(installation.condition('PoolReady')).toMatchObject({ reason: 'NotAuthenticated' });
    expect(installation.condition('Ready')?.message).toContain(NEEDED);
  });
  expect(installation.pods()).toEqual([]);
  installation.storeCredentials();
  await scene.until(() => expectReady(scene, installation, 2));
});

it.each(DIALECTS)('a client that may not delete devices holds a pool until it may, at %s', async dialect => {
  const { scene, installation } = await sceneOf(dialect, ['devices:core', 'auth_keys']);
  await scene.until(() => expectReady(scene, installation, 2));
  installation.storeCredentials(['devices:core:read', 'auth_keys']);
  await scene.until(() =>
    expect(installation.condition('Authenticated')).toMatchObject({ reason: 'ScopeMissing' }),
  );
  expect(installation.condition('PoolReady')).toMatchObject({ status: 'True' });
  installation.put({ pool: { replicas: 1 } });
  await scene.until(() => expect(installation.condition('PoolReady')?.message).toContain(NEEDED));
  installation.remove();
  await scene.until(() => {
    expect(installation.condition('Ready')).toMatchObject({ reason: 'Deleting' });
    expect(installation.condition('Ready')?.message).toContain(NEEDED);
  });
  installation.storeCredentials();
  await scene.until(() => expectRemoved(scene, installation));
});
