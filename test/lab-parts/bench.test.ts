import { beforeEach, describe, expect, it } from 'vitest';
import { durationText } from '../../bench/figures.ts';
import { runCommand, typescript } from '../support/lab/command-line.ts';
import { emptyFolder } from './sample.ts';

let folder = '';
beforeEach(() => {
  folder = emptyFolder();
});

/** Runs a bench on a machine without parts, and returns how it ended; the seconds of its steps are left out. */
async function runBench(...args: readonly string[]) {
  const { code, output } = await runCommand([
    ...['env', `XDG_CACHE_HOME=${folder}`],
    ...typescript('bench/main.ts', ...args),
  ]);
  return { code, lines: output.trim().split('\n').map(withoutSeconds) };
}

function withoutSeconds(line: string): string {
  return line.replace(/^ *\d+\.\d s {2}/, 'step: ');
}

describe('a bench', () => {
  it('prints how long it takes and its steps, and ends with one message where it cannot start', async () => {
    expect(await runBench('health', 'operator')).toEqual({
      code: 2,
      lines: [
        expect.stringMatching(
          /^health operator takes at least 2 min \d+ s, which it waits(; .* last time)?$/,
        ),
        'step: an operator on an API server, 10000 endpoints',
        'bench: cluster: etcd is not built yet: run npm run parts',
      ],
    });
  });

  it('refuses a part that it does not have, before it starts anything', async () => {
    expect(await runBench('health', 'moon')).toEqual({
      code: 2,
      lines: ['bench: name a part: operator, routes, routes-long'],
    });
  });
});

it('the text of a duration has its part, and whether it is a wait', () => {
  expect(durationText('none', undefined, { aboutMs: 60_000 })).toBe('none takes about 1 min 0 s');
  expect(durationText('none', 'short', { atLeastMs: 65_000 })).toBe(
    'none short takes at least 1 min 5 s, which it waits',
  );
});
