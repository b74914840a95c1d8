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
import type { GatewayPaths } from './objects.ts';
import { freePorts, isFree } from '../process/ports.ts';
import { childrenOf, startTimeOf } from '../process/process-table.ts';
import { isRunning, withLogTail, stopProcess, tailOf } from '../process/process.ts';
import type { ProcessRecord } from '../process/process.ts';
import { writeResources } from './resource-files.ts';
import { runProgram } from '../process/starter.ts';
import type { Starter } from '../process/starter.ts';
import type { ProcessNotes } from '../process/state-folder.ts';
import type { Gateway, ListenerName } from '../state.ts';
import { until } from '../process/wait.ts';

/** What a gateway is started with. With an extension server, at host:port, no route works until that answers. */
export type GatewayOptions = {
  readonly extension?: string;
  /** Objects from another folder, in place of those of the lab. */
  readonly objects?: GatewayObjects;
};

/** The folder of a Gateway's objects, which the caller writes, and the ports of its listeners. */
export type GatewayObjects = {
  readonly folder: string;
  readonly name: string;
  readonly namespace: string;
  readonly listeners: Readonly<Partial<Record<ListenerName, number>>>;
};

/** What a gateway needs to start. */
export type GatewayBase = {
  readonly notes: ProcessNotes;
  readonly starter: Starter;
  readonly envoyVersion: string;
};

const XDS_PORT = 18_000;

/** Fails if Envoy Gateway's xDS port, which cannot be changed, is in use. */
export async function expectPortOfGateway(): Promise<void> {
  if (await isFree(XDS_PORT)) return;
  throw new Error(
    `port ${XDS_PORT} is in use, and Envoy Gateway cannot use another: end the process that listens there (another lab?), or leave Envoy Gateway out: npm start -- --no-data-plane, npm run lab -- up --only tailnet`,
  );
}

/** Starts Envoy Gateway and, through it, Envoy, with a listener for each kind of route. */
export async function startGateway(base: GatewayBase, options: GatewayOptions): Promise<Gateway> {
  const { extension, objects } = options;
  const paths = { ...pathsIn(base.starter.folder), ...(objects ? { resources: objects.folder } : {}) };
  const [admin = 0, http = 0, tls = 0, tcp = 0, udp = 0] = await freePorts(5);
  const own = { http, tls, tcp, udp };
  const ports = objects ? { ...NO_PORTS, ...objects.listeners } : own;
  await prepare(base, paths);
  if (!objects) writeResources(paths, 'gateway', gatewayObjects(own, base.envoyVersion));
  writeFileSync(paths.config, JSON.stringify(gatewayConfig(paths, admin, extension), null, 2));
  const { control, address } = await startEnvoy(base, paths);
  const gateway = {
    name: (objects ?? GATEWAY_NAME).name,
    namespace: (objects ?? GATEWAY_NAME).namespace,
    listeners: listenersAt(ports),
    admin: `http://${address}`,
    resources: paths.resources,
    log: control.log,
  };
  if (extension !== undefined) return { ...gateway, extension };
  await awaitAnswer(gateway.listeners.http, control);
  return gateway;
}

/** For listeners that the caller's Gateway does not have. */
const NO_PORTS: Readonly<Record<ListenerName, number>> = { http: 0, tls: 0, tcp: 0, udp: 0 };

type Paths = GatewayPaths & { readonly config: string };

function pathsIn(folder: string): Paths {
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

/** Envoy is linked to the place to which Envoy Gateway would download it. */
async function prepare({ starter, envoyVersion }: GatewayBase, paths: Paths): Promise<void> {
  const envoy = join(paths.programs, 'envoy-versions', envoyVersion, 'bin');
  for (const folder of [paths.resources, envoy]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  symlinkSync(starter.pathOf('envoy'), join(envoy, 'envoy'));
  const args = ['certgen', '--local', '--config-home', paths.certificates];
  await runProgram(starter, 'envoy-gateway', args);
}

const MAX_STARTS = 3;

/**
 * Envoy Gateway looks up its user, and fails for a uid without a name unless USER is set. It spends a third of its time on
 * collecting garbage, unless Go may use more memory than it needs.
 */
const VARIABLES = { USER: 'lab', GOGC: '1000', GOMEMLIMIT: '512MiB' };

type Running = { readonly control: ProcessRecord; readonly address: string };

/** Envoy Gateway does not restart an Envoy that failed to start, so it is restarted itself. */
async function startEnvoy(base: GatewayBase, paths: Paths, starts = 1): Promise<Running> {
  rmSync(paths.run, { recursive: true, force: true });
  const args = ['server', '--config-path', paths.config];
  const control = base.starter.start('envoy-gateway', 'envoy-gateway', args, VARIABLES);
  const found = await envoyOf(control, paths);
  if (found.is === 'running') {
    base.notes.addProcess(found.envoy);
    return { control, address: found.address };
  }
  if (starts >= MAX_STARTS) throw new Error(`Envoy did not start:\n${reasons(control, paths)}`);
  base.notes.removeProcess(control);
  await stopProcess(control);
  rmSync(control.log);
  return startEnvoy(base, paths, starts + 1);
}

/** The errors in the logs of Envoy Gateway and of each Envoy. */
function reasons({ log }: ProcessRecord, paths: Paths): string {
  const errors = readFileSync(log, 'utf8')
    .split('\n')
    .filter(line => line.includes('\terror\t'));
  const runs = join(paths.logs, 'envoy-runs');
  const tails = (existsSync(runs) ? readdirSync(runs) : []).map(id => tailOf({ log: envoyLog(paths, id) }));
  return [...errors, ...tails].join('\n');
}

function envoyLog({ logs }: Paths, id: string): string {
  return join(logs, 'envoy-runs', id, 'stderr.log');
}

type Start =
  | { readonly is: 'running'; readonly address: string; readonly envoy: ProcessRecord }
  | { readonly is: 'failed' };

async function envoyOf(control: ProcessRecord, paths: Paths): Promise<Start> {
  const found = await until<Start | { readonly is: 'over' }>('Envoy to start', note => {
    note(tailOf(control));
    if (!isRunning(control)) return Promise.resolve({ is: 'over' });
    if (readFileSync(control.log, 'utf8').includes('failed to run envoy'))
      return Promise.resolve({ is: 'failed' });
    return Promise.resolve(runningEnvoy(control, paths));
  });
  if (found.is === 'over') throw new Error(`Envoy Gateway ended at once:\n${tailOf(control)}`);
  return found;
}

/** Each start of Envoy has a folder, into which Envoy writes the address of its admin endpoint. */
function runningEnvoy(control: ProcessRecord, paths: Paths): Start | undefined {
  const { run } = paths;
  const [id] = existsSync(run) ? readdirSync(run) : [];
  const [pid] = childrenOf(control.pid);
  const file = join(run, id ?? '', 'admin-address.txt');
  const address = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (id === undefined || pid === undefined || address === '') return undefined;
  const startTime = startTimeOf(pid) ?? '';
  return { is: 'running', address, envoy: { name: 'envoy', pid, startTime, log: envoyLog(paths, id) } };
}

/** Waits for any response: without a route it is a 404. */
async function awaitAnswer(listener: string, control: ProcessRecord): Promise<void> {
  const send = () => requestThrough(listener, { host: 'lab' });
  await withLogTail(control, until(`the gateway to answer at ${listener}`, send));
}
