import { describe, expect, it } from 'vitest';
import type { Finding } from '../../src/tools/check/objects.ts';
import { formatFindings } from '../../src/tools/check/output.ts';
import type { Output } from '../../src/tools/check/output.ts';
import { PLAIN } from '../../src/tools/terminal.ts';

const ABOUT = { kind: 'HTTPRoute', namespace: 'default', name: 'web' };
const FILE = { file: 'my web.yaml', line: 2, column: 3 };

/** A finding about an object, in a file where it has a place. */
function finding(severity: Finding['mattersAs'], more: object = FILE): Finding {
  const wrong = { reason: 'Invalid', text: 'is wrong', fix: 'correct it' } as const;
  return { ...wrong, mattersAs: severity, about: ABOUT, at: ['spec', 'port'], ...more } as Finding;
}

const printed = (output: Output, findings: readonly Finding[], text = 'kind: HTTPRoute\n\tport: 1  \n') =>
  formatFindings(output, findings, [{ name: FILE.file, text }], PLAIN);

describe('a finding as text', () => {
  it.each([
    [
      'in a file has its place, its line and a mark',
      FILE,
      [
        'my web.yaml:2:3: error: spec.port: is wrong: correct it [Invalid]',
        '    2 |  port: 1',
        '      |   ^',
      ],
    ],
    [
      'of a cluster has its object',
      {},
      ['HTTPRoute default/web: error: spec.port: is wrong: correct it [Invalid]'],
    ],
    [
      'about no object has neither',
      { about: undefined, at: undefined },
      ['error: is wrong: correct it [Invalid]'],
    ],
    [
      'about a kind has neither',
      { about: { kind: 'HTTPRoute' }, at: undefined },
      ['error: is wrong: correct it [Invalid]'],
    ],
    [
      'has its example, apart',
      { example: 'kind: A\nspec: {}', fix: undefined },
      ['HTTPRoute default/web: error: spec.port: is wrong [Invalid]', '', 'kind: A', 'spec: {}'],
    ],
    [
      'beyond the end of its file has its place alone',
      { ...FILE, line: 9 },
      ['my web.yaml:9:3: error: spec.port: is wrong: correct it [Invalid]'],
    ],
  ])('%s', (_, more, lines) => {
    expect(printed('text', [finding('error', more)])).toBe(lines.join('\n'));
  });

  it('on a terminal has its fix on a line of its own', () => {
    const look = { hasColor: false, columns: 80 };
    expect(formatFindings('text', [finding('error', {})], [], look)).toBe(
      'HTTPRoute default/web: error: spec.port: is wrong [Invalid]\n    fix: correct it',
    );
  });

  it.each([
    ['fits', 72, 4],
    ['is wider than', 73, 2],
  ])('with a line that %s the terminal (%i characters) has %i lines', (_, length, count) => {
    const file = { name: 'a.yaml', text: `kind: HTTPRoute\n${'x'.repeat(length)}\n` };
    const place = { file: 'a.yaml', line: 2, column: 3 };
    const look = { hasColor: false, columns: 80 };
    const text = formatFindings('text', [finding('error', place)], [file], look);
    expect(text.split('\n')).toHaveLength(count);
  });

  it.each([
    [120, 3],
    [121, 1],
  ])('in a line of %i characters has %i lines', (length, count) => {
    const text = `kind: HTTPRoute\n${'x'.repeat(length)}\n`;
    expect(printed('text', [finding('error')], text).split('\n')).toHaveLength(count);
  });
});

describe('findings as SARIF', () => {
  it('have a level by their severity, the file that they are in, and each rule once', () => {
    const all = [finding('error'), finding('warning', {}), finding('note'), finding('unknown')];
    const { runs } = JSON.parse(printed('sarif', all)) as {
      readonly runs: readonly { readonly tool: object; readonly results: readonly object[] }[];
    };
    expect(runs[0]?.tool).toMatchObject({ driver: { rules: [{ id: 'Invalid' }] } });
    const text = 'spec.port: is wrong: correct it';
    const place = {
      physicalLocation: {
        artifactLocation: { uri: 'my%20web.yaml' },
        region: { startLine: 2, startColumn: 3 },
      },
    };
    expect(runs[0]?.results).toEqual([
      { ruleId: 'Invalid', level: 'error', message: { text }, locations: [place] },
      { ruleId: 'Invalid', level: 'warning', message: { text: `HTTPRoute default/web: ${text}` } },
      { ruleId: 'Invalid', level: 'note', message: { text }, locations: [place] },
      { ruleId: 'Invalid', level: 'note', message: { text }, locations: [place] },
    ]);
  });
});

describe('findings as annotations', () => {
  it('have a command by their severity, and a file where they are in one, of which nothing is a command', () => {
    const hostile = { ...FILE, file: 'a:b,c%.yaml', example: 'kind: A' };
    const all = [
      finding('error', hostile),
      finding('warning', {}),
      finding('note', { about: undefined }),
      finding('unknown', { about: undefined, text: '100%' }),
    ];
    expect(printed('github', all).split('\n')).toEqual([
      '::error file=a%3Ab%2Cc%25.yaml,line=2,col=3,title=Invalid::spec.port: is wrong: correct it%0A%0Akind: A',
      '::warning title=Invalid::HTTPRoute default/web: spec.port: is wrong: correct it',
      '::notice title=Invalid::spec.port: is wrong: correct it',
      '::notice title=Invalid::spec.port: 100%25: correct it',
    ]);
  });
});
