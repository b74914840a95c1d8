import { describe, expect, it } from 'vitest';
import { cutText } from '../../src/api/text.ts';

describe('a text that is cut', () => {
  it.each([
    ['abc', 3, '', 'abc'],
    ['abcd', 3, '', 'abc'],
    ['abcdef', 5, '...', 'ab...'],
    ['a🚀b', 3, '', 'a🚀b'],
    ['a🚀b', 2, '', 'a🚀'],
  ])('%j to %i characters and %j is %j', (text, max, ending, cut) => {
    expect(cutText(text, max, ending)).toBe(cut);
  });

  it.each(['\ud83d', 'a\ude80\ud83d'])(
    '%j is as an API server stores it, so that it equals what is read',
    text => {
      expect(cutText(text, 10)).toBe(Buffer.from(text).toString());
    },
  );
});
