import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { PROJECT, typescript } from '../../support/lab/command-line.ts';
import { startServed } from '../../support/standalone/served-process.ts';

it('an operator leads on the API server that docs/kubernetes.md starts, with nothing but its KUBECONFIG', async () => {
  const [program = '', ...args] = typescript('lab/commands/cluster.ts', 'alone');
  const alone = spawn(program, args, { cwd: PROJECT, stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void alone.kill('SIGTERM'));
  const ended = once(alone, 'close');
  const [line] = (await once(createInterface({ input: alone.stdout }), 'line')) as [string];
  expect(line).toMatch(/^KUBECONFIG=/);
  const operator = startServed('operator', { kubeconfig: line.slice('KUBECONFIG='.length) });
  await operator.line('became leader');
  operator.child.kill('SIGTERM');
  expect(await operator.ended).toBe(0);
  alone.stdin.end();
  expect(await ended).toEqual([0, null]);
});
