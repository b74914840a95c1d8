import { describe, expect, it } from 'vitest';
import { walk } from '../codegen/walk.ts';
import { productKinds } from './support/schema/product-schemas.ts';

const patterns = productKinds()
  .flatMap(kind => walk(kind.root))
  .flatMap(({ node }) =>
    (node.is === 'text' || node.is === 'int-or-string') && node.pattern ? [node.pattern] : [],
  );

/** Texts that make a badly written pattern backtrack: long runs of what it repeats, and an end that does not match. */
const RUNS = [
  'a',
  'A',
  '0',
  '1',
  '-',
  '.',
  '_',
  '/',
  ':',
  'a.',
  'a-',
  '1s',
  '0.0h',
  'tag:',
  'a/',
  '[',
  '[a',
  'http://a',
];

describe('no pattern backtracks on long input', () => {
  it.each([...new Set(patterns)])('%s', pattern => {
    const expression = new RegExp(pattern, 'u');
    const accepted = RUNS.filter(run => expression.test(`${run.repeat(100_000)}\n`));
    expect(accepted).toEqual([]);
  });
});
