/** Run by programs.ts with a key of the code: bundles the programs that tests start. */
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import type { Plugin } from 'esbuild';
import { takeLock } from '../../../lab/process/lock.ts';
import { PROJECT } from '../lab/command-line.ts';
import { BUNDLES, keyOfCode, PROGRAMS, SOURCES } from './programs.ts';

const KEPT_MS = 24 * 3_600_000;

/** Modules find files beside their own source, as they do where they are not bundled. */
const ownFolders: Plugin = {
  name: 'own-folders',
  setup: build => {
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const file = relative(PROJECT, path);
      if (!SOURCES.some(folder => file.startsWith(`${folder}/`)))
        throw new Error(`${file} is bundled: add its folder to SOURCES in test/support/programs/programs.ts`);
      const text = await readFile(path, 'utf8');
      return {
        loader: 'ts',
        contents: text.replaceAll('import.meta.dirname', JSON.stringify(dirname(path))),
      };
    });
  },
};

/** The product, laid out as in its package. */
async function bundleProduct(folder: string): Promise<void> {
  mkdirSync(join(folder, 'dist'), { recursive: true });
  cpSync(join(PROJECT, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(PROJECT, 'dist', 'crds'), join(folder, 'dist', 'crds'));
  const args = ['esbuild.config.mjs', join(folder, 'dist', 'js')];
  await promisify(execFile)(process.execPath, args, { cwd: PROJECT });
}

async function bundlePrograms(folder: string): Promise<void> {
  await build({
    absWorkingDir: PROJECT,
    entryPoints: [...PROGRAMS],
    outdir: folder,
    outbase: PROJECT,
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: true,
    logLevel: 'warning',
    plugins: [ownFolders],
  });
}

/** Makes the folder of a key, unless another process has, or the code is edited meanwhile. */
async function bundleAs(key: string): Promise<void> {
  const folder = join(BUNDLES, key);
  const stop = new AbortController().signal;
  const release = await takeLock(`${folder}.lock`, { stop, onWaiting: () => undefined });
  try {
    if (existsSync(folder)) return;
    const unfinished = `${folder}.unfinished`;
    rmSync(unfinished, { recursive: true, force: true });
    await Promise.all([bundleProduct(join(unfinished, 'product')), bundlePrograms(unfinished)]);
    if (keyOfCode() === key) renameSync(unfinished, folder);
  } finally {
    release?.();
  }
}

/** Removes what has not been used for a day. */
function sweep(): void {
  for (const name of readdirSync(BUNDLES)) {
    const path = join(BUNDLES, name);
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > KEPT_MS) rmSync(path, { recursive: true, force: true });
  }
}

const [key = ''] = process.argv.slice(2);
await bundleAs(key);
sweep();
