/** `npm run lab -- up | down | status | env`: a tailnet with nodes, services and a gateway on this machine, without root. */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startLab } from './lab/lab.ts';
import { locateBinaries } from './lab/locate.ts';
import { isRunning } from './lab/process.ts';
import { LabFolder } from './lab/state.ts';
import type { Lab } from './lab/state.ts';
import { variablesOf } from './lab/variables.ts';

const USAGE = `npm run lab -- COMMAND [--folder FOLDER]

  up      start the lab, or say where it runs; needs npm run parts -- --only lab
          --extension HOST:PORT   let Envoy Gateway ask this extension server
          --only tailnet          without Envoy Gateway and Envoy
  down    end every process of it and remove its folder
  status  tell what runs
  env     print where everything is, as variables for a shell
`;

const DONE = 0;
const NOT_UP = 1;
const FAILED = 2;
const INTERRUPTED = 130;

/** The command line as it was meant. */
type Wish = { readonly command: string | undefined; readonly folder: LabFolder } & Pick<
  Up,
  'only' | 'extension'
>;

type Up = { readonly only?: string; readonly extension?: string };

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

async function main(): Promise<number> {
  const { command, folder, ...up } = readCommandLine();
  switch (command) {
    case 'up':
      return start(folder, up);
    case 'down':
      console.log(`${await folder.remove()} processes ended`);
      return DONE;
    case 'status':
      return tellStatus(folder);
    case 'env':
      return printEnvironment(folder);
    default:
      console.error(USAGE);
      return FAILED;
  }
}

async function start(folder: LabFolder, { only, extension }: Up): Promise<number> {
  const stop = stopOnSignals();
  try {
    const lab = await startLab({
      folder: folder.path,
      pathOf: locateBinaries(process.env),
      searchPath: process.env['PATH'] ?? '',
      tell: step => console.error(`  ${step}`),
      stop,
      ...(only === 'tailnet' ? {} : { gateway: extension === undefined ? {} : { extension } }),
    });
    print(lab);
    return DONE;
  } catch (error) {
    if (!stop.aborted) throw error;
    console.error('lab: stopped, and nothing is left of it');
    // Some waits for what has been ended would go on for a while.
    process.exit(INTERRUPTED);
  }
}

function stopOnSignals(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => controller.abort(new Error('stopped')));
  return controller.signal;
}

function tellStatus(folder: LabFolder): number {
  for (const record of folder.processes()) {
    console.log(
      `${record.name.padEnd(20)}${isRunning(record) ? `runs (${record.pid})` : 'has ended'}  ${record.log}`,
    );
  }
  const lab = folder.running();
  if (!lab) return tellDown(console.log);
  print(lab);
  console.log('the lab is up');
  return DONE;
}

function printEnvironment(folder: LabFolder): number {
  const lab = folder.running();
  if (!lab) return tellDown(console.error);
  print(lab);
  return DONE;
}

function tellDown(tell: (line: string) => void): number {
  tell('the lab is down: npm run lab -- up starts it');
  return NOT_UP;
}

function print(lab: Lab): void {
  for (const line of variablesOf(lab)) console.log(line);
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`lab: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = FAILED;
}
