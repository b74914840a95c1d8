import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from '../../lab/command-line.ts';

/** The manifests of a version: where they come from, and each file by its name. */
export type Manifests = { readonly from: string; readonly files: ReadonlyMap<string, string> };

const FOLDER = 'dist/manifests';

/** The current manifests. */
export function todaysManifests(): Manifests {
  const names = readdirSync(join(PROJECT, FOLDER)).filter(name => name.endsWith('.yaml'));
  const read = (name: string) => readFileSync(join(PROJECT, FOLDER, name), 'utf8');
  return { from: 'now', files: new Map(names.map(name => [name, read(name)])) };
}

/**
 * Manifests that differ from the current ones: those of the last commit that had others, or the current ones changed
 * as an older version might have written them.
 */
export function olderManifests(): Manifests {
  const { files: today } = todaysManifests();
  for (const commit of commitsOf(FOLDER)) {
    const files = new Map([...today.keys()].flatMap(name => fileAt(commit, name)));
    if (files.size === today.size && [...files].some(([name, text]) => today.get(name) !== text))
      return { from: `commit ${commit.slice(0, 7)}`, files };
  }
  return {
    from: 'an invented version 0.0.9',
    files: new Map([...today].map(([name, text]) => [name, inVersion('0.0.9', text)])),
  };
}

/**
 * Writes a checkout of the last commit that had another chart, with the packages of this one, or without history the current
 * sources with a chart as an older version might have had it.
 */
export function putOlderCheckout(folder: string): { readonly from: string; readonly chart: string } {
  const commit = commitsOf(CHART).find(each => git('diff', '--quiet', each, '--', CHART) === undefined);
  const chart = join(folder, CHART);
  mkdirSync(folder);
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  if (commit !== undefined) {
    const archive = execFileSync('git', ['archive', commit], { cwd: PROJECT, maxBuffer: 2 ** 28 });
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
    return { from: `commit ${commit.slice(0, 7)}`, chart };
  }
  for (const name of [
    'src',
    'proto',
    'dist/chart',
    'dist/crds',
    'package.json',
    'esbuild.config.mjs',
    'tsconfig.json',
  ])
    cpSync(join(PROJECT, name), join(folder, name), { recursive: true });
  const file = join(chart, 'Chart.yaml');
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/^(version|appVersion): .*/gm, '$1: 0.0.9'));
  return { from: 'an invented version 0.0.9', chart };
}

const CHART = 'dist/chart';

/** As of another version: other labels, another image, and another setting of each process. */
function inVersion(version: string, text: string): string {
  return text
    .replaceAll(/(app\.kubernetes\.io\/version: |image: \S+:)\S+/g, `$1${version}`)
    .replaceAll(/(name: LOG_LEVEL\n\s+value: )info/g, '$1debug');
}

/** None in a checkout without history. */
function commitsOf(path: string): readonly string[] {
  return git('log', '--format=%H', '--max-count=20', '--', path)?.split('\n').filter(Boolean) ?? [];
}

function fileAt(commit: string, name: string): readonly (readonly [string, string])[] {
  const text = git('show', `${commit}:${FOLDER}/${name}`);
  return text === undefined ? [] : [[name, text]];
}

function git(...args: readonly string[]): string | undefined {
  try {
    return execFileSync('git', [...args], { cwd: PROJECT, encoding: 'utf8', stdio: 'pipe' });
  } catch {
    return undefined;
  }
}

/** Replaces the manifests of a folder. */
export function putManifests(folder: string, { files }: Pick<Manifests, 'files'>): void {
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
}

/** The images that manifests name. */
export function imagesIn({ files }: Pick<Manifests, 'files'>): readonly string[] {
  const named = [...files.values()].flatMap(text => [...text.matchAll(/^\s+image: (\S+)$/gm)]);
  return [...new Set(named.map(([, image = '']) => image))];
}
