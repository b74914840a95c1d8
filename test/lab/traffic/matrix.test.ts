import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { typescript } from '../../support/lab/command-line.ts';
import { cellsOf, rowsOf } from '../../support/lab/traffic/matrix/cells.ts';
import { HOLDS, matrixTable } from '../../support/lab/traffic/matrix/matrix.ts';
import type { Outcome } from '../../support/lab/traffic/matrix/matrix.ts';
import { proveProxied } from '../../support/lab/traffic/matrix/proxied.ts';
import { outputInOwnNetwork } from '../../support/lab/traffic/own-network.ts';

const FORM = process.env['MESH_GATEWAY_FORM'] === 'long' ? 'long' : 'short';
const LIMIT_MS = { short: 900_000, long: 1_800_000 }[FORM];

const rows = rowsOf(FORM);
const outcomes: Outcome[] = [];

beforeAll(async () => {
  outcomes.push(...(await proveProxied(rows.filter(({ path }) => path === 'Proxy'))));
  const direct = typescript('test/support/lab/traffic/matrix/direct.ts', FORM);
  const output = JSON.parse(await outputInOwnNetwork(direct)) as { readonly outcomes: readonly Outcome[] };
  outcomes.push(...output.outcomes);
}, LIMIT_MS);

afterAll(() => {
  console.log(`\n${matrixTable(rows, outcomes)}\n`);
});

const textOf = ({ row, property }: Pick<Outcome, 'row' | 'property'>) => `${row}, ${property}`;

describe('traffic through the real Envoy and the real tailnet', () => {
  it.each(cellsOf(rows))('$row, $property', cell => {
    const found = outcomes.filter(outcome => textOf(outcome) === textOf(cell));
    expect(found.map(({ text }) => text)).toEqual([HOLDS]);
  });

  it('has been proved for each cell of the matrix, and for nothing that is not in it', () => {
    expect(outcomes.map(textOf).sort()).toEqual(cellsOf(rows).map(textOf).sort());
  });
});
