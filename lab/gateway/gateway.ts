import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { requestThrough } from './envoy.ts';
import { GATEWAY_NAME, gatewayConfig, gatewayObjects } from './objects.ts';
import type { GatewayPlaces } from './objects.ts';
import { freePorts, isFree } from '../process/ports.ts';
import { childrenOf, startTimeOf } from '../process/process-table.ts';
import { isRunning, orTailOf, stopProcess, tailOf } from '../process/process.ts';
import type { ProcessRecord } from '../process/process.ts';
import { writeResources } from './resource-files.ts';
import { runProgram } from '../process/starter.ts';
import type { Starter } from '../process/starter.ts';
import type { ProcessNotes } from '../process/state-folder.ts';
import type { Gateway, ListenerName } from '../state.ts';
import { waitFor } from '../process/wait.ts';

/**
 * What a gateway is to be. With an extension server, at host:port, no route works before that answers: Envoy Gateway
 * then asks it about everything.
 */
export type GatewayWish = {
  readonly extension?: string;
  /** Objects that somebody else writes, in place of those of the lab. */
  readonly objects?: GatewayObjects;
};

/** A Gateway whose objects somebody else writes into a folder, with the ports of its listeners. */
export type GatewayObjects = {
  readonly folder: string;
  readonly name: string;
  readonly namespace: string;
  readonly listeners: Readonly<Partial<Record<ListenerName, number>>>;
};

/** What is there already when a gateway starts. */
export type GatewayBase = {
  readonly notes: ProcessNotes;
  readonly starter: Starter;
  readonly envoyVersion: string;
};

const XDS_PORT = 18_000;

/** Fails where the one port that Envoy Gateway needs and that cannot be chosen is in use. */
export async function expectPortOfGateway(): Promise<void> {
  if (await isFree(XDS_PORT)) return;
  throw new Error(
    `port ${XDS_PORT} is in use, and Envoy Gateway knows no other: end what listens there (another lab?), or leave the gateway out (npm run lab -- up --only tailnet)`,
  );
}

/** Starts Envoy Gateway and, through it, Envoy, with a listener for each kind of route. */
export async function startGateway(base: GatewayBase, wish: GatewayWish): Promise<Gateway> {
  const { extension, objects } = wish;
  const places = { ...placesIn(base.starter.folder), ...(objects ? { resources: objects.folder } : {}) };
  const [admin = 0, http = 0, tls = 0, tcp = 0, udp = 0] = await freePorts(5);
  const own = { http, tls, tcp, udp };
  const ports = objects ? { ...NO_PORTS, ...objects.listeners } : own;
  await prepare(base, places);
  if (!objects) writeResources(places, 'gateway', gatewayObjects(own, base.envoyVersion));
  writeFileSync(places.config, JSON.stringify(gatewayConfig(places, admin, extension), null, 2));
  const { control, address } = await startEnvoy(base, places);
  const gateway = {
    ...{ name: (objects ?? GATEWAY_NAME).name, namespace: (objects ?? GATEWAY_NAME).namespace },
    listeners: listenersAt(ports),
    admin: `http://${address}`,
    resources: places.resources,
    log: control.log,
  };
  if (extension !== undefined) return { ...gateway, extension };
  await awaitAnswer(gateway.listeners.http, control);
  return gateway;
}

/** Of listeners that a Gateway of others does not have. */
const NO_PORTS: Readonly<Record<ListenerName, number>> = { http: 0, tls: 0, tcp: 0, udp: 0 };

type Places = GatewayPlaces & { readonly config: string };

function placesIn(folder: string): Places {
  const home = join(folder, 'gateway');
  return {
    config: join(home, 'envoy-gateway.yaml'),
    certificates: join(home, 'config'),
    programs: join(home, 'data'),
    logs: join(home, 'state'),
    run: join(home, 'run'),
    resources: join(folder, 'resources'),
  };
}

function listenersAt(ports: Readonly<Record<ListenerName, number>>): Gateway['listeners'] {
  const at = (name: ListenerName) => `127.0.0.1:${ports[name]}`;
  return { http: at('http'), tls: at('tls'), tcp: at('tcp'), udp: at('udp') };
}

/** Envoy lies where Envoy Gateway would put one that it had fetched, so that it fetches none. */
async function prepare({ starter, envoyVersion }: GatewayBase, places: Places): Promise<void> {
  const envoy = join(places.programs, 'envoy-versions', envoyVersion, 'bin');
  for (const folder of [places.resources, envoy]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  symlinkSync(starter.pathOf('envoy'), join(envoy, 'envoy'));
  const args = ['certgen', '--local', '--config-home', places.certificates];
  await runProgram(starter, 'envoy-gateway', args);
}

const MOST_STARTS = 3;

type Running = { readonly control: ProcessRecord; readonly address: string };

/** Envoy Gateway never tries again to start an Envoy that failed to start: that takes another Envoy Gateway. */
async function startEnvoy(base: GatewayBase, places: Places, starts = 1): Promise<Running> {
  rmSync(places.run, { recursive: true, force: true });
  const args = ['server', '--config-path', places.config];
  // It looks up who runs it, and a user without a name has to be told.
  const control = base.starter.start('envoy-gateway', 'envoy-gateway', args, { USER: 'lab' });
  const found = await envoyOf(control, places);
  if (found.is === 'running') {
    base.notes.addProcess(found.envoy);
    return { control, address: found.address };
  }
  if (starts >= MOST_STARTS) throw new Error(`Envoy did not start:\n${reasons(control, places)}`);
  base.notes.removeProcess(control);
  await stopProcess(control);
  rmSync(control.log);
  return startEnvoy(base, places, starts + 1);
}

/** What Envoy Gateway calls an error, and what each Envoy said itself. */
function reasons({ log }: ProcessRecord, places: Places): string {
  const errors = readFileSync(log, 'utf8')
    .split('\n')
    .filter(line => line.includes('\terror\t'));
  const runs = join(places.logs, 'envoy-runs');
  const said = (existsSync(runs) ? readdirSync(runs) : []).map(id => tailOf({ log: envoyLog(places, id) }));
  return [...errors, ...said].join('\n');
}

function envoyLog({ logs }: Places, id: string): string {
  return join(logs, 'envoy-runs', id, 'stderr.log');
}

type Start =
  | { readonly is: 'running'; readonly address: string; readonly envoy: ProcessRecord }
  | { readonly is: 'failed' };

async function envoyOf(control: ProcessRecord, places: Places): Promise<Start> {
  const found = await waitFor<Start | { readonly is: 'over' }>('Envoy to start', note => {
    note(tailOf(control));
    if (!isRunning(control)) return Promise.resolve({ is: 'over' });
    if (readFileSync(control.log, 'utf8').includes('failed to run envoy'))
      return Promise.resolve({ is: 'failed' });
    return Promise.resolve(runningEnvoy(control, places));
  });
  if (found.is === 'over') throw new Error(`Envoy Gateway ended at once:\n${tailOf(control)}`);
  return found;
}

/** Each start of Envoy has a folder of its own below, into which Envoy writes the address of its admin endpoint. */
function runningEnvoy(control: ProcessRecord, places: Places): Start | undefined {
  const { run } = places;
  const [id] = existsSync(run) ? readdirSync(run) : [];
  const [pid] = childrenOf(control.pid);
  const file = join(run, id ?? '', 'admin-address.txt');
  const address = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (id === undefined || pid === undefined || address === '') return undefined;
  const startTime = startTimeOf(pid) ?? '';
  return { is: 'running', address, envoy: { name: 'envoy', pid, startTime, log: envoyLog(places, id) } };
}

/** Without a route every request is answered with 404, but answered. */
async function awaitAnswer(listener: string, control: ProcessRecord): Promise<void> {
  const ask = () => requestThrough(listener, { host: 'lab' });
  await orTailOf(control, waitFor(`the gateway to answer at ${listener}`, ask));
}
