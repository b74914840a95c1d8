import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readCorpus } from '../support/schema/corpus.ts';
import { ruleNames } from '../support/schema/constraints.ts';
import { productKinds } from '../support/schema/product-schemas.ts';
import { NAMESPACE } from '../../src/api/names.ts';
import {
  controllerSettings,
  extensionSettings,
  telemetrySettings,
} from '../../src/process/declared-settings.ts';
import type { Settings } from '../../src/process/settings.ts';
import { allMetrics } from '../../src/telemetry/metrics.ts';
import { alerts } from '../../synth/monitoring/alerts.ts';
import { BEHAVIOUR_TABLES } from './behaviour.ts';
import { differencesOf, fieldOf, withoutField } from './fields-of-kind.ts';
import { FIELD_TABLES } from './fields.ts';
import { faultOf, titlesIn } from './named-tests.ts';
import { isOnRealParts, NAMED_ROWS, realTestsOf } from './real-tests.ts';

/**
 * The contract, row by row. Proved by the checklist itself: each field has its type, default and whether it is required,
 * and the corpus fails without it; each metric, alert and setting is declared, and a test names it. Of all other rows
 * only the names of the tests are checked: that they fail without what the row promises is for their reader to judge.
 */
const rows = [...FIELD_TABLES, ...BEHAVIOUR_TABLES].flatMap(table =>
  table.rows.map(row => {
    const id = `${table.name}: ${row.cells[0]}`;
    const tests = [...row.tests, ...realTestsOf(id)];
    return { table, row: { ...row, tests }, id, field: fieldOf(table, row) };
  }),
);
const fields = rows.flatMap(({ id, field }) => (field ? [{ id, field }] : []));
const kinds = productKinds();
const corpus = readCorpus();

describe('a row of the contract', () => {
  it('has a name of its own, and as many cells as its table has columns', () => {
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
    expect(rows.filter(({ table, row }) => row.cells.length !== table.columns.length)).toEqual([]);
  });

  it.each(rows)('$id is covered by tests that exist and run', ({ id, row }) => {
    expect(row.tests.map(faultOf).filter(fault => fault !== undefined)).toEqual([]);
    const message = `write a test that fails without what ${id} promises, and name it`;
    expect(row.tests.length, message).toBeGreaterThan(0);
  });
});

describe('the tests on real parts', () => {
  it('cover rows that exist', () => {
    const ids = new Set(rows.map(({ id }) => id));
    expect(NAMED_ROWS.filter(id => !ids.has(id))).toEqual([]);
  });

  it('cover each row', () => {
    const without = rows.filter(({ row }) => !row.tests.some(isOnRealParts));
    expect(
      without.map(({ id }) => id),
      'name a test in real-tests.ts',
    ).toEqual([]);
  });
});

describe('a field of the contract', () => {
  it.each(fields)('$id has its type, its default, and is required or not', ({ field }) => {
    expect(differencesOf(kinds, field)).toEqual([]);
  });

  it.each(fields)('$id cannot be removed from the schema: this list and the corpus fail', ({ field }) => {
    const removed = kinds.map(kind => (kind.name === field.kind ? withoutField(kind, field.path) : kind));
    expect(differencesOf(removed, field)).toEqual([`${field.path} does not exist`]);
    const known = new Map(removed.map(kind => [kind.name, ruleNames(kind)]));
    const failing = corpus.filter(({ kind, rule }) => !known.get(kind)?.has(rule));
    expect(failing.length).toBeGreaterThan(0);
  });

  it.each([
    ['of another type', { type: 'int32' }, ['is not of the type int32']],
    ['with another default', { default: '1m' }, ['has the default 30s instead of 1m']],
    ['that must be given', { isRequired: true }, ['is not required']],
  ])('is refused %s', (_sentence, change, differences) => {
    const interval = fields.find(({ id }) => id === 'HealthCheckConfig: interval')?.field;
    if (!interval) throw new Error('the interval is not in the list');
    const expected = differences.map(difference => `${interval.path} ${difference}`);
    expect(differencesOf(kinds, { ...interval, ...change })).toEqual(expected);
  });
});

describe('what the contract names', () => {
  const settings: Settings = { ...telemetrySettings, ...controllerSettings, ...extensionSettings };
  const declared: Readonly<Record<string, readonly string[]>> = {
    'Metric names': Object.values(allMetrics).map(({ name }) => name),
    'Alert rules': alerts(NAMESPACE).map(({ alert }) => alert),
    Settings: Object.values(settings).map(({ name }) => name),
  };
  const names = rows.filter(({ table }) => table.name in declared);

  it.each(names)('$id is declared, and a test that covers it names it', ({ table, row }) => {
    const [name] = row.cells;
    expect(declared[table.name]).toContain(name);
    expect(row.tests.some(([file]) => readFileSync(file, 'utf8').includes(name))).toBe(true);
  });
});

describe('the name of a test', () => {
  it('must be one of an existing file', () => {
    expect(faultOf(['test/absent.test.ts', 'a'])).toBe('test/absent.test.ts does not exist');
    expect(faultOf(['test/words.test.ts', 'a'])).toBe('test/words.test.ts has no test with the title: a');
  });

  it.each([
    ["it('a', () => {});", false],
    ["describe('b', () => { it.each([1])('a', () => {}); });", false],
    ["it.each([['a', 1]])('%s', () => {});", false],
    ["it.skip('a', () => {});", true],
    ["it.skip.each([1])('a', () => {});", true],
    ["describe.skip('b', () => { it('a', () => {}); });", true],
    ["it.todo('a');", true],
    ["f('a');", undefined],
  ])('is found in %s', (text, isSkipped) => {
    expect(titlesIn(text).get('a')).toBe(isSkipped);
  });
});
