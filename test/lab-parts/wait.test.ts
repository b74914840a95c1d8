import { describe, expect, test } from 'vitest';
import { until } from '../../lab/process/wait.ts';

describe('waiting', () => {
  test('takes false and undefined as not yet', async () => {
    const answers = [false, undefined, 0];
    expect(await until('a value', () => answers.shift(), { everyMs: 1 })).toBe(0);
    expect(answers).toEqual([]);
  });

  test('fails with what it waited for and the last error', async () => {
    const fail = () => {
      throw new Error('refused');
    };
    const waited = until('an answer', fail, { timeoutMs: 1, everyMs: 1 });
    await expect(waited).rejects.toThrow(/^waited 0.001 s for an answer; last seen: refused$/);
  });
});
