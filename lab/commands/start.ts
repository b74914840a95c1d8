/** `npm start`: the quickstart with every real part on this machine, which are built first where they are missing. */
import { closeSync, mkdirSync, openSync, statSync, writeSync } from 'node:fs';
import { once } from 'node:events';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { GatewayResponse } from '../gateway/envoy.ts';
import { guard } from '../process/guard.ts';
import { startLab } from '../lab.ts';
import { isBuilt, locateBinaries, locateParts } from '../parts/locate.ts';
import { lockHolder, takeLock } from '../process/lock.ts';
import { buildMissing } from '../parts/build-missing.ts';
import { missingToolsFor } from '../parts/needs.ts';
import { freePorts } from '../process/ports.ts';
import {
  requestQuickstart,
  QUICKSTART_GATEWAY,
  QUICKSTART_HOST,
  QUICKSTART_PORTS,
} from '../quickstart/quickstart.ts';
import { showRoutes } from '../quickstart/route-table.ts';
import { followRefusals } from '../gateway/resource-files.ts';
import { EXIT, runMain, stopOnSignals } from './run-main.ts';
import { Screen, standardOutput } from '../screen.ts';
import { LabFolder } from '../state.ts';
import type { Lab } from '../state.ts';
import { tryAll } from '../process/errors.ts';
import { refusalIn, warningIn } from '../quickstart/warning.ts';
import { readStandaloneSettings, startStandalone } from '../../src/standalone.ts';
import type { Standalone } from '../../src/standalone.ts';

const PROJECT = join(import.meta.dirname, '..', '..');
const EXAMPLES = join(PROJECT, 'examples', 'quickstart');
const STATE = join(PROJECT, '.cache', 'quickstart');

const USAGE = `npm start [-- --folder FOLDER] [--no-data-plane] [--state FOLDER]

  --folder FOLDER   objects in place of those of examples/quickstart, at the same addresses
  --no-data-plane   show what becomes of each route; build and start nothing else, and send no request
  --state FOLDER    for logs and state; .cache/quickstart
`;

/** The arguments of the command line: the folder with objects, the folder for state, and whether requests are to flow. */
type Options = { readonly declared: string; readonly state: string; readonly dataPlane: boolean };

const environment = process.env;
const screen = new Screen(standardOutput);

function logIn({ state }: Options): string {
  return join(state, 'mesh-gateway.log');
}

function gatewayDirIn({ state }: Options): string {
  return join(state, 'envoy-gateway');
}

/** Relative to the current folder where it is inside of it. */
function shown(path: string): string {
  const short = relative(resolve('.'), path);
  return short.startsWith('..') ? path : short;
}

/** Standalone on free ports; its log goes into a file, and its warnings to the screen as well. */
async function startProduct(options: Options, log: number): Promise<Standalone> {
  const [grpc, metrics, health] = await freePorts(3);
  const flags = {
    'resources-dir': options.declared,
    'state-dir': join(options.state, 'state'),
    'gateway-dir': gatewayDirIn(options),
    'grpc-address': `127.0.0.1:${grpc}`,
    'metrics-address': `127.0.0.1:${metrics}`,
    'health-address': `127.0.0.1:${health}`,
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const write = (line: string) => {
    writeSync(log, line);
    const trouble = warningIn(line);
    if (trouble !== undefined) screen.print(`! ${trouble}`);
  };
  return startStandalone(readStandaloneSettings({ args, environment: {} }), {
    version: 'quickstart',
    to: { write },
  });
}

/** Fails with the signal's reason when that comes first. */
async function unlessStopped<T>(stop: AbortSignal, promise: Promise<T>): Promise<T> {
  const stopped = once(stop, 'abort').then((): never => {
    throw stop.reason;
  });
  return Promise.race([promise, stopped]);
}

/** Builds the parts that are missing, and returns whether all are there; prints what to install where they cannot be built. */
async function prepareParts(stop: AbortSignal): Promise<boolean> {
  const located = locateParts('quickstart', environment);
  const missing = located.filter(part => !isBuilt(part));
  if (missing.length === 0) return true;
  const lacks = missingToolsFor(missing, environment);
  for (const { what, line } of lacks) screen.print(`\n${what} is missing: ${line}`);
  if (lacks.length > 0) {
    screen.print(`\nInstall it and run npm start again to send requests. ${UNTIL_THEN}`);
    return false;
  }
  screen.print(
    `\nBuilding the real parts, once on this machine: ${missing.map(({ part }) => part.name).join(', ')}.
After Ctrl-C the next npm start continues.\n`,
  );
  const left = await buildMissing(located, { environment, stop, screen });
  stop.throwIfAborted();
  if (left === 0) return true;
  screen.print(
    `\n${left} of ${located.length} parts could not be built, see above: npm start tries again. ${UNTIL_THEN}`,
  );
  return false;
}

const UNTIL_THEN = 'Edit a file to see what becomes of the routes. Ctrl-C ends everything.';

/** A tailnet with services, and Envoy Gateway with an Envoy that reads what standalone writes. */
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
    onStep: step =>
      screen.print(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(6)} s  ${step}`),
    stop,
    fixedPorts: QUICKSTART_PORTS,
    gateway: {
      extension: `127.0.0.1:${port}`,
      objects: { ...QUICKSTART_GATEWAY, folder: gatewayDir },
    },
  });
}

function nextSteps({ gateway }: Lab, options: Options, { status, body }: GatewayResponse): string {
  const [first = ''] = body.trim().split('\n');
  const answer = `${status === 200 ? '' : `${status || 'no answer:'} `}${first.slice(0, 76)}`;
  const title =
    status === 200
      ? 'A request went from here through Envoy and a mesh daemon into the tailnet, to a service there:'
      : `No request for ${QUICKSTART_HOST} was answered with 200; the reason is in the routes above. To send it again:`;
  return `
${title}

  curl -H 'host: ${QUICKSTART_HOST}' http://${gateway?.listeners.http}/

  ${answer}

Edit ${shown(join(options.declared, 'web.yaml'))}, such as a weight, and save: the next request follows.
Logs: ${shown(logIn(options))}, ${gateway ? shown(gateway.log) : ''} and others beside it.
Ctrl-C ends everything.`;
}

/** Calls `check` until the signal comes. */
async function untilStopped(stop: AbortSignal, check: () => void): Promise<void> {
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, 200));
    if (stop.aborted) return;
    check();
  }
}

/** Fails when a process has ended by itself, and shows what Envoy Gateway refuses. */
function checkOf(folder: LabFolder, { gateway }: Lab, { manifests }: Standalone): () => void {
  const refusals = gateway ? followRefusals(gateway) : () => [];
  return () => {
    if (!folder.running()) throw new Error('a process of the data plane has ended; see the logs');
    for (const why of refusals())
      screen.print(`! Envoy Gateway reads no file until this is corrected: ${refusalIn(why, manifests)}`);
  };
}

async function run(options: Options, stop: AbortSignal): Promise<void> {
  mkdirSync(options.state, { recursive: true, mode: 0o700 });
  const folder = new LabFolder(join(options.state, 'lab'));
  const down = [process.execPath, '--import', 'tsx', 'lab/commands/lab.ts', 'down', '--folder', folder.path];
  const cleaner = guard(down, PROJECT);
  const log = openSync(logIn(options), 'w', 0o600);
  const ends: (() => unknown)[] = [() => closeSync(log), () => cleaner.release()];
  try {
    const product = await startProduct(options, log);
    ends.unshift(
      ...product.steps.map(
        ({ run: end }) =>
          () =>
            end(),
      ),
    );
    const port = await unlessStopped(stop, product.started);
    ends.unshift(showRoutes(product.read, screen));
    if (!options.dataPlane) screen.print(`\nWithout a data plane no request can be sent. ${UNTIL_THEN}`);
    if (!options.dataPlane || !(await prepareParts(stop))) {
      await untilStopped(stop, () => undefined);
      return;
    }
    await folder.remove();
    ends.unshift(() => folder.remove());
    const lab = await startParts(folder, stop, gatewayDirIn(options), port);
    const check = checkOf(folder, lab, product);
    const answer = await requestQuickstart(lab.gateway?.listeners.http ?? '', stop, check);
    if (stop.aborted) return;
    screen.print(nextSteps(lab, options, answer));
    await untilStopped(stop, check);
  } finally {
    await tryAll(ends.map(end => () => Promise.resolve().then(end)));
  }
}

/** Undefined where help is wanted. */
function readCommandLine(): Options | undefined {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const { values } = parseArgs({
    options: { folder: text, state: text, 'no-data-plane': flag, help: flag },
  });
  if (values.help) return undefined;
  const declared = resolve(values.folder ?? EXAMPLES);
  if (!statSync(declared, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(`--folder ${values.folder}: there is no such folder`);
  return {
    declared,
    state: resolve(values.state ?? STATE),
    dataPlane: values['no-data-plane'] !== true,
  };
}

await runMain('start', async () => {
  const options = readCommandLine();
  if (!options) {
    screen.print(USAGE);
    return EXIT.done;
  }
  const lock = `${options.state}.lock`;
  const holder = lockHolder(lock);
  if (holder) throw new Error(`npm start runs already, as process ${holder.pid}`);
  const stop = stopOnSignals();
  const release = await takeLock(lock, { stop, onWaiting: () => undefined, purpose: 'running' });
  try {
    await run(options, stop);
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    release?.();
  }
  screen.print('everything has ended');
  return EXIT.done;
});
