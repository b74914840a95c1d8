import { describe, expect, it } from 'vitest';
import {
  conditionOf,
  distinct,
  formatProblem,
  formatWithExample,
  inOrder,
  isSameProblem,
  pathOf,
  titleOfSubject,
} from '../../src/api/problem.ts';
import type { Problem } from '../../src/api/problem.ts';
import type { ReasonAt } from '../../src/api/reasons.ts';

const about = { kind: 'HTTPRoute', namespace: 'default', name: 'web' };
const problem: Problem = {
  reason: 'PortMissing',
  about,
  at: ['spec', 'rules', 0, 'backendRefs', 1],
  text: 'port is missing',
  fix: 'set it to 8080',
};

describe('a problem', () => {
  it('reads as its field, what is wrong, and the fix', () => {
    const { fix: _fix, ...withoutFix } = problem;
    const { at: _at, ...ofObject } = problem;
    expect([problem, withoutFix, ofObject, { text: 'is wrong' }].map(formatProblem)).toEqual([
      'spec.rules[0].backendRefs[1]: port is missing: set it to 8080',
      'spec.rules[0].backendRefs[1]: port is missing',
      'port is missing: set it to 8080',
      'is wrong',
    ]);
  });

  it('has its example below the fix, where there is room for one', () => {
    const { text } = problem;
    expect(formatWithExample({ text, fix: 'apply', example: 'kind: A\n' })).toBe(
      'port is missing: apply\n\nkind: A\n',
    );
    expect(formatWithExample(problem)).toBe(formatProblem(problem));
  });

  it.each<[string, Partial<Problem>, boolean]>([
    ['another text and fix', { text: 'no port', fix: 'add one' }, true],
    [
      'another order of the fields of its object',
      { about: { name: 'web', namespace: 'default', kind: 'HTTPRoute' } },
      true,
    ],
    ['another reason', { reason: 'PortNotFound' }, false],
    ['another object', { about: { ...about, name: 'api' } }, false],
    ['another field', { at: ['spec', 'rules', 1, 'backendRefs', 1] }, false],
    ['a field with the name of the index', { at: ['spec', 'rules', '0', 'backendRefs', 1] }, false],
    ['another endpoint', { endpoint: 'b' }, false],
  ])('with %s: the same one is %j', (_what, change, isSame) => {
    const other = { ...problem, ...change };
    expect(isSameProblem(problem, other)).toBe(isSame);
    expect(distinct([problem, other, problem])).toHaveLength(isSame ? 1 : 2);
  });

  it('without an object is not one of an object', () => {
    const { about: _about, ...general } = problem;
    expect([isSameProblem(general, general), isSameProblem(general, problem)]).toEqual([true, false]);
  });
});

describe('the texts of a place', () => {
  it.each<[Parameters<typeof pathOf>[0], string]>([
    [[], ''],
    [['spec', 'endpoints', 2, 'port'], 'spec.endpoints[2].port'],
    [['metadata', 'labels', 'a.b/c', '0'], 'metadata.labels["a.b/c"].0'],
    [['x'.repeat(70)], `["${'x'.repeat(64)}"]`],
  ])('of %j is %j', (steps, path) => {
    expect(pathOf(steps)).toBe(path);
  });

  it('name the namespace of an object that has one', () => {
    const cluster = { kind: 'MeshTailnet', name: 'main' };
    expect([about, cluster, { ...cluster, namespace: '' }].map(titleOfSubject)).toEqual([
      'HTTPRoute default/web',
      'MeshTailnet main',
      'MeshTailnet main',
    ]);
  });
});

describe('a condition of problems', () => {
  const ifNone = { reason: 'DevicesDiscovered', message: 'all is well' } as const;
  const of = (...severities: Problem['mattersAs'][]) =>
    severities.map((mattersAs, index) => ({ ...problem, text: `${index}`, ...(mattersAs && { mattersAs }) }));
  const about = (...reasons: ReasonAt<'MeshEndpoints Discovered'>[]) =>
    reasons.map((reason, index) => ({ ...problem, reason, text: `${index}` }));

  it.each([
    [about(), 'True', ifNone.reason, ifNone.message],
    [about('DevicesDiscovered'), 'True', ifNone.reason, ifNone.message],
    [about('NotListed'), 'Unknown', 'NotListed', 'spec.rules[0].backendRefs[1]: 0: set it to 8080'],
    [
      about('DevicesDiscovered', 'TailnetNotFound', 'Truncated', 'Stale'),
      'False',
      'Truncated',
      'spec.rules[0].backendRefs[1]: 2: set it to 8080',
    ],
  ] as const)('%# is that of the one that matters most there', (problems, status, reason, message) => {
    const condition = conditionOf('MeshEndpoints Discovered', problems, ifNone);
    expect(condition).toEqual({ type: 'Discovered', status, reason, message });
  });

  it('has them by severity, and those that matter as much in their order', () => {
    const problems = of('note', 'error', 'unknown', undefined, 'warning');
    expect(inOrder(problems).map(({ text }) => text)).toEqual(['1', '3', '2', '4', '0']);
  });
});
