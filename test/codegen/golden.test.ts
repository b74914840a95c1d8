import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { generate } from '../../codegen/generate.ts';
import { tinyFiles } from '../support/codegen/tiny-schema.ts';

const FOLDER = 'test/golden/tiny';

const phases: string[] = [];
const outputs = await generate({ schemas: tinyFiles(), protos: new Map() }, phase => phases.push(phase));
const names = new Map([...outputs].map(([path, text]) => [goldenName(path), text]));

/** Code is kept as .txt files, which are not compiled. */
function goldenName(path: string): string {
  return path.endsWith('.ts') ? `${basename(path)}.txt` : basename(path);
}

describe('the tiny schema generates', () => {
  it.each([...names])('%s as it is in test/golden/tiny', async (name, text) => {
    await expect(text).toMatchFileSnapshot(`../golden/tiny/${name}`);
  });

  it('nothing else', () => {
    expect(readdirSync(FOLDER).sort()).toEqual([...names.keys()].sort());
  });

  it('the same again, in any order of its files', async () => {
    const schemas = new Map([...tinyFiles()].reverse());
    expect(await generate({ schemas, protos: new Map() }, () => undefined)).toEqual(outputs);
  });

  it('one phase after the other, and reports which', () => {
    expect(phases).toEqual(['load', 'types', 'validators', 'crds', 'protobuf', 'pages']);
  });

  it('text that ends in one line break, without spaces at the ends of lines', () => {
    for (const [path, text] of outputs) {
      expect(text, path).toMatch(/[^\n]\n$/);
      expect(text, path).not.toMatch(/[ \t]+\n/);
    }
  });
});
