import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { contentsOf, PROGRAMS } from './contents.ts';
import type { Contents } from './contents.ts';
import { withRegistry } from './registry.ts';
import { layOut, makeImage } from './images.ts';
import type { BinaryName } from '../../parts/parts.ts';
import { StateFolder } from '../../process/state-folder.ts';

/** The folder of the product in its image. */
const INSIDE = '/app';

/** Flags of Node, as in the Dockerfile. */
export const NODE_FLAGS = ['--max-semi-space-size=4', '--heap-growing-percent=50'];

/** As in the Dockerfile; its argument is the command. */
export const ENTRYPOINT = [`${PROGRAMS}/node`, ...NODE_FLAGS, `${INSIDE}/dist/js/cli.js`];

/** As in the Dockerfile. */
export const ENVIRONMENT = { MALLOC_MMAP_THRESHOLD_: '32768' };

/** What was built in a project, as it is in the product's image beside Node. */
export function productContents(project: string): Contents {
  if (!existsSync(join(project, 'dist/js/cli.js')))
    throw new Error('dist/js is not built: run npm run build');
  const built = ['dist/js', 'dist/crds'].flatMap(folder => filesBelow(join(project, folder)));
  const files = [join(project, 'package.json'), ...built.filter(isNeeded)];
  return new Map(files.map(file => [join(INSIDE, relative(project, file)), realpathSync(file)]));
}

/** Each file of the product's image: a Node with the libraries of this machine, and what was built in a project. */
async function withNode(project: string, nodeBinary: string): Promise<Contents> {
  const product = productContents(project);
  return new Map([...(await contentsOf({ programs: ['node'] }, () => nodeBinary)), ...product]);
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .sort();
}

/** Source maps, the library and the list of bundled packages are left out. */
function isNeeded(file: string): boolean {
  return !/\.map$|\/js\/(types\/|index\.js|packages\.json)/.test(file);
}

/** Writes the files of the product's image, with the Node that runs this, into a folder that must not exist yet. */
export async function layOutProduct(project: string, folder: string): Promise<void> {
  if (existsSync(folder)) throw new Error(`${folder} exists already: name a new folder`);
  layOut(folder, await withNode(project, realpathSync(process.execPath)));
}

/** What the archive is made with. */
export type ArchiveOptions = {
  readonly project: string;
  readonly pathOf: (name: BinaryName) => string;
  readonly tag: string;
  readonly file: string;
};

/** Writes an archive of the product's image, with the Node of the parts, as docker load and containers' tools read it. */
export async function makeProductArchive({ project, pathOf, tag, file }: ArchiveOptions): Promise<void> {
  const contents = await withNode(project, pathOf('node'));
  const crane = pathOf('crane');
  const notes = new StateFolder(mkdtempSync(join(tmpdir(), 'mesh-gateway-image-')));
  notes.create();
  try {
    await withRegistry(crane, notes, registry =>
      makeImage(
        { name: 'mesh-gateway', tag, entrypoint: ENTRYPOINT, environment: ENVIRONMENT, contents, file },
        crane,
        registry,
      ),
    );
  } finally {
    await notes.remove();
    rmSync(notes.path, { recursive: true, force: true });
  }
}
