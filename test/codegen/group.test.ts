import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CODE_FOLDER, CRD_FOLDER, generate } from '../../codegen/generate.ts';
import type { Outputs } from '../../codegen/generate.ts';
import { schemaFiles } from '../support/schema/product-schemas.ts';

const OLD = { group: 'mesh-gateway.dev', version: 'v1alpha1', categories: ['mesh'] };
const NEW = { group: 'tailroutes.example.org', version: 'v2beta3', categories: ['net', 'routes'] };

const files = schemaFiles();
const original = await generate({ schemas: files, protos: new Map() }, () => undefined);
const renamed = await generate(
  { schemas: new Map(files).set('group.json', JSON.stringify(NEW)), protos: new Map() },
  () => undefined,
);

/** The original outputs, paths included, with the group and version replaced. */
function replaced(outputs: Outputs): Outputs {
  const change = (text: string) =>
    text
      .replaceAll(OLD.group, NEW.group)
      .replaceAll(OLD.version, NEW.version)
      .replaceAll(/^( +)categories:\n +- mesh$/gm, '$1categories:\n$1  - net\n$1  - routes');
  return new Map([...outputs].map(([path, text]) => [change(path), change(text)]));
}

describe('another group, version and categories in group.json', () => {
  it('are the only place to change: no output names the old ones', () => {
    const left = [...renamed].filter(([path, text]) => `${path}\n${text}`.includes(OLD.group));
    expect(left.map(([path]) => path)).toEqual([]);
    expect([...renamed.values()].join('\n')).not.toContain(OLD.version);
  });

  it('change the names of the CRD files', () => {
    const crds = [...renamed.keys()].filter(path => path.startsWith(CRD_FOLDER));
    expect(crds).toEqual([
      'dist/crds/meshbindings.tailroutes.example.org.yaml',
      'dist/crds/meshendpoints.tailroutes.example.org.yaml',
      'dist/crds/meshgateways.tailroutes.example.org.yaml',
      'dist/crds/meshroutepolicies.tailroutes.example.org.yaml',
      'dist/crds/meshtailnets.tailroutes.example.org.yaml',
    ]);
  });

  it.each([...replaced(original)])('change only these names in %s', (path, text) => {
    expect(renamed.get(path)).toBe(text);
  });

  it('do not change the number of files', () => {
    expect(renamed.size).toBe(original.size);
  });
});

/** The files of a generated folder as they are on disk. */
function onDisk(folder: string): readonly string[] {
  return readdirSync(folder).map(name => `${folder}/${name}`);
}

describe('the generated files on disk', () => {
  it.each([...original])('%s is generated from the schema: npm run generate', (path, text) => {
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('are all generated', () => {
    expect([...onDisk(CODE_FOLDER), ...onDisk(CRD_FOLDER)].sort()).toEqual([...original.keys()].sort());
  });

  it('are generated from this group', () => {
    expect(JSON.parse(files.get('group.json') ?? '')).toEqual(OLD);
  });
});
