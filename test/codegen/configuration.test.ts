import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { configurationModules, loadConfiguration } from '../../codegen/configuration.ts';
import { refusalIn } from '../support/codegen/refusal.ts';

const port = {
  type: 'integer',
  format: 'int32',
  minimum: 1,
  maximum: 65_535,
  default: 80,
  description: 'A port.',
};

/** The schema of a small configuration, with something changed at its root. */
function schema(change: object = {}): string {
  return JSON.stringify({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Small',
    description: 'A small one.',
    type: 'object',
    properties: { port: { $ref: '#/$defs/Port' } },
    $defs: { Port: port },
    ...change,
  });
}

const PLACE = '../synth/config.json#';

describe('the schema of a configuration', () => {
  it('is read as one object, which is not a kind', () => {
    const { name, root } = loadConfiguration(schema());
    expect(name).toBe('Small');
    expect(Object.keys(root.fields)).toEqual(['port']);
    expect(root.fields['port']).toMatchObject({ is: 'integer', default: 80 });
  });

  it.each([
    ['is not JSON', '{', `${PLACE}: `],
    ['is a list', '[]', `${PLACE}: must be an object`],
    ['has no title', schema({ title: undefined }), `${PLACE}: must be an object with a title`],
    [
      'has a field without a description',
      schema({ $defs: { Port: { ...port, description: undefined } } }),
      'needs a description',
    ],
    [
      'has a default that is wrong',
      schema({ $defs: { Port: { ...port, default: 0 } } }),
      'is not an integer from 1 to 65535',
    ],
    ['names what is not there', schema({ $defs: {} }), `${PLACE}/properties/port/$ref: names nothing`],
    [
      'takes from a kind',
      schema({ properties: { a: { $ref: 'shared.json#/$defs/Port' } } }),
      'names nothing',
    ],
    [
      'has an unbounded text',
      schema({ properties: { a: { type: 'string', description: 'A.' } } }),
      'needs maxLength',
    ],
  ])('is refused where it %s', (_, text, message) => {
    expect(refusalIn(() => loadConfiguration(text))).toContain(message);
  });
});

describe('the modules of a configuration', () => {
  it('are a validator in its parts, and a type', async () => {
    const modules = new Map(await configurationModules(loadConfiguration(schema())));
    expect([...modules.keys()]).toEqual(['outline.ts', 'rules.ts', 'shape.ts', 'structure.ts', 'types.ts']);
    expect(modules.get('types.ts')).toContain('readonly port: number;');
    for (const text of modules.values()) {
      expect(text).toContain('from synth/config.json. Do not edit.');
      expect(text).not.toMatch(/from '\.\.\/(?!\.\.\/src)/);
    }
  });

  it('are those that are committed', async () => {
    const modules = await configurationModules(loadConfiguration(readFileSync('synth/config.json', 'utf8')));
    for (const [name, text] of modules) expect(readFileSync(`synth/generated/${name}`, 'utf8')).toBe(text);
  });
});
