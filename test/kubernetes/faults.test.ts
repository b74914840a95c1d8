import { expect, it } from 'vitest';
import { budgetOf, runFailure, MOMENTS, FAILURES } from '../support/kubernetes/api-faults.ts';
import type { Moment, Outcome, Failure } from '../support/kubernetes/api-faults.ts';

/** Concurrent servers. */
const AT_ONCE = 6;

type Cell = { readonly trouble: Failure; readonly moment: Moment; readonly outcome: Outcome };

async function matrix(): Promise<readonly Cell[]> {
  const waiting = FAILURES.flatMap(trouble => MOMENTS.map(moment => ({ trouble, moment })));
  const cells: Cell[] = [];
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      cells.push({ ...next, outcome: await runFailure(next.trouble, next.moment) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return cells;
}

/** The matrix as text: requests, and the time until the store was in sync again. */
function tableOf(cells: readonly Cell[]): string {
  const rows = FAILURES.map(trouble => {
    const shown = MOMENTS.map(moment => shownCell(cells, trouble, moment).padEnd(24));
    return `${trouble.padEnd(22)}${shown.join('')}`;
  });
  return [`${''.padEnd(22)}${MOMENTS.map(moment => moment.padEnd(24)).join('')}`, ...rows].join('\n');
}

function shownCell(cells: readonly Cell[], trouble: Failure, moment: Moment): string {
  const cell = cells.find(each => each.trouble === trouble && each.moment === moment);
  if (!cell) return 'MISSING';
  const { requests, ms, problem } = cell.outcome;
  const verdict = problem === undefined ? (requests > budgetOf(cell.outcome) ? 'TOO MANY ' : '') : 'WRONG ';
  return `${verdict}${requests} requests, ${ms} ms`;
}

it('after any failure at any time, the store equals the server, with few requests', async () => {
  const cells = await matrix();
  console.log(`requests and time until all was known again\n${tableOf(cells)}`);
  expect(cells).toHaveLength(FAILURES.length * MOMENTS.length);
  expect(cells.filter(({ outcome }) => outcome.problem !== undefined)).toEqual([]);
  expect(cells.filter(({ outcome }) => outcome.requests > budgetOf(outcome))).toEqual([]);
}, 120_000);
