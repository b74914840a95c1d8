import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { localReferenced } from '../../src/files/local-secrets.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mesh-secrets-'));
  for (const [secret, value] of [
    ['mesh-oauth', 'of the operator'],
    ['shop/auth', 'of namespace shop'],
  ] as const) {
    await mkdir(join(folder, secret), { recursive: true });
    await writeFile(join(folder, secret, 'token'), value);
  }
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the Secrets on this machine that MeshEndpoints refer to', () => {
  it('are in the folder of their namespace', async () => {
    const referenced = localReferenced(folder);
    expect(await referenced.secret('shop', 'auth')).toMatchObject({ data: { token: 'of namespace shop' } });
    expect(await referenced.secret('bank', 'auth')).toBeUndefined();
  });

  it('are never those of the operator', async () => {
    expect(await localReferenced(folder).secret('shop', 'mesh-oauth')).toBeUndefined();
  });

  it('cannot be read without a folder, and the error names the setting', async () => {
    await expect(localReferenced(undefined).secret('shop', 'auth')).rejects.toThrow('SECRETS_DIR is not set');
  });
});
