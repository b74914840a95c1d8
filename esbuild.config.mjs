/**
 * `npm run build`: bundles what runs into dist/js or the folder that is named. The library is one file, whole in itself;
 * the command is a small one, and each of its commands loads the parts that it needs.
 */
import { cp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
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
  // Node's own is deprecated, with a warning at each start that reads a kubeconfig.
  alias: { punycode: 'punycode/punycode.js' },
  // CommonJS packages inside an ES module still call require for Node's own modules, and look for files near their own: the
  // two of gRPC find their .proto files two folders above, as bundled in proto/ beside the command.
  banner: {
    js: [
      "import { createRequire as requireFor } from 'node:module';",
      'const require = requireFor(import.meta.url);',
      "import { fileURLToPath as pathForUrl } from 'node:url';",
      "const __dirname = pathForUrl(new URL('package', import.meta.url));",
    ].join(' '),
  },
  logLevel: 'warning',
};

await rm(outdir, { recursive: true, force: true });
await build({ ...shared, entryPoints: ['src/index.ts'] });
await build({ ...shared, entryPoints: ['src/cli.ts'], splitting: true, chunkNames: 'parts/[name]-[hash]' });

await cp('src/tools/kubectl_complete-mesh', join(outdir, 'kubectl_complete-mesh'));
await cp('node_modules/grpc-health-check/proto/health', join(outdir, 'proto/health'), { recursive: true });
await cp('node_modules/@grpc/reflection/build/proto/grpc', join(outdir, 'proto/grpc'), { recursive: true });
