import { describe, expect, it } from 'vitest';
import {
  formatFault,
  formatPath,
  outlineAt,
  stepsOfPath,
  stepsOfPointer,
  typedSteps,
  valueAt,
} from '../../src/api/validation/fault.ts';
import type { Outline } from '../../src/api/validation/validator.ts';

const text: Outline = { is: 'text' };
const port: Outline = { is: 'integer', expect: 'a port' };
const root: Outline = {
  is: 'object',
  fields: {
    name: text,
    labels: { is: 'map', values: text },
    ports: {
      is: 'list',
      items: { is: 'object', fields: { number: port, tags: { is: 'list', items: text } } },
    },
  },
};

const PATHS: readonly (readonly [steps: readonly string[], path: string])[] = [
  [[], ''],
  [['name'], 'name'],
  [['ports'], 'ports'],
  [['ports', '0'], 'ports[0]'],
  [['ports', '2', 'number'], 'ports[2].number'],
  [['ports', '0', 'tags', '11'], 'ports[0].tags[11]'],
  [['labels', 'app'], 'labels.app'],
  [['labels', '0'], 'labels.0'],
  [['labels', 'a_b-c'], 'labels.a_b-c'],
  [['labels', 'a.b'], 'labels["a.b"]'],
  [['labels', 'example.com/team'], 'labels["example.com/team"]'],
  [['labels', ''], 'labels[""]'],
  [['labels', 'a"b'], String.raw`labels["a\"b"]`],
  [['labels', 'a\nb'], String.raw`labels["a\nb"]`],
  [['labels', 'x y'], 'labels["x y"]'],
  [['labels', '.'.repeat(65)], `labels["${'.'.repeat(64)}"]`],
  [['unknown', 'deeper', '0'], 'unknown.deeper.0'],
  [['a.b'], '["a.b"]'],
];

describe('a path', () => {
  it.each(PATHS)('of %j reads %s', (steps, path) => {
    expect(formatPath(root, steps)).toBe(path);
  });

  it.each(['', 'name', 'ports[2].number', 'ports[0].tags[11]', 'labels.app'])(
    'is split into its steps: %s',
    path => {
      expect(formatPath(root, stepsOfPath(path))).toBe(path);
    },
  );
});

describe('a JSON pointer', () => {
  it.each([
    ['', []],
    ['/name', ['name']],
    ['/ports/0/number', ['ports', '0', 'number']],
    ['/labels/a~1b', ['labels', 'a/b']],
    ['/labels/a~0b', ['labels', 'a~b']],
    ['/labels/~01', ['labels', '~1']],
    ['/labels/', ['labels', '']],
  ])('%s has its steps', (pointer, steps) => {
    expect(stepsOfPointer(pointer)).toEqual(steps);
  });
});

describe('the outline at the end of some steps', () => {
  it.each([
    [[], root],
    [['name'], text],
    [['labels', 'anything'], text],
    [['ports', '7', 'number'], port],
    [['unknown'], undefined],
    [['unknown', 'deeper'], undefined],
    [['name', 'deeper'], undefined],
    [['toString'], undefined],
  ])('%j is found', (steps, outline) => {
    expect(outlineAt(root, steps)).toBe(outline);
  });
});

describe('the value at the end of some steps', () => {
  const value = { name: 'a', ports: [{ number: 80 }], none: null };

  it.each([
    [[], value],
    [['name'], 'a'],
    [['ports', '0', 'number'], 80],
    [['ports', '1'], undefined],
    [['ports', 'length'], 1],
    [['none'], null],
    [['none', 'deeper'], undefined],
    [['name', '0'], undefined],
    [['toString'], undefined],
  ])('%j is found', (steps, found) => {
    expect(valueAt(value, steps)).toEqual(found);
  });
});

describe('the steps to a fault', () => {
  it.each([
    [
      ['ports', '0', 'number'],
      ['ports', 0, 'number'],
    ],
    [
      ['ports', '3'],
      ['ports', 3],
    ],
    [
      ['labels', '0'],
      ['labels', '0'],
    ],
    [
      ['none', '0'],
      ['none', '0'],
    ],
  ])('%j have indexes of lists as numbers: %j', (steps, typed) => {
    expect(typedSteps({ ports: [{ number: 80 }], labels: { 0: 'a' } }, steps)).toEqual(typed);
  });
});

describe('a fault on one line', () => {
  it('begins with its path, if it has one', () => {
    expect(formatFault({ path: 'spec.port', steps: [], message: 'is required' })).toBe(
      'spec.port: is required',
    );
    expect(formatFault({ path: '', steps: [], message: '3 more faults' })).toBe('3 more faults');
  });
});
