import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FORMS } from '../../lab/soak/forms.ts';
import { countsInReport, countsInTable, formsToRun, isCurrent, pageOf } from '../../lab/soak/record.ts';
import type { Run, SoakRecord } from '../../lab/soak/record.ts';

const SOURCE = { commit: 'c0ffee', sources: 'aaaa', isDirty: false };
const passed: Run = {
  ...SOURCE,
  ...{ date: '2026-01-31T12:00:00.000Z', seconds: 65, ok: true },
  ...{ passed: 3, failed: 0, skipped: 1 },
};
const forms = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
const ALL = { only: [], from: undefined, passed: 'skip' } as const;
const namesOf = (record: SoakRecord, selection: Parameters<typeof formsToRun>[3] = ALL) =>
  formsToRun(forms, record, SOURCE, selection).map(({ name }) => name);

describe('a run of the long forms', () => {
  it('resumes with those that have not passed on these sources', () => {
    expect(namesOf({})).toEqual(['a', 'b', 'c']);
    expect(namesOf({ a: passed, b: { ...passed, ok: false } })).toEqual(['b', 'c']);
    expect(namesOf({ a: passed, c: { ...passed, sources: 'bbbb' } })).toEqual(['b', 'c']);
  });

  it('repeats what has passed only on request', () => {
    const record = { a: passed, b: passed, c: passed };
    expect(namesOf(record)).toEqual([]);
    expect(namesOf(record, { ...ALL, passed: 'again' })).toEqual(['a', 'b', 'c']);
  });

  it('may be some of them, or those from one on', () => {
    expect(namesOf({}, { ...ALL, only: ['b'] })).toEqual(['b']);
    expect(namesOf({}, { ...ALL, from: 'b' })).toEqual(['b', 'c']);
    expect(() => namesOf({}, { ...ALL, only: ['d'] })).toThrow('no long form is called d: a, b, c');
  });

  it('counts a pass neither with changes then, nor with changes now', () => {
    expect(isCurrent(passed, SOURCE)).toBe(true);
    expect(isCurrent({ ...passed, isDirty: true }, SOURCE)).toBe(false);
    expect(isCurrent(passed, { ...SOURCE, isDirty: true })).toBe(false);
  });
});

describe('the counts of a long form', () => {
  it('are in the report of vitest', () => {
    const report = JSON.stringify({ numPassedTests: 4, numFailedTests: 1, numPendingTests: 2 });
    expect(countsInReport(report)).toEqual({ passed: 4, failed: 1, skipped: 2 });
  });

  it('are in the table of a conformance mode', () => {
    const table =
      'core      66       1\nextended  52       2\nGateway  118       3\n\nexcluded: 8\n  A: reason\n';
    expect(countsInTable(table)).toEqual({ passed: 118, failed: 3, skipped: 8 });
  });
});

describe('the record of the long forms', () => {
  it('has a row for each, with what ran', () => {
    const rows = pageOf(forms, { a: passed, b: { ...passed, ok: false, isDirty: true } }).split('\n');
    expect(rows.slice(-4, -1)).toEqual([
      '| a | passed | 3 | 0 | 1 | 1 min 5 s | 2026-01-31 | c0ffee |',
      '| b | failed, with changes | 3 | 0 | 1 | 1 min 5 s | 2026-01-31 | c0ffee |',
      '| c | not run yet |  |  |  |  |  |  |',
    ]);
  });

  it('is the same in both of its files', () => {
    const record = JSON.parse(readFileSync('docs/soak.json', 'utf8')) as SoakRecord;
    expect(readFileSync('docs/soak.md', 'utf8')).toBe(pageOf(FORMS, record));
  });
});

it('each long form has a file, and each file that has one is among them', () => {
  const files = FORMS.flatMap(({ command }) => command.filter(word => word.startsWith('test/')));
  expect(files.filter(file => !existsSync(file))).toEqual([]);
  // The suite without real parts runs as a whole.
  const real = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter(name => /^(lab|api-server|cluster)\/.*\.(test|soak)\.ts$/.test(name))
    .map(name => `test/${name}`);
  const long = real.filter(
    file => file.endsWith('.soak.ts') || /\b(IS_LONG|expectWithin)\b/.test(readFileSync(file, 'utf8')),
  );
  expect(long.length).toBeGreaterThan(5);
  expect(files).toEqual(expect.arrayContaining(long));
});
