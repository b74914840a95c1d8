import { elapsed } from '../parts/progress.ts';
import type { Source } from './source.ts';

/** The tests of a run. */
export type Counts = { readonly passed: number; readonly failed: number; readonly skipped: number };

/** The last run of a form. */
export type Run = Source &
  Counts & {
    readonly date: string;
    readonly seconds: number;
    /** Whether the command succeeded and a test passed. */
    readonly ok: boolean;
  };

/** The last run of each form that has run, by its name. */
export type SoakRecord = Readonly<Record<string, Run>>;

type Named = { readonly name: string };

/** Which forms to run, and whether to run those again that have passed. */
export type Selection = {
  readonly only: readonly string[];
  readonly from: string | undefined;
  readonly passed: 'skip' | 'again';
};

/** Whether a form passed on the very same sources, without changes that were not committed. */
export function isCurrent(run: Run | undefined, { sources, isDirty }: Source): boolean {
  return run !== undefined && run.ok && !run.isDirty && !isDirty && run.sources === sources;
}

/** The forms to run now; fails for a name that no form has. */
export function formsToRun<T extends Named>(
  forms: readonly T[],
  record: SoakRecord,
  source: Source,
  { only, from, passed }: Selection,
): readonly T[] {
  const names = forms.map(({ name }) => name);
  for (const name of [...only, ...(from === undefined ? [] : [from])])
    if (!names.includes(name)) throw new Error(`no long form is called ${name}: ${names.join(', ')}`);
  return forms
    .slice(from === undefined ? 0 : names.indexOf(from))
    .filter(({ name }) => only.length === 0 || only.includes(name))
    .filter(({ name }) => passed === 'again' || !isCurrent(record[name], source));
}

/** The counts in a report of vitest. */
export function countsInReport(report: string): Counts {
  const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(report) as Readonly<
    Record<'numPassedTests' | 'numFailedTests' | 'numPendingTests', number>
  >;
  return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests };
}

/** The counts in the table of a conformance mode: core and extended tests, and what is excluded. */
export function countsInTable(table: string): Counts {
  const rows = [...table.matchAll(/^(?:core|extended) +(\d+) +(\d+)$/gm)];
  const sum = (column: number) => rows.reduce((total, row) => total + Number(row[column]), 0);
  return { passed: sum(1), failed: sum(2), skipped: Number(/^excluded: (\d+)$/m.exec(table)?.[1] ?? 0) };
}

/** The record as a page of the documentation. */
export function pageOf(forms: readonly Named[], record: SoakRecord): string {
  const rows = forms.map(({ name }) => `| ${[name, ...cellsOf(record[name])].join(' | ')} |`);
  return [
    '# Long forms of tests',
    '',
    '`npm run soak` writes this page and [soak.json](soak.json): the last run of each test in the form that takes too long for each',
    'commit. A run with changes that were not committed does not count as passed.',
    '',
    '| form | result | passed | failed | skipped | took | date | commit |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}

function cellsOf(run: Run | undefined): readonly string[] {
  if (!run) return ['not run yet', '', '', '', '', '', ''];
  const result = run.ok ? 'passed' : 'failed';
  return [
    run.isDirty ? `${result}, with changes` : result,
    ...[run.passed, run.failed, run.skipped].map(String),
    elapsed(run.seconds * 1000),
    run.date.slice(0, 10),
    run.commit.slice(0, 12),
  ];
}
