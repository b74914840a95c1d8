import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';

/** What is tested: a commit, and whether files differ from it. */
export type Source = {
  readonly commit: string;
  /** A hash of all files of the commit but the records of runs: a commit of these changes nothing that is tested. */
  readonly sources: string;
  readonly isDirty: boolean;
};

/** Written by the runs themselves. */
const RECORD = /^docs\/(soak\.(json|md)|conformance\/[\w-]+\.(txt|yaml))$/;

/** The state of a working copy of the project. */
export function sourceOf(folder: string): Source {
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' });
  const files = git('ls-tree', '-r', '-z', 'HEAD').split('\0');
  const tested = files.filter(line => !RECORD.test(line.split('\t')[1] ?? ''));
  const changed = git('status', '--porcelain', '-z', '--no-renames').split('\0').filter(Boolean);
  return {
    commit: git('rev-parse', 'HEAD').trim(),
    sources: createHash('sha256').update(tested.join('\0')).digest('hex').slice(0, 16),
    isDirty: changed.some(line => !RECORD.test(line.slice(3))),
  };
}
