/** The programs that tests start, bundled once for each state of the code: they start four times as fast as from TypeScript. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

const PROJECT = join(import.meta.dirname, '..', '..', '..');

/** The bundles of all states of the code that were tested lately. */
export const BUNDLES = join(PROJECT, '.cache', 'test-programs');

/** Programs beside the product. */
export const PROGRAMS = [
  'bench/main.ts',
  'lab/commands/cluster.ts',
  'lab/commands/lab.ts',
  'lab/commands/parts.ts',
  'lab/commands/start.ts',
  'test/support/api-server/leader-program.ts',
  'test/support/extension/tiny-fields.ts',
  'test/support/grpc/idle-streams.ts',
  'test/support/grpc/small-pool.ts',
  'test/support/lab/guarded.ts',
  'test/support/lab/mesh-pod-program.ts',
  'test/support/lab/traffic/external-targets-program.ts',
  'test/support/lab/traffic/matrix/direct.ts',
  'test/support/runtime/stop-program.ts',
] as const;

/** A program that tests start. */
export type Program = 'src/cli.ts' | (typeof PROGRAMS)[number];

/** The folders of the code that is bundled. */
export const SOURCES = ['bench', 'codegen', 'lab', 'src', 'synth', 'test/support'];

/** What else a bundle depends on: how the product is bundled, its version, and the packages that are installed. */
const SETTINGS = ['esbuild.config.mjs', 'node_modules/.package-lock.json', 'package.json', 'tsconfig.json'];

/** A hash of all that a bundle is made from. */
export function keyOfCode(): string {
  const hash = createHash('sha256');
  const add = (path: string) => hash.update(`\n${path}\n`).update(readFileSync(join(PROJECT, path)));
  SETTINGS.forEach(add);
  for (const folder of SOURCES) {
    const names = readdirSync(join(PROJECT, folder), { recursive: true, encoding: 'utf8' });
    names
      .filter(name => name.endsWith('.ts'))
      .sort()
      .forEach(name => add(join(folder, name)));
  }
  return hash.digest('hex').slice(0, 16);
}

let found: string | undefined;

/** The bundle of the code as it was when this process first needed it, made where it does not exist. */
function bundle(): string {
  while (found === undefined) {
    const key = keyOfCode();
    const folder = join(BUNDLES, key);
    if (use(folder)) found = folder;
    else runBundler(key);
  }
  return found;
}

/** Marks a bundle as used, so that it is kept; false where it does not exist. */
function use(folder: string): boolean {
  if (!existsSync(folder)) return false;
  utimesSync(folder, new Date(), new Date());
  return true;
}

function runBundler(key: string): void {
  const args = ['--import', 'tsx', 'test/support/programs/bundle.ts', key];
  execFileSync(process.execPath, args, { cwd: PROJECT, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** The product as it is bundled for users: a folder with `package.json`, `dist/js` and `dist/crds`. */
export function builtProduct(): string {
  return join(bundle(), 'product');
}

/** The path of a program, which Node runs as it is. */
export function programPath(program: Program): string {
  if (program === 'src/cli.ts') return join(builtProduct(), 'dist', 'js', 'cli.js');
  return join(bundle(), program.replace(/\.ts$/, '.js'));
}
