import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../../../../lab/process/errors.ts';
import { until } from '../../../../../lab/process/wait.ts';
import { nameOf } from './cells.ts';
import type { Cell, Property, Row } from './cells.ts';
import { CHECKS, outcomeOf, SUCCEEDED } from './checks.ts';
import type { Subject } from './subject.ts';

/** The outcome of a cell. */
export type Outcome = Cell & { readonly text: string; readonly tookMs: number };

/** The outcome of a cell that is proved. */
export const HOLDS = 'holds';

/** The system in which rows are proved. */
export interface MatrixSystem {
  subjectOf(row: Row): Promise<Subject>;
  /** Disconnects every node with services from the tailnet, or reconnects all. */
  change(to: 'offline' | 'online'): Promise<void>;
  /** Whether rows must run in sequence. */
  readonly isShared: boolean;
}

type Prepared = { readonly row: Row; readonly subject: Subject };

/** Proves rows, the cells of a row in sequence, and returns the outcome of each. */
export async function proveRows(rows: readonly Row[], matrix: MatrixSystem): Promise<readonly Outcome[]> {
  const prepared = await Promise.all(rows.map(async row => ({ row, subject: await matrix.subjectOf(row) })));
  try {
    const outcomes: Outcome[] = [];
    const fill = async (one: Prepared) => void outcomes.push(...(await fillRow(one)));
    if (matrix.isShared) for (const one of prepared) await fill(one);
    else await Promise.all(prepared.map(fill));
    return [...outcomes, ...(await fillNodeOff(prepared, matrix))];
  } finally {
    for (const { subject } of prepared) {
      subject.client.close();
      subject.distrusted?.client.close();
    }
  }
}

async function fillRow({ row, subject }: Prepared): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const property of row.properties) {
    if (property !== 'node off') outcomes.push(await proved(row, property, CHECKS[property](subject)));
  }
  return outcomes;
}

const [OFF_MS, LATE_MS] = [2_000, 15_000];
const PROBE = Buffer.from('is there anyone?');

/** While their nodes are off, no row reaches its service, so none bypasses the tailnet. Then all reach it again. */
async function fillNodeOff(rows: readonly Prepared[], matrix: MatrixSystem): Promise<readonly Outcome[]> {
  const concerned = rows.filter(({ row }) => row.properties.includes('node off'));
  await matrix.change('offline');
  const whileOff = await Promise.all(concerned.map(({ subject }) => outcomeOf(untilItFails(subject))));
  await matrix.change('online');
  return Promise.all(
    concerned.map((one, index) => {
      const back = async () => {
        if (whileOff[index] !== SUCCEEDED) throw new Error(`past the tailnet: ${whileOff[index]}`);
        await untilItWorks(one.subject);
      };
      return proved(one.row, 'node off', back());
    }),
  );
}

/** Nodes are disconnected some moments after the call returns. */
async function untilItFails({ client }: Subject): Promise<void> {
  const poll = async () => {
    const outcome = await outcomeOf(within(OFF_MS, client.echo(PROBE)));
    return outcome === SUCCEEDED ? undefined : true;
  };
  await until('it to lead nowhere', poll);
}

/** Waits until a service answers; a probe that timed out may still reach it, and be counted. */
export async function untilItWorks({ client }: Pick<Subject, 'client'>): Promise<void> {
  const poll = async () => (await within(LATE_MS, client.echo(PROBE))).equals(PROBE);
  await until('an answer', poll);
}

const CELL_MS = { '100 MB': 300_000, rest: 120_000 } as const;

async function proved(row: Row, property: Property, check: Promise<void>): Promise<Outcome> {
  const startMs = performance.now();
  const limitMs = property === '100 MB' ? CELL_MS['100 MB'] : CELL_MS.rest;
  const text = await within(limitMs, check).then(
    () => HOLDS,
    (error: unknown) => messageOf(error),
  );
  return { row: nameOf(row), property, text, tookMs: performance.now() - startMs };
}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const late = sleep(limitMs, undefined, { signal: over.signal }).then(() => {
    throw new Error(`nothing within ${limitMs / 1_000} s`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
    late.catch(() => undefined);
  }
}

/** The matrix as a table: what is proved, in how many milliseconds, and what is not. */
export function matrixTable(rows: readonly Row[], outcomes: readonly Outcome[]): string {
  const properties = [...new Set(rows.flatMap(row => row.properties))];
  const text = (row: Row, property: Property) => {
    if (!row.properties.includes(property)) return '';
    const found = outcomes.find(one => one.row === nameOf(row) && one.property === property);
    if (!found) return 'MISSING';
    return found.text === HOLDS ? `${Math.round(found.tookMs)} ms` : 'FAILED';
  };
  const table = [
    ['', ...properties],
    ...rows.map(row => [nameOf(row), ...properties.map(property => text(row, property))]),
  ];
  const widths = properties.map((_, column) =>
    Math.max(...table.map(line => (line[column + 1] ?? '').length)),
  );
  const first = Math.max(...table.map(line => (line[0] ?? '').length));
  return table
    .map(([name = '', ...cells]) =>
      [name.padEnd(first), ...cells.map((cell, column) => cell.padStart(widths[column] ?? 0))].join('  '),
    )
    .join('\n');
}
