import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { publint } from 'publint';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { decode } from '../../src/api/objects/decode.ts';
import { consumer, pack, runScript, TSC } from '../support/package/packed.ts';
import type { Packed } from '../support/package/packed.ts';
import { checkText } from '../support/tools/checked.ts';

const PROJECT = 'examples/routes-in-typescript';
const OTHERS = ['cdk8s', 'constructs', '@types/node', 'undici-types'];

const require = createRequire(import.meta.url);
const ATTW = require.resolve('@arethetypeswrong/cli/package.json');

let packed: Packed;
let example: string;
beforeAll(async () => {
  packed = await pack();
  example = consumer(packed, 'example', PROJECT, OTHERS);
});
afterAll(() => packed.remove());

describe('the package', () => {
  it('has nothing that publint objects to', async () => {
    const { messages } = await publint({ pkgDir: packed.unpacked, pack: false, strict: true });
    expect(messages).toEqual([]);
  });

  it('has types that are found and right, to all who can import ES modules', async () => {
    const args = [packed.tarball, '--profile', 'esm-only', '--no-emoji', '--no-color'];
    const { code, output } = await runScript(join(dirname(ATTW), 'dist/index.js'), args);
    expect(code, output).toBe(0);
  });

  it('is less than 6 MB unpacked, without source maps', () => {
    const files = readdirSync(packed.unpacked, { recursive: true, encoding: 'utf8' });
    const bytes = files.reduce((sum, path) => sum + statSync(join(packed.unpacked, path)).size, 0);
    expect(files.filter(path => path.endsWith('.map'))).toEqual([]);
    expect(bytes).toBeLessThan(6_000_000);
  });

  it('has the license of each package that is bundled', () => {
    const bundled = JSON.parse(readFileSync('dist/js/packages.json', 'utf8')) as readonly string[];
    const text = readFileSync(join(packed.unpacked, 'dist/js/LICENSES.txt'), 'utf8');
    const named = bundled.filter(id => text.split('\n').some(line => line.startsWith(`${id} (`)));
    expect(bundled.length).toBeGreaterThan(20);
    expect(named).toEqual(bundled);
    // stream-buffers and protobuf-es name theirs and bring no text; that of the second is there by others.
    const bare = text.split(/\n\n-{80}\n\n/).filter(section => !section.includes('\n\n'));
    expect(bare.join('\n').match(/^\S+(?=@)/gm)).toEqual(['@bufbuild/protobuf', 'stream-buffers']);
  });

  it('keeps the names of functions and classes, those of other packages too', () => {
    const parts = join(packed.unpacked, 'dist/js/parts');
    const text = readdirSync(parts)
      .filter(name => name.endsWith('.js'))
      .map(name => readFileSync(join(parts, name), 'utf8'))
      .join('\n');
    const names = ['"parseAllDocuments"', '"Http2SubchannelConnector"'];
    expect(names.filter(name => !text.includes(name))).toEqual([]);
  });
});

describe('an empty folder', () => {
  let folder: string;
  beforeAll(() => {
    folder = join(packed.root, 'empty');
    mkdirSync(folder);
    const install = ['install', '--offline', '--no-audit', '--no-fund', '--prefix', folder, packed.tarball];
    execFileSync('npm', install, { cwd: folder });
  });

  it('gets this package alone', () => {
    const names = readdirSync(join(folder, 'node_modules')).filter(name => !name.startsWith('.'));
    expect(names).toEqual(['mesh-gateway']);
  });

  it('can author objects, with stacks that name the functions', async () => {
    const path = join(folder, 'author.mjs');
    writeFileSync(path, AUTHOR);
    const { code, output } = await runScript(path, [], folder);
    expect(code, output).toBe(0);
    expect(checkText(output).findings).toEqual([]);
    expect(output.match(/^kind: .*/gm)).toEqual(['kind: MeshTailnet', 'kind: MeshGateway']);
    expect(output).toMatch(/^# at httpRoute /m);
  });
});

const AUTHOR = `
import { httpRoute, meshGateway, meshTailnet, toYaml, validate } from 'mesh-gateway';
const tailnet = meshTailnet({ metadata: { name: 'example' }, tailnet: 'example.ts.net', tags: ['tag:mesh'] });
const gateway = meshGateway({ metadata: { name: 'public', namespace: 'infra' }, targetRefs: 'public' });
if (!validate('MeshTailnet', tailnet).valid || validate('MeshGateway', {}).valid) process.exit(1);
console.log(toYaml([tailnet, gateway]));
try {
  httpRoute({});
} catch (error) {
  const [name] = error.stack.match(/at httpRoute /);
  console.log('# ' + name);
}
`;

describe('the example', () => {
  const compileExample = (folder: string, ...args: readonly string[]) =>
    runScript(TSC, ['-p', folder, ...args]);

  it('compiles as strictly as TypeScript can, with declarations, and writes YAML that check accepts', async () => {
    const strict = ['--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--declaration'];
    expect(await compileExample(example, ...strict)).toEqual({ code: 0, output: '' });
    expect(await runScript(join(example, 'build/main.js'), [], example)).toEqual({ code: 0, output: '' });
    const text = readFileSync(join(example, 'dist/shop.k8s.yaml'), 'utf8');
    await expect(text).toMatchFileSnapshot('../golden/library/shop.k8s.yaml');
    expect(checkText(text)).toEqual({ findings: [], objects: 4 });
    const objects = parseAllDocuments(text).map(document => decode(document.toJS()));
    expect(objects.map(({ is }) => is)).toEqual(Array(4).fill('resource'));
  });

  it('compiles for a bundler, but for a port that is not declared', async () => {
    const wrong = consumer(packed, 'wrong', PROJECT, OTHERS);
    const path = join(wrong, 'shop.ts');
    writeFileSync(path, readFileSync(path, 'utf8').replace('backend(shop, 5432)', 'backend(shop, 5433)'));
    const bundler = ['--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit', '--skipLibCheck'];
    const { output } = await compileExample(wrong, ...bundler);
    expect(output.match(/error TS\d+: .*/g)).toHaveLength(1);
    expect(output).toContain('"port 5433 is not declared; declared are 8080 | 8081 | 5432"');
  });
});
