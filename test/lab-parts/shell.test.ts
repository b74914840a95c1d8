import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { assignments } from '../../lab/commands/variables.ts';

it.each([
  '127.0.0.1:80',
  'http://web-1.example.ts.net/a?b=c&d',
  '/a folder/with spaces',
  "it's",
  "''",
  '$(echo run) `echo run` $HOME',
  'a;echo run',
  '#no comment',
  '~',
  '*',
  'back\\slash',
  'two\nlines',
  '',
])('a shell gets back the very value that was written for it: %j', value => {
  const script = `${assignments([['VALUE', value]]).join('\n')}\nprintf %s "$VALUE"`;
  expect(execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' })).toBe(value);
});

it('writes plain values without quotes', () => {
  expect(assignments([['WEB_1_CONTROL', 'http://127.0.0.1:80/a_b']])).toEqual([
    'WEB_1_CONTROL=http://127.0.0.1:80/a_b',
  ]);
});
