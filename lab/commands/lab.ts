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

  up      start the lab, or say where it runs; needs npm run parts -- --only lab
          --extension HOST:PORT   let Envoy Gateway ask this extension server
          --only tailnet          without Envoy Gateway and Envoy
  down    end every process of it and remove its folder
  status  tell what runs
  env     print where everything is, as variables for a shell
`;

/** The command line as it was meant. */
type Wish = {
  readonly command: string | undefined;
  readonly folder: LabFolder;
  readonly only?: string;
  readonly extension?: string;
};

function readCommandLine(): Wish {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { folder: { type: 'string' }, extension: { type: 'string' }, only: { type: 'string' } },
  });
  const { folder = join('.cache', 'lab'), ...up } = values;
  if (up.only !== undefined && up.only !== 'tailnet')
    throw new Error(`there is no part "${up.only}"\n${USAGE}`);
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
    start: (stop: AbortSignal, tell: (step: string) => void) =>
      startLab({
        folder: folder.path,
        pathOf: locateBinaries(process.env),
        searchPath: process.env['PATH'] ?? '',
        tell,
        stop,
        ...(only === 'tailnet' ? {} : { gateway }),
      }),
    variables: variablesOf,
  };
  return runCommand(subject, command);
});
