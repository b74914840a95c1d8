import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startControlApi } from '../../lab/control-api/control-api.ts';
import type { ClientCredentials } from '../../lab/control-api/control-api.ts';
import { named } from '../support/declared.ts';
import { meshTailnet } from '../support/objects.ts';
import { makeFolders, writeWhole } from '../support/files/folder.ts';
import { startServed } from '../support/standalone/served-process.ts';

/** The settings with which standalone has the credentials of a client. */
type Settings = (client: ClientCredentials, folder: string) => Readonly<Record<string, string>>;

const inEnvironment: Settings = ({ id, secret }) => ({
  MESH_OAUTH_CLIENT_ID: id,
  MESH_OAUTH_CLIENT_SECRET: secret,
});

/** One folder for the Secret, and in it one file per key, as Kubernetes mounts it. */
const inFolder: Settings = ({ id, secret }, folder) => {
  const secrets = join(folder, 'secrets');
  mkdirSync(join(secrets, 'mesh-oauth'), { recursive: true });
  writeFileSync(join(secrets, 'mesh-oauth', 'client-id'), id);
  writeFileSync(join(secrets, 'mesh-oauth', 'client-secret'), `${secret}\n`);
  return { SECRETS_DIR: secrets };
};

describe('standalone authenticates with credentials', () => {
  it.each([
    ['in the environment', inEnvironment],
    ['in a folder', inFolder],
  ])('%s, which its log does not have', async (_, settings) => {
    const api = await startControlApi();
    onTestFinished(() => api.close());
    const client = api.addClient(['devices:core:read']);
    const { folder, state, generated } = makeFolders();
    const pool = { mode: 'External', addresses: ['127.0.0.1:1055'] };
    const tailnet = named(meshTailnet({ controlURL: api.url, pool }), 'example');
    await writeWhole(join(folder, 'tailnet.yaml'), JSON.stringify(tailnet));
    const running = startServed(
      'standalone',
      { 'resources-dir': folder, 'state-dir': state, 'gateway-dir': generated },
      settings(client, state),
    );
    await running.line('authenticated with the control API');
    expect(JSON.stringify(running.lines) + running.output()).not.toContain(client.secret);
  });
});
