import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { startCommand } from '../command-line.ts';

/** An empty network namespace, and mounts of its own; without root, in a user namespace. */
const OWN_NETWORK = [
  'unshare',
  '--net',
  '--mount',
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
];

/** Runs a command in a network of its own, which has loopback only; returns its output, and fails if the command does. */
export async function outputInOwnNetwork(command: readonly string[]): Promise<string> {
  const child = startCommand([
    ...OWN_NETWORK,
    'sh',
    '-c',
    'ip link set lo up && exec "$@"',
    'sh',
    ...command,
  ]);
  if (!child.stdout || !child.stderr) throw new Error('the output of the process cannot be read');
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${String(code)}:\n${errors}${output}`);
  return output;
}
