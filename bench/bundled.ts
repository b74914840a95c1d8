import { execFileSync } from 'node:child_process';
import { basename, join } from 'node:path';
import { buildSync } from 'esbuild';
import { NODE_FLAGS } from '../lab/cluster/images/product.ts';
import { PARTS } from '../lab/parts/parts.ts';
import type { BinaryName } from '../lab/parts/parts.ts';

/** Bundles a program of a bench like the product, and returns its path. */
export function bundled(name: string): string {
  const bundle = join('.cache', 'bench', 'js', 'bench', `${basename(name)}.mjs`);
  buildSync({
    entryPoints: [`bench/${name}.ts`],
    outfile: bundle,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    banner: {
      js: [
        "import { createRequire } from 'node:module';const require = createRequire(import.meta.url);",
        // The .proto files of gRPC's services lie beside the product: build that first.
        "import { fileURLToPath as pathForUrl } from 'node:url';",
        "const __dirname = pathForUrl(new URL('package', import.meta.url));",
      ].join(''),
    },
  });
  return bundle;
}

/** Builds the product, and returns the path of its command. */
export function builtProduct(): string {
  const folder = join('.cache', 'bench', 'js');
  execFileSync(process.execPath, ['esbuild.config.mjs', folder], { stdio: ['ignore', 'ignore', 'inherit'] });
  return join(folder, 'cli.js');
}

/** The command that runs the product as the image does: these flags and variables decide what memory it takes. */
export function productCommand(product = builtProduct()): readonly string[] {
  return ['env', 'MALLOC_MMAP_THRESHOLD_=32768', process.execPath, ...NODE_FLAGS, product];
}

/** Finds programs of the parts in `npm run parts -- --list`, since only composition roots read the environment. */
export function locatePrograms(): (name: BinaryName) => string {
  const args = ['--import', 'tsx', 'lab/commands/parts.ts', '--list'];
  const listed = execFileSync(process.execPath, args, { encoding: 'utf8' });
  return name => {
    const part = PARTS.find(({ binaries }) => binaries.some(binary => binary.name === name))?.name;
    const folder = new RegExp(`^${part} .*built\\s+(\\S+)$`, 'm').exec(listed)?.[1];
    if (folder === undefined) throw new Error(`${name} is not built: run npm run parts`);
    return join(folder, 'bin', name);
  };
}
