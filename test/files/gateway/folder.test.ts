import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fileOfPart, isGeneratedFile, partsIn, textsOfFiles } from '../../../src/files/gateway/folder.ts';
import { textOf } from '../../../src/files/gateway/part.ts';
import { readDocuments } from '../../../src/api/yaml-documents.ts';

/** The same in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const name = fc.stringMatching(/^[A-Z][A-Za-z]{0,9}\/[-a-z0-9.]{0,20}\/[-a-z0-9.]{1,20}$/);
const object = fc.object({ values: [fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean()] });
/** One object, or the same under two names. */
const text = fc.array(object, { minLength: 1, maxLength: 2 }).map(all => all.map(textOf).join('---\n'));

/** The text of parts that are all in the one file. */
const textOfParts = (parts: Iterable<readonly [string, string]>) =>
  textsOfFiles(parts).get('mesh-gateway.yaml') ?? '';

const objectsOf = (text: string) => text.split('\n---\n').map(one => JSON.parse(one) as unknown);

describe('the parts of a file', () => {
  it('are read as they were written', () => {
    fc.assert(
      fc.property(fc.dictionary(name, text), parts => {
        const written = new Map(Object.entries(parts));
        expect(partsIn(textOfParts([...written]))).toEqual(written);
      }),
      { seed },
    );
  });

  it('are documents of YAML, one for each object', () => {
    fc.assert(
      fc.property(fc.dictionary(name, text), parts => {
        const written = Object.entries(parts);
        const objects = written.sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, text]) => objectsOf(text));
        const { documents, faults } = readDocuments(textOfParts(written));
        expect(faults).toEqual([]);
        expect(documents.map(({ value }) => value)).toEqual(objects);
      }),
      { seed },
    );
  });

  it('are separated by lines that no value can contain', () => {
    const text = textOf({ a: 'x\u2028# foo\n\u0085# bar\n# baz\u007f\ufffe' });
    expect(text).toBe('{\n  "a": "x\\u2028# foo\\n\\u0085# bar\\n# baz\\u007f\\ufffe"\n}\n');
    expect(JSON.parse(text)).toEqual({ a: 'x\u2028# foo\n\u0085# bar\n# baz\u007f\ufffe' });
    expect(partsIn(textOfParts([['Secret/a/b', text]]))).toEqual(new Map([['Secret/a/b', text]]));
  });

  it('are sorted', () => {
    const parts = [
      ['Secret/a/b', '{}\n'],
      ['Gateway/a/b', '{}\n'],
    ] as const;
    expect(textOfParts(parts)).toBe(textOfParts([...parts].reverse()));
  });

  it.each(['', '# ', 'a: b\n', '---\n---\n'])('are none in %j', given => {
    expect(partsIn(given).size).toBe(0);
  });
});

describe('the file of a part', () => {
  it.each(['HTTPRoute/default/web', 'MeshBinding/default/public', 'Secret/a/b'])('is one for %s', part => {
    expect(fileOfPart(part)).toBe('mesh-gateway.yaml');
  });

  it.each(['EnvoyProxy/a/one', 'EnvoyProxy/a/two', 'GatewayClass//mesh'])('is its own for %s', part => {
    expect(fileOfPart(part)).toMatch(/^(EnvoyProxy|GatewayClass)-[0-9a-f]{16}\.yaml$/);
    expect(isGeneratedFile(fileOfPart(part))).toBe(true);
    expect(fileOfPart(part)).not.toBe(fileOfPart(`${part}-other`));
  });

  it.each(['web.yaml', 'README.md', 'mesh-gateway.yml', 'EnvoyProxy-1.yaml', '.mesh-gateway.yaml.new'])(
    'is never that of others: %s',
    file => {
      expect(isGeneratedFile(file)).toBe(false);
    },
  );
});
