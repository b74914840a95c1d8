import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { productContents } from '../cluster/images/product.ts';
import { packFolder, sha256Of } from './archive.ts';
import { billOf, listAll } from './bill-of-materials.ts';
import type { Bill } from './bill-of-materials.ts';
import { crdSchemas } from './crd-schemas.ts';
import { writeImage } from './image.ts';
import { nodeFiles } from './node-files.ts';
import type { Architecture } from './node-files.ts';
import { figuresIn, notesOf } from './notes.ts';
import { buildPackage, packPackage } from './package.ts';
import { faultsOfSource, git } from './source.ts';

const NAME = 'mesh-gateway';
const SUMS = 'sha256sums.txt';

/** What a release is made with. */
export type ReleaseOptions = {
  readonly project: string;
  /** A folder for the files, which is new, or that of a release to replace. */
  readonly out: string;
  readonly architectures: readonly Architecture[];
  readonly onStep: (step: string) => void;
};

/** What the steps of a release share. */
type Release = ReleaseOptions & {
  readonly version: string;
  readonly revision: string;
  /** The time of the commit. */
  readonly seconds: number;
  readonly changelog: string;
  readonly work: string;
  /** The built package. */
  readonly built: string;
};

/** Makes the files of a release in a folder, publishes none, and returns their names. The same commit makes the same bytes. */
export async function makeRelease(options: ReleaseOptions): Promise<readonly string[]> {
  const release = readSource(options);
  const { out, work, onStep } = release;
  if (existsSync(out) && readdirSync(out).length > 0 && !existsSync(join(out, SUMS)))
    throw new Error(`${out} has other files: name a new folder, or that of a release`);
  for (const folder of [out, work]) rmSync(folder, { recursive: true, force: true });
  for (const folder of [out, work]) mkdirSync(folder, { recursive: true });
  onStep('package');
  await addPackage(release);
  onStep('chart, manifests, schemas');
  await addInstallation(release);
  onStep('reports and notes');
  await addReports(release);
  const all = await listAll(options.project);
  const bundled = JSON.parse(
    readFileSync(join(release.built, 'dist/js/packages.json'), 'utf8'),
  ) as readonly string[];
  writeBill(release, `${NAME}-${release.version}.cdx.json`, billOf(all, shipped(release, NAME), bundled));
  for (const architecture of options.architectures) {
    onStep(`image for ${architecture}`);
    await addImage(release, architecture, all, bundled);
  }
  rmSync(work, { recursive: true });
  return addSums(out);
}

function readSource(options: ReleaseOptions): Release {
  const { project, out } = options;
  const read = (path: string) => readFileSync(join(project, path), 'utf8');
  const { version } = JSON.parse(read('package.json')) as { readonly version: string };
  const changelog = read('CHANGELOG.md');
  const changes = git(project, 'status', '--porcelain');
  const tags = git(project, 'tag', '--points-at', 'HEAD').split('\n');
  const faults = faultsOfSource({ changes, tags, version, changelog });
  if (faults.length > 0) throw new Error(faults.join('\n'));
  const [revision = '', time = ''] = git(project, 'log', '-1', '--format=%H %ct').trim().split(' ');
  const work = `${out}.work`;
  return {
    ...options,
    version,
    revision,
    seconds: Number(time),
    changelog,
    work,
    built: join(work, 'package'),
  };
}

async function addPackage({ project, built, out, version, seconds, work }: Release): Promise<void> {
  await buildPackage(project, built);
  await packPackage(built, out);
  const js = join(built, 'dist/js');
  const maps = join(work, 'source-maps');
  for (const path of readdirSync(js, { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.map'),
  )) {
    mkdirSync(dirname(join(maps, path)), { recursive: true });
    cpSync(join(js, path), join(maps, path));
  }
  await packFolder(maps, join(out, `${NAME}-${version}-source-maps.tar.gz`), { seconds });
}

async function addInstallation({ project, out, version, seconds, work }: Release): Promise<void> {
  const dist = join(project, 'dist');
  await packFolder(join(dist, 'chart'), join(out, `${NAME}-chart-${version}.tgz`), { seconds, prefix: NAME });
  const manifests = { seconds, prefix: `${NAME}-${version}` };
  await packFolder(join(dist, 'manifests'), join(out, `${NAME}-${version}-manifests.tar.gz`), manifests);
  const crds = readdirSync(join(dist, 'crds')).sort();
  const schemas = join(work, 'crd-schemas');
  for (const [path, text] of crdSchemas(crds.map(name => readFileSync(join(dist, 'crds', name), 'utf8')))) {
    mkdirSync(dirname(join(schemas, path)), { recursive: true });
    writeFileSync(join(schemas, path), text);
  }
  await packFolder(schemas, join(out, 'crd-schemas.tar.gz'), { seconds });
}

async function addReports({ project, out, version, changelog, seconds, work }: Release): Promise<void> {
  writeFileSync(join(out, 'notes.md'), notesOf(version, changelog));
  const docs = join(project, 'docs');
  const reports = join(work, 'reports');
  cpSync(join(docs, 'conformance'), join(reports, 'conformance'), { recursive: true });
  const pages = readdirSync(docs)
    .filter(name => name.endsWith('.md'))
    .sort();
  const texts = pages.map(name => [name, readFileSync(join(docs, name), 'utf8')] as const);
  writeFileSync(join(reports, 'figures.md'), figuresIn(new Map(texts)));
  cpSync(join(docs, 'soak.md'), join(reports, 'soak.md'));
  await packFolder(reports, join(out, `${NAME}-${version}-reports.tar.gz`), { seconds });
}

async function addImage(
  release: Release,
  architecture: Architecture,
  all: Bill,
  bundled: readonly string[],
): Promise<void> {
  const { project, built, out, version, revision, seconds } = release;
  const work = join(release.work, architecture);
  const { contents: node, software } = await nodeFiles(project, architecture, work);
  const contents = new Map([...node, ...productContents(built)]);
  const base = `${NAME}-${version}-image-${architecture}`;
  const labels = {
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.revision': revision,
    'org.opencontainers.image.title': NAME,
    'org.opencontainers.image.version': version,
  };
  const image = { contents, architecture, labels, seconds, tag: `${NAME}:${version}` };
  await writeImage({ ...image, work: join(work, 'image'), file: join(out, `${base}.tar`) });
  writeBill(release, `${base}.cdx.json`, billOf(all, shipped(release, `${NAME}-image`), bundled, software));
}

function shipped({ version, seconds }: Release, name: string) {
  return { name, version, seconds };
}

function writeBill({ out }: Release, file: string, bill: Bill): void {
  writeFileSync(join(out, file), `${JSON.stringify(bill, undefined, 2)}\n`);
}

/** Writes the sums in the form that sha256sum --check reads, last, so that the file is a sign of a whole release. */
async function addSums(out: string): Promise<readonly string[]> {
  const names = readdirSync(out).sort();
  const lines = [];
  for (const name of names) lines.push(`${await sha256Of(join(out, name))}  ${name}\n`);
  const file = join(out, SUMS);
  writeFileSync(`${file}.new`, lines.join(''));
  renameSync(`${file}.new`, file);
  return [...names, SUMS];
}
