import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { elapsed, Progress } from '../../lab/parts/progress.ts';

let written = '';
const screen = (isTerminal: boolean) => ({ isTerminal, write: (text: string) => void (written += text) });

const about = (part: string, binary: string) => ({ part, binary, index: 1, of: 2, atMs: performance.now() });

/** What a terminal shows after all that was written: it knows to go up some lines and to clear what is below. */
function shown(): readonly string[] {
  const lines = [''];
  for (const piece of written.split(/(\u001b\[\d+A\u001b\[J|\n)/)) {
    const up = /\[(\d+)A/.exec(piece)?.[1];
    if (up !== undefined) lines.splice(-1 - Number(up), Infinity, '');
    else if (piece === '\n') lines.push('');
    else lines.push((lines.pop() ?? '') + piece);
  }
  return lines.slice(0, -1);
}

beforeEach(() => {
  written = '';
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

it('is a line per running part on a terminal, under what has ended', () => {
  const progress = new Progress(screen(true));
  const stop = progress.start();
  progress.tell({ ...about('tailscale', 'tailscaled'), is: 'started' });
  progress.tell({ ...about('etcd', 'etcd'), is: 'started' });
  vi.advanceTimersByTime(65_000);
  expect(shown()).toEqual(['tailscale: tailscaled (1 of 2) 1 min 5 s', 'etcd: etcd (1 of 2) 1 min 5 s']);
  progress.tell({ ...about('tailscale', 'tailscaled'), is: 'finished' });
  vi.advanceTimersByTime(1_000);
  expect(shown()).toEqual([
    'tailscale: tailscaled (1 of 2) built in 1 min 5 s',
    'etcd: etcd (1 of 2) 1 min 6 s',
  ]);
  stop();
});

it('is plain lines elsewhere, with a sign of life every 30 s', () => {
  const progress = new Progress(screen(false));
  const stop = progress.start();
  progress.tell({ ...about('etcd', 'etcd'), is: 'started' });
  vi.advanceTimersByTime(61_000);
  progress.tell({ ...about('etcd', 'etcd'), is: 'finished' });
  stop();
  vi.advanceTimersByTime(61_000);
  expect(written).toBe(
    [
      'etcd: etcd (1 of 2) ...',
      'etcd: etcd (1 of 2) ... 30 s',
      'etcd: etcd (1 of 2) ... 1 min 0 s',
      'etcd: etcd (1 of 2) built in 1 min 1 s',
      '',
    ].join('\n'),
  );
});

it('names the log of what failed, under its last lines', () => {
  const progress = new Progress(screen(true));
  progress.tell({ ...about('runc', 'runc'), is: 'started' });
  const failure = { reason: 'go ended with status 1', log: 'cache/runc/build.log', lastLines: ['a', 'b'] };
  progress.tell({ part: 'runc', atMs: performance.now() + 2_000, is: 'failed', ...failure });
  expect(shown()).toEqual([
    'runc: runc (1 of 2) FAILED after 2 s: go ended with status 1',
    '    a',
    '    b',
    '  its log: cache/runc/build.log',
  ]);
});

it('tells time as people do', () => {
  expect([0, 1_499, 59_000, 60_000, 754_000].map(elapsed)).toEqual([
    '0 s',
    '1 s',
    '59 s',
    '1 min 0 s',
    '12 min 34 s',
  ]);
});
