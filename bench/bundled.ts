import { join } from 'node:path';
import { buildSync } from 'esbuild';

/** Bundles a program of a bench as the product is; gives its path. */
export function bundled(name: string): string {
  const bundle = join('.cache', 'bench', `${name}.mjs`);
  buildSync({
    entryPoints: [`bench/${name}.ts`],
    outfile: bundle,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    banner: {
      js: "import { createRequire } from 'node:module';const require = createRequire(import.meta.url);",
    },
  });
  return bundle;
}
