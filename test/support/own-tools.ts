import { readFileSync } from 'node:fs';

/** The test files of our own tools, if they are to be skipped: nothing that they depend on has changed since they passed. */
export function skippedTests({ OWN_TOOLS: mode }: NodeJS.ProcessEnv): readonly string[] {
  if (mode !== 'skip') return [];
  const { tests } = JSON.parse(readFileSync('test/own-tools.json', 'utf8')) as { readonly tests: string[] };
  return tests;
}
