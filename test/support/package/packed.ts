import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { buildPackage, packPackage } from '../../../lab/release/package.ts';

const run = promisify(execFile);

/** The compiler of TypeScript. */
export const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');

/** The output of a command, and whether it succeeded. */
export type Ran = { readonly code: number; readonly output: string };

/** Runs a script with this Node. */
export async function runScript(path: string, args: readonly string[], cwd = process.cwd()): Promise<Ran> {
  try {
    const { stdout, stderr } = await run(process.execPath, [path, ...args], { cwd, maxBuffer: 1e8 });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: number; stdout?: string; stderr?: string };
    return { code: code ?? -1, output: `${stdout ?? ''}${stderr ?? ''}${String(error)}` };
  }
}

/** The package as it is published, in a folder of its own. */
export type Packed = {
  readonly root: string;
  readonly tarball: string;
  /** The tarball as npm unpacks it. */
  readonly unpacked: string;
  readonly remove: () => void;
};

/** Builds and packs this checkout; dist/js, which others may be using, is not changed. */
export async function pack(): Promise<Packed> {
  const root = mkdtempSync(join(tmpdir(), 'packed-'));
  const source = join(root, 'source');
  await buildPackage(process.cwd(), source);
  const tarball = join(root, await packPackage(source, root));
  await run('tar', ['-xzf', tarball, '-C', root]);
  const remove = () => rmSync(root, { recursive: true, force: true });
  return { root, tarball, unpacked: join(root, 'package'), remove };
}

/**
 * Writes a project of a user, with the package as npm installs it and links to other packages. The library must
 * contain what it needs, so the dependencies of the package are left out.
 */
export function consumer(packed: Packed, name: string, project: string, others: readonly string[]): string {
  const folder = join(packed.root, name);
  cpSync(project, folder, { recursive: true });
  const modules = join(folder, 'node_modules');
  mkdirSync(modules, { recursive: true });
  cpSync(packed.unpacked, join(modules, 'mesh-gateway'), { recursive: true });
  for (const other of others) {
    mkdirSync(dirname(join(modules, other)), { recursive: true });
    symlinkSync(join(process.cwd(), 'node_modules', other), join(modules, other));
  }
  return folder;
}
