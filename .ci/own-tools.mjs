/**
 * Prints whether the tests of our own tools have to `run`, or to `skip` because nothing that they depend on has changed
 * since all of them passed on this machine. test/own-tools.json has both lists.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ownTools = JSON.parse(readFileSync('test/own-tools.json', 'utf8'));

/** Whether a file tests our own tools. */
export function isOfOwnTools(file) {
  return ownTools.tests.includes(file);
}

/** The record of the tests that passed for what is checked out; undefined where something is not committed. */
export function recordIn(cache) {
  const paths = [...ownTools.tests, ...ownTools.dependsOn];
  const git = (...args) => execFileSync('git', [...args, '--', ...paths], { encoding: 'utf8' });
  if (git('status', '--porcelain') !== '') return undefined;
  const hash = createHash('sha256')
    .update(`${process.version}\n${git('ls-files', '--stage')}`)
    .digest('hex');
  return join(cache, 'own-tools', `${hash.slice(0, 16)}.json`);
}

if (process.argv[1] === import.meta.filename) {
  const record = recordIn(process.argv[2]);
  console.log(record !== undefined && existsSync(record) ? 'skip' : 'run');
}
