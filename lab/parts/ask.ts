import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';

/** What a program answers, line by line; nothing where there is no such program, or where it refuses. */
export function ask(
  environment: Readonly<Record<string, string | undefined>>,
  program: string,
  ...args: readonly string[]
): readonly string[] | undefined {
  // Away from any module, whose go.mod would decide which Go answers.
  const { status, stdout } = spawnSync(program, args, { cwd: tmpdir(), env: environment, encoding: 'utf8' });
  return status === 0 ? stdout.trimEnd().split('\n') : undefined;
}
