/** Starts a process that would not end by itself, with a guard beside it, and prints `ready`; `release` releases the guard and ends. */
import { guard } from '../../../lab/process/guard.ts';
import { markOf } from '../../../lab/process/process-table.ts';
import { startProcess } from '../../../lab/process/process.ts';
import { LabFolder } from '../../../lab/state.ts';
import { commandLine, PROJECT } from './command-line.ts';

const [path = '', then] = process.argv.slice(2);
const folder = new LabFolder(path);
folder.create();
const cleaner = guard(commandLine('down', '--folder', path), PROJECT);
folder.addProcess(
  startProcess({
    name: 'sleep',
    command: 'sleep',
    args: ['3600'],
    environment: { PATH: process.env['PATH'] ?? '', ...markOf(path) },
    folder: path,
    log: `${path}/sleep.log`,
  }),
);
if (then === 'release') cleaner.release();
else if (then === 'wait') setInterval(() => undefined, 60_000);
console.log('ready');
