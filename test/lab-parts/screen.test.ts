import { describe, expect, it } from 'vitest';
import { isLargeEnough, Screen } from '../../lab/screen.ts';
import { recordedOutput } from '../support/lab/terminal.ts';

describe('a screen on a terminal', () => {
  it('redraws its sections in place, below what is printed', () => {
    const output = recordedOutput();
    const screen = new Screen(output);
    screen.draw('routes', 'web: healthy\necho: healthy');
    screen.draw('progress', 'building 1 s');
    screen.print('a warning');
    screen.draw('routes', 'web: unhealthy');
    screen.draw('progress', '');
    expect(output.lines()).toEqual(['a warning', 'web: unhealthy']);
  });

  it('writes nothing when a section has not changed', () => {
    const output = recordedOutput();
    const screen = new Screen(output);
    screen.draw('routes', 'web');
    const before = output.written();
    screen.draw('routes', 'web');
    expect(output.written()).toBe(before);
  });

  it('erases lines that the terminal has wrapped', () => {
    const output = recordedOutput({ columns: 10 });
    const screen = new Screen(output);
    screen.draw('routes', '0123456789abcdefghij-');
    screen.draw('routes', 'short');
    expect(output.lines()).toEqual(['short']);
  });

  it('draws the last lines where not all fit, so that the cursor never has to leave the terminal', () => {
    const output = recordedOutput({ rows: 4 });
    const screen = new Screen(output);
    screen.draw('routes', 'a\nb\nc\nd');
    expect(output.lines()).toEqual(['(2 lines more: make the window larger)', 'c', 'd']);
    screen.draw('routes', 'a');
    expect(output.lines()).toEqual(['a']);
  });
});

it('a screen in a file gets what is printed, and nothing that is drawn', () => {
  const output = recordedOutput({ isTerminal: false });
  const screen = new Screen(output);
  screen.draw('routes', 'web');
  screen.draw('progress', 'building 1 s');
  screen.print('a warning');
  expect(output.written()).toBe('a warning\n');
});

it.each([
  [0, 0, false],
  [80, 0, false],
  [80, 2, false],
  [10, 24, false],
  [80, 24, true],
])('a terminal of %i columns and %i rows is redrawn: %s', (columns, rows, expected) => {
  expect(isLargeEnough({ columns, rows })).toBe(expected);
});
