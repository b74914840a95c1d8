import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runInPod } from '../../src/kubernetes/auth/pod-command.ts';
import { servePortForwards } from '../support/tools/port-forward.ts';
import type { CommandEnd } from '../support/tools/port-forward.ts';

const COMMAND = {
  ...{ namespace: 'infra', pod: 'meshd-0', container: 'meshd' },
  command: ['echo', 'a b', '&', '$HOME'],
};

/** An API server; `undefined` is a command that hangs. */
async function serve(end: CommandEnd | undefined, isRefused = false) {
  const commands: (readonly string[])[] = [];
  const api = createServer();
  servePortForwards(
    api,
    () => 0,
    path => isRefused || path !== '/api/v1/namespaces/infra/pods/meshd-0/exec',
    (_pod, command) => {
      commands.push(command);
      return end;
    },
  );
  await new Promise<void>(resolve => void api.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void api.close());
  const server = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  return { config: { server, tls: {}, headers: {} }, commands };
}

describe('a command in a pod', () => {
  it.each([
    [{}, { exitCode: 0, stderr: '' }],
    [
      { exitCode: 7, stderr: 'went wrong' },
      { exitCode: 7, stderr: 'went wrong' },
    ],
  ])('ends with its exit code and what it wrote to stderr', async (end, result) => {
    const { config, commands } = await serve(end);
    expect(await runInPod(config, COMMAND, 5000)).toEqual(result);
    expect(commands).toEqual([COMMAND.command]);
  });

  it('fails where it cannot be started', async () => {
    const { config } = await serve({ status: { status: 'Failure', message: 'no such container' } });
    await expect(runInPod(config, COMMAND, 5000)).rejects.toMatchObject({
      reason: 'Unreachable',
      message: 'echo in container meshd of pod infra/meshd-0: no such container',
    });
  });

  it('fails where RBAC does not permit it', async () => {
    const { config } = await serve({}, true);
    await expect(runInPod(config, COMMAND, 5000)).rejects.toMatchObject({ reason: 'Forbidden' });
  });

  it('fails after a timeout where it does not end', async () => {
    const { config } = await serve(undefined);
    await expect(runInPod(config, COMMAND, 200)).rejects.toMatchObject({
      reason: 'Aborted',
      message: 'echo in container meshd of pod infra/meshd-0: no answer within 0.2 s',
    });
  });
});
