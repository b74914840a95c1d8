import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'vitest';

const isOutput = new Ajv2020({ allErrors: true, allowUnionTypes: true, strictRequired: false }).compile(
  JSON.parse(readFileSync('docs/output.schema.json', 'utf8')) as object,
);

/** Reads what a tool prints with --output json, as its schema describes it. */
export function parseOutput(text: string): unknown {
  const output: unknown = JSON.parse(text);
  isOutput(output);
  expect(isOutput.errors ?? []).toEqual([]);
  return output;
}
