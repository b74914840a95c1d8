import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SHIPPED_FOLDER } from '../../lab/schemas/shipped-schemas.ts';
import { judgeOf } from '../../src/tools/crds/cel.ts';
import { patternOf } from '../../src/tools/crds/pattern.ts';

const files = readdirSync(SHIPPED_FOLDER);
const pathOf = (file: string) => join(SHIPPED_FOLDER, file);
const read = (file: string) => JSON.parse(readFileSync(pathOf(file), 'utf8')) as { readonly release: string };

/** Every text at a keyword of the schemas. */
function textsAt(keyword: string): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inner] of Object.entries(value))
      if (name === keyword && typeof inner === 'string') found.add(inner);
      else visit(inner);
  };
  files.map(read).forEach(visit);
  return found;
}

describe('the schemas in the package', () => {
  it('are those of the Envoy Gateway and the Gateway API that tests run', () => {
    const modules = readFileSync('lab/parts/envoy-gateway/go.mod', 'utf8');
    const versionOf = (module: string) => modules.split(`${module} `)[1]?.split(' ')[0];
    expect(new Set(files.map(file => read(file).release))).toEqual(
      new Set([
        `Gateway API ${versionOf('sigs.k8s.io/gateway-api')}`,
        `Envoy Gateway ${versionOf('github.com/envoyproxy/gateway')}`,
      ]),
    );
  });

  it('are smaller than 1 MB', () => {
    expect(files.reduce((sum, file) => sum + statSync(pathOf(file)).size, 0)).toBeLessThan(1_000_000);
  });

  it('have no rule that cannot be evaluated, but for those about changes', () => {
    const rules = [...textsAt('rule')];
    expect(rules.length).toBeGreaterThan(200);
    expect(rules.filter(rule => !judgeOf(rule))).toEqual(['self == oldSelf']);
  });
});

/** Beginnings that patterns accept, and runs of what they repeat. */
const BEGINNINGS = ['', 'http://', 'a://', '*://*.', '/', '1.1.1.1/', '*.', '::', 'x@', '//'];
const RUNS = [
  'a',
  'A',
  '0',
  '-',
  '.',
  '_',
  '/',
  ':',
  'a.',
  'a-',
  '1s',
  'a/',
  '*.',
  '%41',
  ',',
  '::',
  '1.',
  '!',
  'a@',
];
const LENGTH = 3000;

describe('no pattern of them backtracks on long input', () => {
  it.each([...textsAt('pattern')])('%s', pattern => {
    const texts = BEGINNINGS.flatMap(start =>
      RUNS.map(run => `${(start + run.repeat(LENGTH)).slice(0, LENGTH)}\n`),
    );
    // One that does never returns.
    expect(texts.map(text => typeof patternOf(pattern).test(text))).toEqual(texts.map(() => 'boolean'));
  });
});

describe('a pattern that is replaced', () => {
  it.each([
    ['^[!-~]+([\\t ]?[!-~]+)*$', ['a', 'a b', 'a\tb c'], ['', ' a', 'a ', 'a  b', 'ä']],
    [
      '^(\\*|[A-Za-z][A-Za-z0-9+.-]*:\\/\\/(\\*|(\\*\\.)?(([\\w-]+\\.?)+)?[\\w-]+)(:\\d{1,5})?)$',
      ['*', 'https://a', 'https://*.example.com:80', 'http://a.b-c', 'http://*'],
      ['a', 'https://', 'https://a..b', 'https://.a', 'https://a.', 'https://a:123456'],
    ],
  ])('%s accepts the same', (pattern, accepted, refused) => {
    const replaced = patternOf(pattern);
    expect(replaced.source).not.toBe(new RegExp(pattern).source);
    for (const expression of [replaced, new RegExp(pattern, 'u')])
      expect([...accepted, ...refused].map(text => expression.test(text))).toEqual([
        ...accepted.map(() => true),
        ...refused.map(() => false),
      ]);
  });
});
