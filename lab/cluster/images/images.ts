import { execFile } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { BinaryName } from '../../parts/parts.ts';
import type { ProcessNotes } from '../../process/state-folder.ts';
import { contentsOf, keyOfContents, PROGRAMS } from './contents.ts';
import type { Contents } from './contents.ts';
import { withRegistry } from './registry.ts';
import { imageOf, IMAGES } from './table.ts';
import type { Image } from './table.ts';

const run = promisify(execFile);

/** What images are made with. */
export type ImageOptions = {
  readonly pathOf: (name: BinaryName) => string;
  readonly imageCache: string;
  readonly onStep: (step: string) => void;
};

/** An image to make, and the file for it. */
export type ImageDraft = {
  readonly name: string;
  readonly tag: string;
  readonly entrypoint: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly contents: Contents;
  readonly file: string;
};

/** Makes the images that are missing, and returns the files of all. */
export async function makeImages(options: ImageOptions, notes: ProcessNotes): Promise<readonly string[]> {
  const drafts = await Promise.all(IMAGES.map(image => draftOf(image, options)));
  const missing = drafts.filter(({ file }) => !existsSync(file));
  if (missing.length > 0) {
    mkdirSync(options.imageCache, { recursive: true });
    removeWorkFolders(options.imageCache);
    await withRegistry(options.pathOf('crane'), notes, async registry => {
      for (const draft of missing) {
        options.onStep(`image ${draft.name}`);
        removeOlder(draft, options.imageCache);
        await makeImage(draft, options.pathOf('crane'), registry);
      }
    });
  }
  return drafts.map(({ file }) => file);
}

/** Removes what a killed run has left; the lock keeps two from running at once. */
function removeWorkFolders(folder: string): void {
  const left = readdirSync(folder).filter(name => name.startsWith(WORKSHOP));
  for (const name of left) rmSync(join(folder, name), { recursive: true });
}

const WORKSHOP = 'work-';

async function draftOf(image: Image, { pathOf, imageCache }: ImageOptions): Promise<ImageDraft> {
  const contents = await contentsOf(image, pathOf);
  const { name, programs } = image;
  return {
    name,
    tag: imageOf(name),
    entrypoint: [`${PROGRAMS}/${programs[0]}`],
    contents,
    file: join(imageCache, `${name}-${keyOfContents(contents)}.tar`),
  };
}

/** This machine's architecture, as Go and OCI name it. */
const PLATFORM = `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`;

/** Makes the file of an image, and renames it into place. */
export async function makeImage(draft: ImageDraft, crane: string, registry: string): Promise<void> {
  const { name, tag, entrypoint, contents, file } = draft;
  const workshop = mkdtempSync(join(dirname(file), WORKSHOP));
  try {
    const layer = await packLayer(workshop, contents);
    const pushed = `${registry}/${name}:draft`;
    await run(crane, ['append', `--new_layer=${layer}`, `--new_tag=${pushed}`]);
    const made = join(workshop, basename(file));
    const variables = Object.entries({ PATH: PROGRAMS, ...draft.environment });
    const environment = variables.map(([variable, value]) => `--env=${variable}=${value}`);
    const settings = [`--entrypoint=${entrypoint.join()}`, ...environment, '--user=65532'];
    const target = [`--set-platform=${PLATFORM}`, `--tag=${tag}`, `--output=${made}`];
    await run(crane, ['mutate', pushed, ...settings, ...target]);
    renameSync(made, file);
  } finally {
    rmSync(workshop, { recursive: true });
  }
}

function removeOlder({ name }: ImageDraft, folder: string): void {
  const isOlder = new RegExp(`^${name}-[0-9a-f]{16}\\.tar$`);
  for (const old of readdirSync(folder).filter(entry => isOlder.test(entry))) rmSync(join(folder, old));
}

/** Writes the files of an image into a folder, and those of every image. */
export function layOut(tree: string, contents: Contents): void {
  for (const [inside, source] of contents) {
    const target = join(tree, inside);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(source, target);
    chmodSync(target, 0o755);
  }
  mkdirSync(join(tree, 'etc'), { recursive: true });
  writeFileSync(join(tree, 'etc', 'passwd'), USERS);
  mkdirSync(join(tree, 'tmp'));
  chmodSync(join(tree, 'tmp'), 0o1777);
}

const USERS = 'root:x:0:0::/:\nnonroot:x:65532:65532::/:\n';

async function packLayer(workshop: string, contents: Contents): Promise<string> {
  const tree = join(workshop, 'tree');
  layOut(tree, contents);
  const layer = join(workshop, 'layer.tar');
  await run('tar', [
    '-C',
    tree,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--sort=name',
    '-cf',
    layer,
    '.',
  ]);
  return layer;
}
