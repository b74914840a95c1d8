/** `npm run image -- FOLDER | --archive FILE [--tag NAME]`: what is in the product's image, without a container tool. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { locateBinaries } from '../parts/locate.ts';
import { layOutProduct, makeProductArchive } from '../cluster/images/product.ts';
import { EXIT, runMain } from './run-main.ts';

const USAGE = `npm run image -- FOLDER
npm run image -- --archive FILE [--tag NAME]

Needs what npm run build makes.

  FOLDER          a new folder for the files of the image
  --archive FILE  the image as docker load reads it; needs npm run parts
  --tag NAME      its name; mesh-gateway with the version if not given
`;

const project = resolve(import.meta.dirname, '..', '..');

function usualTag(): string {
  const { version } = JSON.parse(readFileSync(resolve(project, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  return `mesh-gateway:${version}`;
}

async function main(): Promise<number> {
  const options = { archive: { type: 'string' }, tag: { type: 'string' } } as const;
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const { archive, tag = usualTag() } = values;
  const [folder] = positionals;
  if (archive !== undefined && folder === undefined) {
    const pathOf = locateBinaries(process.env);
    await makeProductArchive({ project, pathOf, tag, file: resolve(archive) });
    console.log(`${archive} is ${tag}`);
    return EXIT.done;
  }
  if (folder === undefined || archive !== undefined) throw new Error(`name a folder or an archive\n${USAGE}`);
  await layOutProduct(project, resolve(folder));
  console.log(`${folder} has the files of the image`);
  return EXIT.done;
}

await runMain('image', main);
