/**
 * `npm run build`: bundles what runs into dist/js or the folder that is named. The library is one file, whole in itself;
 * the command is a small one, and each of its commands loads the parts that it needs.
 */
import { readFile, rm } from 'node:fs/promises';
import { build } from 'esbuild';

const outdir = process.argv[2] ?? 'dist/js';
const { version } = JSON.parse(await readFile('package.json', 'utf8'));

const shared = {
  outdir,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  sourcemap: true,
  minifyWhitespace: true,
  legalComments: 'linked',
  define: { VERSION_OF_PACKAGE: JSON.stringify(version) },
  // CommonJS packages inside an ES module still call require for Node's own modules.
  banner: {
    js: "import { createRequire as requireFor } from 'node:module'; const require = requireFor(import.meta.url);",
  },
  logLevel: 'warning',
};

await rm(outdir, { recursive: true, force: true });
await build({ ...shared, entryPoints: ['src/index.ts'] });
await build({ ...shared, entryPoints: ['src/cli.ts'], splitting: true, chunkNames: 'parts/[name]-[hash]' });
