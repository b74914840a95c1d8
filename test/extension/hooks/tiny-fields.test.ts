import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { programPath } from '../../support/programs/programs.ts';

const PROGRAM = 'test/support/extension/tiny-fields.ts';

it('hooks need little memory for millions of empty fields in any list', async () => {
  const child = fork(programPath(PROGRAM), { execArgv: ['--max-old-space-size=48'], silent: true });
  onTestFinished(() => void child.kill());
  const calls = once(child, 'message').then(([count]: unknown[]) => count);
  const ended = once(child, 'exit').then(([code, signal]: unknown[]) => code ?? signal);
  expect(await Promise.race([calls, ended])).toBe(19);
});
