import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ROUTES_OF } from '../../src/library/protocols.ts';
import { compile } from '../support/library/compile.ts';
import { BUILDERS } from '../support/library/modules.ts';

const page = readFileSync('docs/routes-in-typescript.md', 'utf8');
const blocks = [...page.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, text = '']) => text);

/** Each example continues the one before. */
const code = blocks.join('\n');

it('the examples of the page compile, and those marked as errors do not', () => {
  expect(blocks.length).toBeGreaterThan(5);
  expect(compile({ page: code }).get('page')).toBe('');
});

it('the error messages on the page are those of the compiler', () => {
  const sentences = [...code.matchAll(/@ts-expect-error (.*)/g)].map(([, sentence = '']) => sentence);
  const errors = compile({ page: code.replaceAll('@ts-expect-error', '') }).get('page');
  expect(sentences.length).toBe(2);
  for (const sentence of sentences) expect(errors).toContain(`"${sentence}"`);
});

it('the page has the table of protocols', () => {
  for (const [protocol, kinds] of Object.entries(ROUTES_OF)) {
    const row = page.split('\n').find(line => line.startsWith(`| ${protocol} `));
    expect(row?.match(/`\w+`/g), protocol).toEqual(kinds.map(kind => `\`${BUILDERS[kind]}\``));
  }
});
