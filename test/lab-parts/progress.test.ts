import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { elapsed, Progress } from '../../lab/parts/progress.ts';
import { Screen } from '../../lab/screen.ts';
import { recordedOutput } from '../support/lab/terminal.ts';

const log = 'build.log';
const about = (part: string, binary: string) => ({
  part,
  binary,
  index: 1,
  of: 2,
  log,
  atMs: performance.now(),
});

const planned = [
  { part: 'tailscale', binary: 'tailscaled', cpuSeconds: 120 },
  { part: 'etcd', binary: 'etcd', cpuSeconds: 120 },
];

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it('is a line per running part on a terminal, below the finished ones', () => {
  const output = recordedOutput();
  const progress = new Progress(new Screen(output), planned);
  const stop = progress.start();
  progress.record({ ...about('tailscale', 'tailscaled'), is: 'started' });
  progress.record({ ...about('etcd', 'etcd'), is: 'started' });
  vi.advanceTimersByTime(65_000);
  expect(output.lines()).toEqual([
    '2 programs to build, about 2 min',
    'tailscale: tailscaled (1 of 2) 1 min 5 s, log: build.log',
    'etcd: etcd (1 of 2) 1 min 5 s, log: build.log',
    'less than a minute left',
  ]);
  progress.record({ ...about('tailscale', 'tailscaled'), is: 'finished' });
  vi.advanceTimersByTime(1_000);
  expect(output.lines()).toEqual([
    '2 programs to build, about 2 min',
    'tailscale: tailscaled (1 of 2) built in 1 min 5 s',
    'etcd: etcd (1 of 2) 1 min 6 s, log: build.log',
    'less than a minute left',
  ]);
  stop();
});

it('is plain lines elsewhere, with the elapsed time every 30 s', () => {
  const output = recordedOutput({ isTerminal: false });
  const progress = new Progress(new Screen(output), planned.slice(1));
  const stop = progress.start();
  progress.record({ ...about('etcd', 'etcd'), is: 'started' });
  vi.advanceTimersByTime(61_000);
  progress.record({ ...about('etcd', 'etcd'), is: 'finished' });
  stop();
  vi.advanceTimersByTime(61_000);
  expect(output.written()).toBe(
    [
      '1 program to build, about 1 min',
      'etcd: etcd (1 of 2) ... log: build.log',
      'etcd: etcd (1 of 2) ... 30 s',
      'less than a minute left',
      'etcd: etcd (1 of 2) ... 1 min 0 s',
      'less than a minute left',
      'etcd: etcd (1 of 2) built in 1 min 1 s',
      '',
    ].join('\n'),
  );
});

it('names the log of what failed, under its last lines', () => {
  const output = recordedOutput();
  const progress = new Progress(new Screen(output), []);
  progress.record({ ...about('runc', 'runc'), is: 'started' });
  const failure = { reason: 'go ended with status 1', log: 'cache/runc/build.log', lastLines: ['a', 'b'] };
  progress.record({ part: 'runc', atMs: performance.now() + 2_000, is: 'failed', ...failure });
  expect(output.lines()).toEqual([
    'runc: runc (1 of 2) FAILED after 2 s: go ended with status 1',
    '    a',
    '    b',
    '  log: cache/runc/build.log',
  ]);
});

it('formats durations for people', () => {
  expect([0, 1_499, 59_000, 60_000, 754_000].map(elapsed)).toEqual([
    '0 s',
    '1 s',
    '59 s',
    '1 min 0 s',
    '12 min 34 s',
  ]);
});
