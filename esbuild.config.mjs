/** `npm run build`: bundles what runs into dist/js, each file whole in itself. */
import { readFile, rm } from 'node:fs/promises';
import { build } from 'esbuild';

const outdir = 'dist/js';
const { version } = JSON.parse(await readFile('package.json', 'utf8'));

await rm(outdir, { recursive: true, force: true });
await build({
  entryPoints: ['src/cli.ts', 'src/index.ts'],
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
});
