/** `npm run lab -- up | down | status | env`: a tailnet with nodes, services and a gateway on this machine, without root. */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommand } from './up-down.ts';
import { startLab } from '../lab.ts';
import { locateBinaries } from '../parts/locate.ts';
import { runMain } from './run-main.ts';
import { LabFolder } from '../state.ts';
import { variablesOf } from './variables.ts';

const USAGE = `npm run lab -- COMMAND [--folder FOLDER]

  up      start the lab, or print where it runs; needs npm run parts -- --only lab
          --extension HOST:PORT   the extension server of Envoy Gateway
          --only tailnet          without Envoy Gateway and Envoy
  down    end every process of it and remove its folder
  status  list the processes and their logs
  env     print all addresses, as shell variables
`;

/** The parsed command line. */
type Options = {
  readonly command: string | undefined;
  readonly folder: LabFolder;
  readonly only?: string;
  readonly extension?: string;
};

function readCommandLine(): Options {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { folder: { type: 'string' }, extension: { type: 'string' }, only: { type: 'string' } },
  });
  const { folder = join('.cache', 'lab'), ...up } = values;
  if (up.only !== undefined && up.only !== 'tailnet') throw new Error(`unknown part "${up.only}"\n${USAGE}`);
  if (up.extension !== undefined && !/.:\d+$/.test(up.extension))
    throw new Error(`--extension ${up.extension}: give HOST:PORT`);
  return { command: positionals[0], folder: new LabFolder(resolve(folder)), ...up };
}

await runMain('lab', async () => {
  const { command, folder, only, extension } = readCommandLine();
  const gateway = extension === undefined ? {} : { extension };
  const subject = {
    name: 'lab',
    usage: USAGE,
    folder,
    start: (stop: AbortSignal, onStep: (step: string) => void) =>
      startLab({
        folder: folder.path,
        pathOf: locateBinaries(process.env),
        searchPath: process.env['PATH'] ?? '',
        onStep,
        stop,
        ...(only === 'tailnet' ? {} : { gateway }),
      }),
    variables: variablesOf,
  };
  return runCommand(subject, command);
});
