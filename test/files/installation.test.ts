import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { clusterInstallationId, installationId } from '../../src/files/installation.ts';
import { makeFolders } from '../support/files/folder.ts';

const ID = /^[0-9a-f]{8}$/;

describe('the installation id', () => {
  it('of a cluster differs between clusters and between namespaces', () => {
    const [uid, other] = ['0b6a0d8e-1f0c-4f0c-9d67-6d1c2f0e8a11', '8c1f5b9e-2f0c-4f0c-9d67-6d1c2f0e8a12'];
    const ids = [
      clusterInstallationId(uid, 'mesh-system'),
      clusterInstallationId(uid, 'team-a'),
      clusterInstallationId(other, 'mesh-system'),
    ];
    for (const id of ids) expect(id).toMatch(ID);
    expect(new Set(ids).size).toBe(3);
    expect(clusterInstallationId(uid, 'mesh-system')).toBe(ids[0]);
  });

  it('is generated once, and stays the same', async () => {
    const { state } = makeFolders();
    const id = await installationId(state);
    expect(id).toMatch(ID);
    expect(await installationId(state)).toBe(id);
    expect(readdirSync(state)).toEqual(['installation-id']);
    expect(statSync(state).mode & 0o077).toBe(0);
    expect(await installationId(makeFolders().state)).not.toBe(id);
  });

  it.each(['', 'half', '0123456789abcdef', '{}'])('is refused where its file holds %j', async text => {
    const { state } = makeFolders();
    mkdirSync(state);
    writeFileSync(join(state, 'installation-id'), text);
    await expect(installationId(state)).rejects.toMatchObject({
      reason: 'Unavailable',
      message: expect.stringContaining(join(state, 'installation-id')) as string,
    });
    expect(readFileSync(join(state, 'installation-id'), 'utf8')).toBe(text);
  });

  it('is refused where its folder cannot be created', async () => {
    const { state } = makeFolders();
    writeFileSync(state, 'a file');
    await expect(installationId(state)).rejects.toMatchObject({
      reason: 'Unavailable',
      message: expect.stringContaining(state) as string,
    });
  });
});

const LANES = 2;
const KILLS = 8;

describe('a process that is killed while it writes the id', () => {
  it('leaves a readable file or none, and no other id than it returned', async () => {
    const { root } = makeFolders();
    const program = join(root, 'makes-ids.mjs');
    await build({
      stdin: { contents: MAKES_IDS, resolveDir: process.cwd(), loader: 'ts' },
      outfile: program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'silent',
    });
    const lanes = Array.from({ length: LANES }, (_, lane) => killOften(program, join(root, String(lane))));
    const given = (await Promise.all(lanes)).flat();
    expect(given.length).toBeGreaterThan(KILLS);
  }, 120_000);
});

/** Creates the id of one folder after the other, and prints each. */
const MAKES_IDS = `
import { writeSync } from 'node:fs';
import { clusterInstallationId, installationId } from './src/files/installation.ts';
for (let at = 0; ; at++) {
  const folder = process.argv[2] + '/' + at;
  writeSync(1, folder + ' ' + (await installationId(folder)) + '\\n');
}
`;

/** Every id of a folder that a process printed before it was killed, each read again. */
async function killOften(program: string, root: string): Promise<readonly string[]> {
  const given: string[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const folder = join(root, String(kill));
    const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    const printed: Buffer[] = [];
    child.stdout.on('data', (bytes: Buffer) => printed.push(bytes));
    const ended = once(child, 'close');
    await once(child.stdout, 'data');
    await sleep(Math.random() * 20);
    child.kill('SIGKILL');
    await ended;
    const lines = Buffer.concat(printed).toString().trimEnd().split('\n');
    const ids = new Map(lines.map(line => line.split(' ') as [string, string]));
    const [first = ''] = ids.keys();
    for (const name of readdirSync(dirname(first))) {
      const id = await installationId(join(folder, name));
      expect(id).toMatch(ID);
      const printed = ids.get(join(folder, name));
      if (printed !== undefined) expect(id).toBe(printed);
      given.push(id);
    }
    expect(existsSync(first)).toBe(true);
    rmSync(folder, { recursive: true });
  }
  return given;
}
