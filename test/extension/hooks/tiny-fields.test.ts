import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../support/extension/tiny-fields.ts', import.meta.url));

it('hooks need little memory for millions of empty fields in any list', async () => {
  const child = fork(PROGRAM, { execArgv: ['--max-old-space-size=48', '--import', 'tsx'], silent: true });
  onTestFinished(() => void child.kill());
  const calls = once(child, 'message').then(([count]: unknown[]) => count);
  const ended = once(child, 'exit').then(([code, signal]: unknown[]) => code ?? signal);
  expect(await Promise.race([calls, ended])).toBe(19);
});
