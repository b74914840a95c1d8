/** `npm run lab -- up | down | status | env`: a tailnet with nodes and services on this machine, without root. */
import { join } from 'node:path';
import { startLab } from './lab/lab.ts';
import { locateBinaries } from './lab/locate.ts';
import { isRunning } from './lab/process.ts';
import { LabFolder } from './lab/state.ts';
import type { Lab } from './lab/state.ts';

const USAGE = `npm run lab -- COMMAND

  up      start the lab, or say where it runs; needs npm run parts -- --only lab
  down    end every process of it and remove its folder
  status  tell what runs
  env     print where everything is, as variables for a shell
`;

const FOLDER = join('.cache', 'lab');

async function main(command: string | undefined): Promise<number> {
  const folder = new LabFolder(join(process.cwd(), FOLDER));
  switch (command) {
    case 'up':
      return up(folder);
    case 'down':
      console.log(`${await folder.remove()} processes ended`);
      return 0;
    case 'status':
      return status(folder);
    case 'env':
      return printEnvironment(folder);
    default:
      console.error(USAGE);
      return 2;
  }
}

async function up(folder: LabFolder): Promise<number> {
  const lab = await startLab({
    folder: folder.path,
    pathOf: locateBinaries(process.env),
    searchPath: process.env['PATH'] ?? '',
    tell: step => console.error(`  ${step}`),
  });
  print(lab);
  return 0;
}

function status(folder: LabFolder): number {
  for (const record of folder.processes()) {
    console.log(
      `${record.name.padEnd(20)}${isRunning(record) ? `runs (${record.pid})` : 'has ended'}  ${record.log}`,
    );
  }
  const isWhole = folder.running() !== undefined;
  console.log(isWhole ? 'the lab is up' : 'the lab is down: npm run lab -- up starts it');
  return isWhole ? 0 : 1;
}

function printEnvironment(folder: LabFolder): number {
  const lab = folder.running();
  if (lab) print(lab);
  else console.error('the lab is down: npm run lab -- up starts it');
  return lab ? 0 : 1;
}

function print({ tailnet, proxy, remotes }: Lab): void {
  console.log(`TAILNET_URL=${tailnet.url}\nTAILNET_ADMIN=${tailnet.admin}\nMESH_PROXY=${proxy}`);
  for (const { hostname, fqdn, address, control, ports, caFile } of remotes) {
    const prefix = hostname.toUpperCase().replaceAll('-', '_');
    console.log(
      `${prefix}_FQDN=${fqdn}\n${prefix}_ADDRESS=${address}\n${prefix}_CONTROL=${control}\n${prefix}_CA=${caFile}`,
    );
    for (const [name, port] of Object.entries(ports))
      console.log(`${prefix}_${name.toUpperCase()}_PORT=${port}`);
  }
}

try {
  process.exitCode = await main(process.argv[2]);
} catch (error) {
  console.error(`lab: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
}
