import { execFile } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What the package has of the project as it is, beside what is built. */
const FILES = [
  ...['package.json', 'README.md', 'LICENSE'],
  ...['dist/crds', 'docs/output.schema.json', 'schema', 'synth/config.json'],
];

/** Builds the package of a project into a new folder; dist/js, which others may be using, is not changed. */
export async function buildPackage(project: string, folder: string): Promise<void> {
  for (const path of FILES) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(project, path), join(folder, path), { recursive: true });
  }
  const js = join(folder, 'dist/js');
  const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const node = (...args: readonly string[]) => run(process.execPath, args, { cwd: project });
  await Promise.all([
    node('esbuild.config.mjs', js),
    node(compiler, '-p', 'tsconfig.types.json', '--outDir', join(folder, 'types')),
  ]);
  cpSync(join(folder, 'types'), join(js, 'types'), { recursive: true });
}

/** Packs what was built, as npm publishes it, and returns the name of the file. */
export async function packPackage(folder: string, target: string): Promise<string> {
  const packing = ['pack', '--ignore-scripts', '--silent', '--offline', '--pack-destination', target];
  const { stdout } = await run('npm', packing, { cwd: folder });
  return stdout.trim().split('\n').at(-1) ?? '';
}
