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

/** What making images needs: where programs are, where images are kept, and a word for each. */
export type ImageWish = {
  readonly pathOf: (name: BinaryName) => string;
  readonly imageCache: string;
  readonly tell: (step: string) => void;
};

/** An image to be made: its name and its tag, what it runs, what is in it, and the file that it becomes. */
export type ImageDraft = {
  readonly name: string;
  readonly tag: string;
  readonly entrypoint: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly contents: Contents;
  readonly file: string;
};

/** Gives the files of all images, and makes those that are missing. */
export async function makeImages(wish: ImageWish, notes: ProcessNotes): Promise<readonly string[]> {
  const drafts = await Promise.all(IMAGES.map(image => draftOf(image, wish)));
  const missing = drafts.filter(({ file }) => !existsSync(file));
  if (missing.length > 0) {
    mkdirSync(wish.imageCache, { recursive: true });
    removeWorkshops(wish.imageCache);
    await withRegistry(wish.pathOf('crane'), notes, async registry => {
      for (const draft of missing) {
        wish.tell(`image ${draft.name}`);
        removeOlder(draft, wish.imageCache);
        await makeImage(draft, wish.pathOf('crane'), registry);
      }
    });
  }
  return drafts.map(({ file }) => file);
}

/** What was made by a run that was killed; two never work at once. */
function removeWorkshops(folder: string): void {
  const left = readdirSync(folder).filter(name => name.startsWith(WORKSHOP));
  for (const name of left) rmSync(join(folder, name), { recursive: true });
}

const WORKSHOP = 'work-';

async function draftOf(image: Image, { pathOf, imageCache }: ImageWish): Promise<ImageDraft> {
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

/** As Go and containers call this machine's processor. */
const PLATFORM = `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`;

/** Makes the file of an image, which appears by a rename. */
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

/** Puts the files of an image into a folder, with what every image has. */
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
