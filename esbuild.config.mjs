/**
 * `npm run build`: bundles what runs into dist/js or the folder that is named, with all packages that it needs. The library and
 * the command share parts, and each of the commands loads the parts that it needs.
 */
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const outdir = process.argv[2] ?? 'dist/js';
const { version } = JSON.parse(await readFile('package.json', 'utf8'));

await rm(outdir, { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: ['src/index.ts', 'src/cli.ts'],
  outdir,
  bundle: true,
  splitting: true,
  chunkNames: 'parts/[name]-[hash]',
  platform: 'node',
  format: 'esm',
  target: 'node20',
  sourcemap: true,
  metafile: true,
  // Functions and classes keep their names, so that stacks can be read without source maps.
  minify: true,
  keepNames: true,
  legalComments: 'linked',
  define: { VERSION_OF_PACKAGE: JSON.stringify(version) },
  alias: {
    // Node has URL itself; node-fetch takes it from there.
    'whatwg-url': 'node:url',
    // Other packages bring copies.
    '@grpc/proto-loader': resolve('node_modules/@grpc/proto-loader'),
    yaml: resolve('node_modules/yaml'),
  },
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
});

await cp('src/tools/kubectl_complete-mesh', join(outdir, 'kubectl_complete-mesh'));
// Where the part that reads them has them in the sources: beside itself.
await cp('src/tools/crds/shipped', join(outdir, 'parts/shipped'), { recursive: true });
await cp('node_modules/grpc-health-check/proto/health', join(outdir, 'proto/health'), { recursive: true });
await cp('node_modules/@grpc/reflection/build/proto/grpc', join(outdir, 'proto/grpc'), { recursive: true });

/** The packages that are bundled: their names and versions for the bill of materials of a release, and their licenses. */
const folders = new Set(
  Object.keys(metafile.inputs).flatMap(path => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/) ?? []),
);
const bundled = await Promise.all(
  [...folders].map(async folder => {
    const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    const files = (await readdir(folder)).filter(file => /^(licen[cs]e|copying|notice)/i.test(file)).sort();
    const texts = await Promise.all(files.map(file => readFile(join(folder, file), 'utf8')));
    return { id: `${name}@${version.replace(/^v/, '')}`, license, text: texts.join('\n').trim() };
  }),
);
const packages = [...new Map(bundled.map(each => [each.id, each])).values()].sort((a, b) =>
  a.id < b.id ? -1 : 1,
);
// A text that several packages have is written once.
const sections = new Map();
for (const { id, license, text } of packages)
  sections.set(text, `${sections.get(text) ?? ''}${id} (${license})\n`);
const licenses = [...sections].map(([text, of]) => `${of}\n${text}`.trim());
const list = packages.map(({ id }) => id);
await writeFile(join(outdir, 'packages.json'), `${JSON.stringify(list, undefined, 2)}\n`);
await writeFile(join(outdir, 'LICENSES.txt'), `${licenses.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`);
