import { connect } from 'node:net';
import { join } from 'node:path';
import { freePorts } from '../../process/ports.ts';
import { markOf } from '../../process/process-table.ts';
import { startProcess, stopProcess } from '../../process/process.ts';
import type { ProcessNotes } from '../../process/state-folder.ts';
import { until } from '../../process/wait.ts';

/** Runs a function with a registry in memory on loopback: crane changes images only in a registry. */
export async function withRegistry(
  crane: string,
  notes: ProcessNotes,
  work: (address: string) => Promise<void>,
): Promise<void> {
  const [port = 0] = await freePorts(1);
  const address = `127.0.0.1:${port}`;
  const record = startProcess({
    name: 'image-registry',
    command: crane,
    args: ['registry', 'serve', `--address=${address}`],
    environment: { HOME: notes.path, ...markOf(notes.path) },
    folder: notes.path,
    log: join(notes.path, 'image-registry.log'),
  });
  notes.addProcess(record);
  try {
    await until('the registry of images', () => isListening(port));
    await work(address);
  } finally {
    // Removed from the records first: a recorded process that has ended counts as a failure.
    notes.removeProcess(record);
    await stopProcess(record);
  }
}

function isListening(port: number): Promise<true> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}
