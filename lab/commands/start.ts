/** `npm start`: the quickstart at work, with everything real that is built on this machine; Ctrl-C ends all of it. */
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { once } from 'node:events';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { explainRoutes } from '../../src/explain/routes.ts';
import { declaredIn } from '../../src/extension/listers.ts';
import type { GatewayAnswer } from '../envoy.ts';
import { guard } from '../guard.ts';
import { startLab } from '../lab.ts';
import { isBuilt, locateBinaries, locateParts } from '../locate.ts';
import { lockHolder, takeLock } from '../lock.ts';
import { partsOf } from '../parts.ts';
import { freePorts } from '../ports.ts';
import { askQuickstart, QUICKSTART_GATEWAY, QUICKSTART_HOST, QUICKSTART_PLACES } from '../quickstart.ts';
import { followRefusals } from '../refusals.ts';
import { EXIT, runMain, stopOnSignals } from '../run-main.ts';
import { LabFolder } from '../state.ts';
import type { Lab } from '../state.ts';
import { tryAll } from '../try-all.ts';
import { ROUTE_KINDS } from '../../src/api/key.ts';
import { troubleIn } from '../trouble.ts';
import { readStandaloneSettings, startStandalone } from '../../src/standalone.ts';
import type { Standalone } from '../../src/standalone.ts';

const PROJECT = join(import.meta.dirname, '..', '..');
const EXAMPLES = join(PROJECT, 'examples', 'quickstart');
const STATE = join(PROJECT, '.cache', 'quickstart');

const USAGE = `npm start [-- --folder FOLDER] [--state FOLDER]

  --folder FOLDER   objects in place of those of examples/quickstart, at the same addresses
  --state FOLDER    for logs and all that is kept; .cache/quickstart
`;

/** The folder with declarations, and the one for all that is made of them. */
type Folders = { readonly declared: string; readonly state: string };

function logIn({ state }: Folders): string {
  return join(state, 'mesh-gateway.log');
}

const environment = process.env;

function gatewayDirIn({ state }: Folders): string {
  return join(state, 'envoy-gateway');
}

function tell(line: string): void {
  console.log(line);
}

/** As somebody would write it who stands here. */
function shown(path: string): string {
  const short = relative(resolve('.'), path);
  return short.startsWith('..') ? path : short;
}

/** Standalone on the examples, on ports that nothing else has; its log goes into a file. */
async function startProduct({ declared, state }: Folders, log: number): Promise<Standalone> {
  const [grpc, metrics, health] = await freePorts(3);
  const flags = {
    'resources-dir': declared,
    'state-dir': join(state, 'state'),
    'gateway-dir': gatewayDirIn({ declared, state }),
    'grpc-address': `127.0.0.1:${grpc}`,
    'metrics-address': `127.0.0.1:${metrics}`,
    'health-address': `127.0.0.1:${health}`,
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const write = (line: string) => {
    writeSync(log, line);
    const trouble = troubleIn(line);
    if (trouble !== undefined) tell(`! ${trouble}`);
  };
  return startStandalone(readStandaloneSettings({ args, environment: {} }), {
    version: 'quickstart',
    to: { write },
  });
}

/** Gives up when it is told to stop. */
async function unlessStopped<T>(stop: AbortSignal, something: Promise<T>): Promise<T> {
  const stopped = once(stop, 'abort').then((): never => {
    throw stop.reason;
  });
  return Promise.race([something, stopped]);
}

/** Tells what becomes of each route, and again when that is another thing. */
function follow({ read }: Standalone): () => void {
  const declared = declaredIn(read, () => undefined);
  let told: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    const routes = ROUTE_KINDS.flatMap(kind => read.list(kind));
    const explained = explainRoutes(declared, routes, 'Proxy').map(({ text }) => text);
    for (const text of explained) if (!told.includes(text)) tell(`\n${text}`);
    if (explained.length === 0 && told.length > 0) tell('\nno route has MeshEndpoints among its backends');
    told = explained;
  };
  look();
  const unsubscribe = read.subscribe(() => {
    clearTimeout(timer);
    timer = setTimeout(look, QUIET_MS);
  });
  return () => {
    unsubscribe();
    clearTimeout(timer);
  };
}

const QUIET_MS = 100;

/** The real parts around it: a tailnet with services, and Envoy Gateway with an Envoy that reads what standalone writes. */
async function startParts(
  folder: LabFolder,
  stop: AbortSignal,
  gatewayDir: string,
  port: number,
): Promise<Lab> {
  const startMs = performance.now();
  return startLab({
    folder: folder.path,
    pathOf: locateBinaries(environment),
    searchPath: environment['PATH'] ?? '',
    tell: step => tell(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(6)} s  ${step}`),
    stop,
    places: QUICKSTART_PLACES,
    gateway: {
      extension: `127.0.0.1:${port}`,
      objects: { ...QUICKSTART_GATEWAY, folder: gatewayDir },
    },
  });
}

function tellHowTo({ gateway }: Lab, folders: Folders, { status, body }: GatewayAnswer): void {
  const [first = ''] = body.trim().split('\n');
  const came = `${status === 200 ? '' : `${status || 'no answer:'} `}${first.slice(0, 150)}`;
  const how =
    status === 200
      ? 'A request has gone from here to Envoy, through a mesh daemon into the tailnet, and to a service there:'
      : `No request for ${QUICKSTART_HOST} has come through; what becomes of each route stands above. To ask again:`;
  tell(`
${how}

  curl -H 'host: ${QUICKSTART_HOST}' http://${gateway?.listeners.http}/

  ${came}

Edit ${shown(join(folders.declared, 'web.yaml'))}, such as a weight, and save: the next request follows.
Logs: ${shown(logIn(folders))}, ${gateway ? shown(gateway.log) : ''} and others beside it.
Ctrl-C ends everything.`);
}

const NOT_BUILT = `
The real parts (a tailnet, Envoy Gateway, Envoy) are not built here, so that no request can be sent. To build them:

  npm run parts -- --only lab

Until then, this is what is made of your files: edit one and see. Ctrl-C ends it.`;

/** Lets everything run until it is told to stop. */
async function untilStopped(stop: AbortSignal, look: () => void): Promise<void> {
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, 200));
    if (stop.aborted) return;
    look();
  }
}

/** Fails when a part has ended by itself, and tells what Envoy Gateway refuses, which is all that it reads. */
function lookAfter(folder: LabFolder, { gateway }: Lab): () => void {
  const refusals = gateway ? followRefusals(gateway) : () => [];
  return () => {
    if (!folder.running()) throw new Error('a part has ended by itself; see the logs');
    for (const why of refusals()) tell(`! Envoy Gateway reads nothing more until this is mended: ${why}`);
  };
}

async function run(folders: Folders, stop: AbortSignal): Promise<void> {
  mkdirSync(folders.state, { recursive: true, mode: 0o700 });
  const folder = new LabFolder(join(folders.state, 'lab'));
  const down = [process.execPath, '--import', 'tsx', 'lab/commands/lab.ts', 'down', '--folder', folder.path];
  const cleaner = guard(down, PROJECT);
  const log = openSync(logIn(folders), 'w', 0o600);
  const ends: (() => unknown)[] = [() => closeSync(log), () => cleaner.release()];
  try {
    const product = await startProduct(folders, log);
    ends.unshift(
      ...product.steps.map(
        ({ run: end }) =>
          async () =>
            end(),
      ),
    );
    const port = await unlessStopped(stop, product.begun);
    const isPossible = locateParts(partsOf('lab'), environment).every(isBuilt);
    if (!isPossible) tell(NOT_BUILT);
    const unfollow = follow(product);
    ends.unshift(unfollow);
    if (!isPossible) {
      await untilStopped(stop, () => undefined);
      return;
    }
    await folder.remove();
    ends.unshift(() => folder.remove());
    const lab = await startParts(folder, stop, gatewayDirIn(folders), port);
    const look = lookAfter(folder, lab);
    const answer = await askQuickstart(lab.gateway?.listeners.http ?? '', stop, look);
    if (stop.aborted) return;
    tellHowTo(lab, folders, answer);
    await untilStopped(stop, look);
  } finally {
    await tryAll(ends.map(end => () => Promise.resolve().then(end)));
  }
}

/** The folders that are meant, or nothing where somebody asks how to say it. */
function readCommandLine(): Folders | undefined {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ options: { folder: text, state: text, help: { type: 'boolean' } } });
  if (values.help) return undefined;
  return { declared: resolve(values.folder ?? EXAMPLES), state: resolve(values.state ?? STATE) };
}

await runMain('start', async () => {
  const folders = readCommandLine();
  if (!folders) {
    tell(USAGE);
    return EXIT.done;
  }
  const lock = `${folders.state}.lock`;
  const holder = lockHolder(lock);
  if (holder) throw new Error(`npm start runs already, as process ${holder.pid}`);
  const stop = stopOnSignals();
  const release = await takeLock(lock, { stop, tellWaiting: () => undefined, purpose: 'running' });
  try {
    await run(folders, stop);
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    release?.();
  }
  tell('all of it has ended');
  return EXIT.done;
});
