import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { startCommand, typescript } from '../../command-line.ts';
import type { Outcome } from './matrix.ts';

/** An empty network namespace; without root, in a user namespace. */
const OWN_NETWORK = ['unshare', '--net', ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'])];

/** Runs the rows in which Envoy is on the mesh itself, and returns their outcomes. */
export async function proveDirect(form: 'short' | 'long'): Promise<readonly Outcome[]> {
  const direct = typescript('test/support/lab/traffic/matrix/direct.ts', form);
  const child = startCommand([...OWN_NETWORK, 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...direct]);
  if (!child.stdout || !child.stderr) throw new Error('the output of the process cannot be read');
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  if (code !== 0)
    throw new Error(`the rows of Direct were not proved (${String(code)}):\n${errors}${output}`);
  const { outcomes } = JSON.parse(output) as { readonly outcomes: readonly Outcome[] };
  return outcomes;
}
