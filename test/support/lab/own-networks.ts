import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { PoolOptions, PoolRunnerInitializer, PoolWorker } from 'vitest/node';

/** Runs the command behind it in a new network namespace, which has loopback only; without root, in a user namespace. */
const OWN_NETWORK = [
  'unshare',
  '--net',
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-current-user', '--keep-caps']),
  'sh',
  '-c',
  'ip link set lo up && exec "$@"',
  'sh',
];

/** Whether this user may make network namespaces here. */
export function canHaveOwnNetworks(): boolean {
  const [command, ...args] = [...OWN_NETWORK, 'true'];
  return spawnSync(command, args).status === 0;
}

/** Runs each file in a process with a network of its own, so that files with the same fixed ports run at once. */
export const ownNetworks: PoolRunnerInitializer = {
  name: 'own-networks',
  createPoolWorker: options => workerWith(options),
};

/** How long a process may take to end after SIGTERM. */
const GRACE_MS = 500;

/** As vitest's own worker in a process, which cannot be started by another command. */
function workerWith({ distPath, env, execArgv }: PoolOptions): PoolWorker {
  let child: ChildProcess | undefined;
  const running = () => {
    if (!child) throw new Error('the worker is not running');
    return child;
  };
  return {
    name: ownNetworks.name,
    cacheFs: true,
    on: (event, callback) => void running().on(event, callback),
    off: (event, callback) => void running().off(event, callback),
    send: message => void running().send(message),
    deserialize: data => data,
    start: () => {
      child ??= startWorker([...execArgv, join(distPath, 'workers', 'forks.js')], env);
      return Promise.resolve();
    },
    stop: async () => {
      const ending = running();
      child = undefined;
      if (ending.exitCode !== null || ending.signalCode !== null) return;
      const ended = once(ending, 'exit');
      const killing = setTimeout(() => ending.kill('SIGKILL'), GRACE_MS);
      ending.kill();
      await ended;
      clearTimeout(killing);
    },
  };
}

function startWorker(nodeArgs: readonly string[], env: SpawnOptions['env']): ChildProcess {
  const [command = '', ...args] = [...OWN_NETWORK, process.execPath, ...nodeArgs];
  return spawn(command, args, {
    ...(env ? { env } : {}),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
}
