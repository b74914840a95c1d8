import { describe, expect, it } from 'vitest';
import type { Verdict } from '../../src/health/health.ts';
import type { ProbeResult } from '../../src/health/check.ts';
import { applyResult, initialState } from '../../src/health/threshold.ts';

const THRESHOLDS = { healthyThreshold: 2, unhealthyThreshold: 3 };
const long = new Date('2025-01-01T00:00:00Z');

const written: Readonly<Record<string, Verdict | undefined>> = {
  undecided: undefined,
  healthy: { is: 'healthy', lastChecked: long },
  unhealthy: { is: 'unhealthy', error: 'o', code: 'o', lastChecked: long },
};

/** `+` is a success, `?` an unknown result, and any other character a failure with itself as error. */
function resultOf(character: string): ProbeResult {
  if (character === '+') return { is: 'success' };
  if (character === '?') return { is: 'unknown', why: 'no mesh pod is ready' };
  return { is: 'failure', error: character, code: character };
}

/** Applies results that come a second apart, from the epoch on. */
function apply(from: Verdict | undefined, results: string): Verdict {
  return results
    .split('')
    .reduce(
      (state, character, index) =>
        applyResult(state, resultOf(character), THRESHOLDS, new Date(index * 1000)),
      initialState(from),
    ).verdict;
}

describe('with 2 successes to be healthy and 3 failures to be unhealthy', () => {
  it.each([
    ['undecided', '', 'undecided', undefined],
    ['undecided', '+', 'undecided', undefined],
    ['undecided', '++', 'healthy', undefined],
    ['undecided', '+a+', 'undecided', undefined],
    ['undecided', 'ab', 'undecided', undefined],
    ['undecided', 'abc', 'unhealthy', 'c'],
    ['undecided', 'ab+c', 'undecided', undefined],
    ['undecided', '???', 'undecided', undefined],
    ['undecided', '+?+', 'healthy', undefined],
    ['undecided', 'a?b?c', 'unhealthy', 'c'],
    ['healthy', 'ab', 'healthy', undefined],
    ['healthy', 'abc', 'unhealthy', 'c'],
    ['healthy', 'ab+ab', 'healthy', undefined],
    ['healthy', 'ab?c', 'unhealthy', 'c'],
    ['healthy', '?????', 'healthy', undefined],
    ['unhealthy', '', 'unhealthy', 'o'],
    ['unhealthy', 'aa', 'unhealthy', 'o'],
    ['unhealthy', 'aaa', 'unhealthy', 'a'],
    ['unhealthy', 'abc', 'unhealthy', 'c'],
    ['unhealthy', 'a?aa', 'unhealthy', 'a'],
    ['unhealthy', 'aa+a', 'unhealthy', 'o'],
    ['unhealthy', 'aooaa', 'unhealthy', 'o'],
    ['unhealthy', 'aaabba', 'unhealthy', 'a'],
    ['unhealthy', 'aaabb', 'unhealthy', 'a'],
    ['unhealthy', 'aaabbb', 'unhealthy', 'b'],
    ['undecided', 'aabaa', 'unhealthy', 'b'],
    ['undecided', 'aabaaa', 'unhealthy', 'a'],
    ['unhealthy', '+', 'unhealthy', 'o'],
    ['unhealthy', '++', 'healthy', undefined],
    ['unhealthy', '+?+', 'healthy', undefined],
    ['unhealthy', '+a+', 'unhealthy', 'o'],
    ['unhealthy', '???', 'unhealthy', 'o'],
    ['unhealthy', '++abc', 'unhealthy', 'c'],
  ])('%s is after %j %s with the error %j', (from, results, is, error) => {
    const verdict = apply(written[from], results);
    expect([verdict.is, verdict.error]).toEqual([is, error]);
  });
});

describe('the time of the last check', () => {
  it.each([
    ['a success or failure', 'a+a', new Date(2000)],
    ['a known result, not of an unknown one after it', 'a+?', new Date(1000)],
    ['the written verdict until there is a known result', '??', long],
  ])('is that of %s', (_, results, time) => {
    expect(apply(written['healthy'], results).lastChecked).toEqual(time);
  });
});

it('an error that another process has written gets its cause with the next failure, whatever its text is', () => {
  const from: Verdict = { is: 'unhealthy', error: 'as written', code: undefined, lastChecked: long };
  expect(apply(from, 'a')).toMatchObject({ is: 'unhealthy', error: 'a', code: 'a' });
  expect(apply(from, 'abb')).toMatchObject({ error: 'a' });
});

it('failures of one cause keep the error of the verdict, whatever their texts are', () => {
  const first = initialState({
    is: 'unhealthy',
    error: 'the proxy could not connect: x',
    code: 'NOT_DIALLED',
    lastChecked: long,
  });
  const again = { is: 'failure', error: 'the proxy could not connect: y', code: 'NOT_DIALLED' } as const;
  const state = Array.from({ length: 5 }).reduce<typeof first>(
    before => applyResult(before, again, THRESHOLDS, long),
    first,
  );
  expect(state.verdict).toMatchObject({ error: 'the proxy could not connect: x' });
});

it('a threshold of 1 decides at the first result', () => {
  const once = { healthyThreshold: 1, unhealthyThreshold: 1 };
  const up = applyResult(initialState(undefined), resultOf('+'), once, long);
  expect(up.verdict.is).toBe('healthy');
  expect(applyResult(up, resultOf('a'), once, long).verdict).toEqual({
    is: 'unhealthy',
    error: 'a',
    code: 'a',
    lastChecked: long,
  });
});
