import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Verdict } from '../../src/health/health.ts';
import { damp, initialDamping } from '../../src/health/damping.ts';

/** The same sequences in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

/** `+` is healthy, and any other character unhealthy with itself as error. */
function verdictOf(character: string, at: number): Verdict {
  const lastChecked = new Date(at);
  return character === '+'
    ? { is: 'healthy', lastChecked }
    : { is: 'unhealthy', error: character, code: character, lastChecked };
}

/** What is published about a healthy endpoint after each of these decisions, in the same characters. */
function published(decisions: string, intervalMs = 1000): string {
  let from = verdictOf('+', 0);
  let damping = initialDamping(from);
  return Array.from(decisions, (character, index) => {
    const decided = verdictOf(character, index * intervalMs);
    damping = damp(damping, from, decided, index * intervalMs);
    from = decided;
    expect(damping.published.lastChecked).toEqual(decided.lastChecked);
    const { is, error = '' } = damping.published;
    return is === 'healthy' ? '+' : error.slice(-1);
  }).join('');
}

it('of an endpoint that was unhealthy before, its first cause does not begin a hold', () => {
  const lastChecked = new Date(0);
  const from: Verdict = { is: 'unhealthy', error: 'as written', code: undefined, lastChecked };
  const { worseAt } = damp(initialDamping(from), from, verdictOf('a', 0), 0);
  expect(worseAt).toBe(-Infinity);
});

describe('of an endpoint with a decision each second', () => {
  it.each([
    ['that fails once, each change is published at once', '++aaaa++++', '++aaaa++++'],
    ['that becomes healthy and fails again, so is the second failure', 'aa++a', 'aa++a'],
    ['that fails a second time, the next success waits 1 s', 'a+a+++', 'a+a+++'],
    ['that fails a third time, it waits 2 s', 'a+a+a+++', 'a+a+aa++'],
    ['that fails a fourth time, it waits 4 s', 'a+a+a++a+++++', 'a+a+aa+aaaa++'],
    ['that alternates, it is unhealthy until it settles', 'a+a+a+a+a+a+a+', 'a+a+aaaaaaaaaa'],
    ['with another error, this is published at once', 'aabbb', 'aabbb'],
    ['that fails for another reason each time, so does one of these', 'a+b+a+b+a+b+', 'a+b+aabbbbbb'],
    [
      'whose errors alternate, one stays until they settle',
      'abababbbbbbbbbbbbbbbbb',
      'abaaaaaaaaaaaaaaaaaaab',
    ],
  ])('%s', (_, decisions, expected) => {
    expect(published(decisions)).toBe(expected);
  });

  it('that alternated for long, a success waits 30 s after the last failure', () => {
    const after = published('a+'.repeat(100) + '+'.repeat(40)).slice(200);
    expect(after.indexOf('+')).toBe(28);
    expect(after.slice(28)).toMatch(/^\++$/);
  });

  it('that alternated for long, the first success after a quiet time is published at once', () => {
    const after = published(`${'a+'.repeat(100)}${'+'.repeat(300)}aa++`).slice(-4);
    expect(after).toBe('aa++');
  });
});

it('an endpoint with a decision each minute is never held', () => {
  const decisions = 'a+'.repeat(100);
  expect(published(decisions, 60_000)).toBe(decisions);
});

it('the error names the hold as long as the endpoint flaps, and no longer once it fails for good', () => {
  const decisions = 'a+a+a+aaa';
  let damping = initialDamping(verdictOf('+', 0));
  const errors = Array.from(decisions, (character, index) => {
    const from = verdictOf(decisions.charAt(index - 1) || '+', 0);
    damping = damp(damping, from, verdictOf(character, 0), index * 900);
    return damping.published.error;
  });
  const held = 'flapping, unhealthy for up to 30s: a';
  expect(errors).toEqual(['a', undefined, held, held, held, held, held, held, held]);
  expect(damp(damping, verdictOf('a', 0), verdictOf('a', 0), 60_000).published.error).toBe('a');
});

it('whatever is decided, few changes are published, and the last decision always', () => {
  const decisions = fc.array(fc.constantFrom('+', '+', 'a', 'b'), { minLength: 1, maxLength: 250 });
  const property = fc.property(decisions, characters => {
    const last = characters.at(-1) ?? '';
    const shown = published(characters.join('') + last.repeat(30));
    expect(shown.at(-1)).toBe(last);
    const changes = Array.from(shown).filter((each, at) => each !== (shown[at - 1] ?? '+'));
    // Until the hold is 30 s, two for each time that it doubles; then two in each 30 s.
    expect(changes.length).toBeLessThanOrEqual(14 + (2 * shown.length) / 30);
  });
  fc.assert(property, { seed, numRuns: 500 });
});
