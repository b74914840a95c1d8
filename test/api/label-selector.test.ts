import { describe, expect, it } from 'vitest';
import type { LabelSelector } from '../../src/api/generated/types.ts';
import { selects } from '../../src/api/objects/label-selector.ts';

describe('a selector', () => {
  const labels = { team: 'a', tier: '' };
  const team = (operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', key: string, ...values: string[]) => ({
    matchExpressions: [{ key, operator, ...(values.length > 0 && { values }) }],
  });

  it.each<readonly [string, LabelSelector, boolean]>([
    ['that is empty', {}, true],
    ['with a label that exists', { matchLabels: { team: 'a' } }, true],
    ['with a label of another value', { matchLabels: { team: 'b' } }, false],
    ['with a label that does not exist', { matchLabels: { zone: 'a' } }, false],
    ['with an empty label that exists', { matchLabels: { tier: '' } }, true],
    ['with an empty label that does not exist', { matchLabels: { zone: '' } }, false],
    ['with one of two labels', { matchLabels: { team: 'a', zone: 'x' } }, false],
    ['In with its value', team('In', 'team', 'b', 'a'), true],
    ['In without its value', team('In', 'team', 'b'), false],
    ['In of a label that does not exist', team('In', 'zone', 'a'), false],
    ['NotIn with its value', team('NotIn', 'team', 'a', 'b'), false],
    ['NotIn without its value', team('NotIn', 'team', 'b'), true],
    ['NotIn of a label that does not exist', team('NotIn', 'zone', 'a'), true],
    ['Exists of a label that exists', team('Exists', 'tier'), true],
    ['Exists of a label that does not exist', team('Exists', 'zone'), false],
    ['DoesNotExist of a label that exists', team('DoesNotExist', 'tier'), false],
    ['DoesNotExist of a label that does not exist', team('DoesNotExist', 'zone'), true],
    ['of a label named constructor', team('Exists', 'constructor'), false],
    [
      'with matching labels and an expression that does not match',
      { matchLabels: { team: 'a' }, ...team('Exists', 'zone') },
      false,
    ],
    [
      'with several matching expressions',
      {
        matchExpressions: [
          { key: 'team', operator: 'Exists' },
          { key: 'zone', operator: 'DoesNotExist' },
        ],
      },
      true,
    ],
  ])('%s', (_, selector, does) => {
    expect(selects(selector, labels)).toBe(does);
  });
});
