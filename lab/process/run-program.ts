import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { BinaryName } from '../parts/parts.ts';
import { markOf } from './process-table.ts';
import type { Starter } from './starter.ts';

const run = promisify(execFile);

/** Runs a program of a lab to its end, at home in its folder; it fails with what the program said. */
export async function runProgram(
  { folder, pathOf }: Pick<Starter, 'folder' | 'pathOf'>,
  program: BinaryName,
  args: readonly string[],
): Promise<void> {
  await run(pathOf(program), [...args], {
    cwd: folder,
    env: { HOME: folder, USER: 'lab', ...markOf(folder) },
  });
}
