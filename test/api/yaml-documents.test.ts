import { describe, expect, it } from 'vitest';
import { readDocuments, readPlaced } from '../../src/api/yaml-documents.ts';

/** The values of all documents of a text that has no faults. */
function valuesOf(text: string): readonly unknown[] {
  const { documents, faults } = readDocuments(text);
  expect(faults).toEqual([]);
  return documents.map(({ value }) => value);
}

/** `line: message` of each fault of a text. */
function faultsOf(text: string): readonly string[] {
  return readDocuments(text).faults.map(({ line, message }) => `${line}: ${message}`);
}

const SCALARS: readonly (readonly [sentence: string, written: string, value: unknown])[] = [
  ['yes is true', 'yes', true],
  ['On is true', 'On', true],
  ['y is true', 'y', true],
  ['no is false', 'no', false],
  ['OFF is false', 'OFF', false],
  ['n is false', 'n', false],
  ['"yes" in quotes is a text', '"yes"', 'yes'],
  ['a leading zero makes an octal number', '010', 8],
  ['in quotes it makes a text', "'010'", '010'],
  ['0o makes an octal number too', '0o17', 15],
  ['also with a sign', '-0o17', -15],
  ['0x makes a hexadecimal number', '0x1F', 31],
  ['0b makes a binary number', '0b101', 5],
  ['underscores are left out of numbers', '1_000', 1000],
  ['an exponent makes a number', '1e3', 1000],
  ['a fraction makes a number', '1.5', 1.5],
  ['an exponent of nothing stays a text', 'e-1', 'e-1'],
  ['so does a dot with an exponent', '.e5', '.e5'],
  ['so does a number that is too large', '1e400', '1e400'],
  ['a dot alone stays a text', '.', '.'],
  ['so does one with a sign', '-.', '-.'],
  ['a dot before digits makes a number', '.5', 0.5],
  ['two numbers with a colon stay a text', '1:30', '1:30'],
  ['three numbers with colons stay a text', '12:30:45', '12:30:45'],
  ['so do those with a fraction', '1:30.5', '1:30.5'],
  ['a date stays a text', '2026-01-31', '2026-01-31'],
  ['a time stays a text', '2026-01-31T12:00:00Z', '2026-01-31T12:00:00Z'],
  ['a time with a space stays a text', '2026-01-31 12:00:00', '2026-01-31 12:00:00'],
  ['~ is null', '~', null],
  ['nothing is null', '', null],
  ['a version stays a text', '1.2.3', '1.2.3'],
  ['a tag makes a number a text', '!!str 80', '80'],
  ['an address stays a text', '100.64.0.1', '100.64.0.1'],
];

describe('a value is read as kubectl reads it', () => {
  it.each(SCALARS)('%s: %s', (_sentence, written, value) => {
    expect(valuesOf(`value: ${written}\n`)).toEqual([{ value }]);
  });

  it.each([
    ['y: 1', 'true'],
    ['1: 1', '1'],
    ['"80": 1', '80'],
    ['"__proto__": 1', '__proto__'],
  ])('a key is always a text: %s', (text, key) => {
    const [value] = valuesOf(`${text}\n`);
    expect(Object.keys(value as object)).toEqual([key]);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

const TEXTS: readonly (readonly [sentence: string, text: string, values: readonly unknown[]])[] = [
  ['nothing', '', []],
  ['comments alone', '# nothing here\n', []],
  ['one document', 'a: 1\n', [{ a: 1 }]],
  ['several documents', 'a: 1\n---\nb: 2\n---\nc: 3\n', [{ a: 1 }, { b: 2 }, { c: 3 }]],
  ['empty documents between others', '---\n---\na: 1\n---\n', [null, { a: 1 }, null]],
  ['a final end mark', '---\na: 1\n...\n', [{ a: 1 }]],
  ['Windows line ends and a byte order mark', '\ufeffa: 1\r\nb: 2\r\n', [{ a: 1, b: 2 }]],
  [
    'joined files with byte order marks',
    'a: 1\n---\n\ufeffa: 2\n---\r\n\ufeff# b\r\na: 3\n',
    [{ a: 1 }, { a: 2 }, { a: 3 }],
  ],
  ['JSON', '{"a": [1, "b", null, true]}\n', [{ a: [1, 'b', null, true] }]],
  ['JSON with tabs', '{\n\t"a": {\n\t\t"b": 1\n\t}\n}\n', [{ a: { b: 1 } }]],
  ['JSON with escapes', String.raw`{"a": "\ud83d\ude80 \u00e9 \/ \n"}`, [{ a: '🚀 é / \n' }]],
  ['anchors and aliases', 'a: &a {x: 1}\nb: *a\n', [{ a: { x: 1 }, b: { x: 1 } }]],
  ['merge keys', 'a: &a {x: 1, z: 3}\nb: {<<: *a, z: 2}\n', [{ a: { x: 1, z: 3 }, b: { x: 1, z: 2 } }]],
];

describe('a file holds', () => {
  it.each(TEXTS)('%s', (_sentence, text, values) => {
    expect(valuesOf(text)).toEqual(values);
  });
});

const FAULTS: readonly (readonly [sentence: string, text: string, faults: readonly string[]])[] = [
  [
    'a key that is there twice',
    'a: 1\nb: 2\na: 3\n',
    ['3: this key is in line 1 already: remove one of them'],
  ],
  [
    'a key that is there twice further down',
    'a:\n  b: 1\n  b: 2\n',
    ['3: this key is in line 2 already: remove one of them'],
  ],
  [
    'a key that is there twice in a second document',
    'a: 1\n---\nb: 1\nb: 2\n',
    ['4: this key is in line 3 already: remove one of them'],
  ],
  ['a key that is a list', '? [a]\n: 1\n', ['1: a key must be a text']],
  ...['a: {{ .Values.a }}', '{{- if .Values.a }}', 'a: 1\n{{ end }}'].map(
    text =>
      [
        `a template: ${text}`,
        `${text}\n`,
        [
          `${text.split('\n').length}: this looks like a template, such as those of Helm: render it first, as in helm template FOLDER | mesh-gateway check -`,
        ],
      ] as const,
  ),
  ['a tab as indentation', 'a:\n\tb: 1\n', ['2: tabs must not indent: use spaces']],
  [
    'a character that YAML keeps for itself',
    'a: 1\nb: @c\n',
    ['2: a text that begins with @ or ` needs quotes'],
  ],
  [
    'an alias of nothing',
    'a: *nothing\n',
    ['1: this names no anchor; put a text that begins with * into quotes'],
  ],
];

describe('a file is refused with', () => {
  it.each(FAULTS)('%s', (_sentence, text, faults) => {
    expect(faultsOf(text)).toEqual(faults);
  });

  it('no harm to its other documents', () => {
    const { documents, faults } = readDocuments('a: 1\n---\na: [\n---\nb: 2\n');
    expect(documents.map(({ value }) => value)).toEqual([{ a: 1 }, { b: 2 }]);
    expect(faults).toHaveLength(1);
  });

  it.each(['v: |tok3n', 'v: *tok3n', '- a\n"tok3n" b', 'k: "tok3n', '@tok3n', '? {a: tok3n}\n: b'])(
    'words that never repeat what is in it: %s',
    text => {
      const faults = faultsOf(text);
      expect(faults).not.toEqual([]);
      expect(faults.join()).not.toContain('tok3n');
    },
  );

  it('too many aliases, and not with one that is used often', () => {
    const often = (times: number) => `a: &x 1\nb: [${'*x, '.repeat(times)}]\n`;
    expect(faultsOf(often(300))).toEqual([]);
    expect(faultsOf(often(10_001))).toEqual(['2: there are too many aliases']);
  });

  it.each(['a: {<<: 5}\n', 'x: &x [1]\na: {<<: *x}\n'])('a merge of a value that is not a map: %j', text => {
    expect(faultsOf(text)).toEqual(['1: what is merged by << must be maps']);
  });

  it('an anchor that contains itself', () => {
    expect(faultsOf('a: &a [*a]\n')).toHaveLength(1);
  });

  it('a list that does not end, at the line where that is detected', () => {
    expect(faultsOf('a: 1\nb: [1,\nc: 2\n')[0]).toMatch(/^[23]: the indentation/);
  });
});

const BOMBS: readonly (readonly [sentence: string, first: string, next: (index: number) => string])[] = [
  ['lists of lists', 'a0: &a0 [x, x]', index => `a${index}: &a${index} [${`*a${index - 1}, `.repeat(10)}]`],
  ['maps of maps', 'a0: &a0 {k: v}', index => `a${index}: &a${index} {x: *a${index - 1}, y: *a${index - 1}}`],
  ...['pairs', 'omap'].map(
    tag =>
      [
        `lists of !!${tag}`,
        'a0: &a0 {k: v}',
        (index: number) => `a${index}: &a${index} !!${tag} [x: *a${index - 1}, y: *a${index - 1}]`,
      ] as const,
  ),
  [
    'merged maps',
    'a0: &a0 {k: v}',
    index => `a${index}: &a${index} {<<: [*a${index - 1}, *a${index - 1}], z: *a${index - 1}}`,
  ],
];

describe('a file that would fill the memory is refused', () => {
  it.each(BOMBS)('%s', (_sentence, first, next) => {
    const lines = [first, ...Array.from({ length: 40 }, (_, index) => next(index + 1))];
    expect(faultsOf(lines.join('\n'))).toEqual(['1: the aliases of this document stand for too much']);
  });

  it.each<[string, (rule: number) => string, string]>([
    ['a long list named often', rule => `  - {name: r${rule}, port: 80}`, 'all: *rules'],
    ['a long map merged often', rule => `  k${rule}: 80`, '<<: *rules'],
  ])('%s', (_sentence, rule, use) => {
    const rules = Array.from({ length: 1000 }, (_, index) => rule(index));
    const uses = Array.from({ length: 1000 }, (_, index) => `  - {name: u${index}, ${use}}`);
    const text = ['rules: &rules', ...rules, 'uses:', ...uses].join('\n');
    expect(faultsOf(text)).toEqual(['1: the aliases of this document stand for too much']);
  });

  it('but not one whose aliases expand to at most a million values', () => {
    const uses = (times: number) => `a: &a [${'{a: b}, '.repeat(100)}]\nb: [${'*a, '.repeat(times)}]\n`;
    const ofOne = 1 + 100 * 3;
    expect(faultsOf(uses(Math.floor(1_000_000 / ofOne)))).toEqual([]);
    expect(faultsOf(uses(Math.ceil(1_000_001 / ofOne)))).toHaveLength(1);
  });

  it('brackets without end', () => {
    expect(readDocuments('['.repeat(100_000)).faults).not.toEqual([]);
  });
});

const SOURCE = `# a comment
spec:
  tailnet: example.ts.net
  endpoints:
    - name: web
      port:
        80
    - {name: api, port: 81,
       weight: 2}
  labels: {"80": [1], a.b: c}
  numbers:
    80:
      - 1
  empty:
`;

const LINES: readonly (readonly [steps: readonly string[], line: number])[] = [
  [[], 2],
  [['spec', 'tailnet'], 3],
  [['spec', 'endpoints'], 5],
  [['spec', 'endpoints', '0'], 5],
  [['spec', 'endpoints', '0', 'name'], 5],
  [['spec', 'endpoints', '0', 'port'], 7],
  [['spec', 'endpoints', '1'], 8],
  [['spec', 'endpoints', '1', 'port'], 8],
  [['spec', 'endpoints', '1', 'weight'], 9],
  [['spec', 'labels', 'a.b'], 10],
  [['spec', 'labels', '80', '0'], 10],
  [['spec', 'numbers', '80', '0'], 13],
  [['spec', 'endpoints', '0', 'missing'], 5],
  [['spec', 'endpoints', '7', 'name'], 5],
  [['spec', 'missing', 'deeper'], 3],
  [['missing'], 2],
];

describe('the line of a value', () => {
  it.each(LINES)('at %j is %i, or that of the innermost value around it', (steps, line) => {
    const [document] = readDocuments(SOURCE).documents;
    expect(document?.positionOf(steps).line).toBe(line);
  });

  it('is found under a quoted key that could be a number', () => {
    const [document] = readDocuments('labels:\n  other: a\n  "80": b\n').documents;
    expect(document?.positionOf(['labels', '80'])).toEqual({ line: 3, column: 9 });
  });

  it('is counted from the beginning of the file in each document', () => {
    const { documents } = readDocuments('a: 1\n---\nb: 1\n---\n\nc: 1\n');
    expect(documents.map(({ positionOf }) => positionOf([]).line)).toEqual([1, 3, 6]);
  });

  it('inside an alias is the line of the alias', () => {
    const [document] = readDocuments('a: &a\n  x: 1\nb: 2\nc: *a\n').documents;
    expect(document?.positionOf(['c', 'x'])).toEqual({ line: 4, column: 4 });
  });

  it('of an empty document is the first', () => {
    expect(readDocuments('---\n').documents[0]?.positionOf(['a']).line).toBe(1);
  });
});

const [ONE, TWO] = [
  { apiVersion: 'a/v1', kind: 'One', x: 1 },
  { apiVersion: 'a/v1', kind: 'Two' },
];

describe('the objects of a document are', () => {
  it.each<[sentence: string, value: unknown, objects: readonly (readonly [unknown, string])[]]>([
    ['the document itself', ONE, [[ONE, '']]],
    [
      'the items of a List',
      { kind: 'List', items: [ONE, TWO] },
      [
        [ONE, 'items.0'],
        [TWO, 'items.1'],
      ],
    ],
    [
      'the items of a list of one kind',
      { apiVersion: 'a/v1', kind: 'OneList', items: [ONE] },
      [[ONE, 'items.0']],
    ],
    [
      'such items without a kind',
      { apiVersion: 'a/v1', kind: 'OneList', items: [{ x: 1 }] },
      [[ONE, 'items.0']],
    ],
    [
      'the items of a List in a List',
      { kind: 'List', items: [{ kind: 'List', items: [TWO] }] },
      [[TWO, 'items.0.items.0']],
    ],
    ['what is no list', { kind: 'OneList' }, [[{ kind: 'OneList' }, '']]],
  ])('%s', (_sentence, value, objects) => {
    const text = JSON.stringify(value, undefined, 2);
    const [document] = readDocuments(text).documents;
    const placeOf = (path: string) => document?.positionOf(path === '' ? [] : path.split('.'));
    expect(readPlaced(text).placed.map(({ object, positionOf }) => [object, positionOf([])])).toEqual(
      objects.map(([object, path]) => [object, placeOf(path)]),
    );
  });

  it('are none in an empty document', () => {
    expect(readPlaced('---\n---\n# nothing\n')).toEqual({ placed: [], faults: [] });
  });

  it('none of a plain list, which kubectl refuses, too', () => {
    expect(readPlaced(`---\n- ${JSON.stringify(ONE)}\n---\n${JSON.stringify(TWO)}`)).toEqual({
      placed: [expect.objectContaining({ object: TWO })],
      faults: [{ line: 2, column: 1, message: expect.stringContaining('put --- between them') as string }],
    });
    expect(readPlaced('[1, {}]').faults).toEqual([]);
  });
});
