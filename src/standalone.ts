import { homedir } from 'node:os';
import { join, relative, resolve, sep } from 'node:path';
import { controllerIndexes, controllerNames, startControllers } from './controllers.ts';
import { extensionIndexes } from './extension/listers.ts';
import { GatewayFiles } from './gateway-files/gateway-files.ts';
import {
  controllerSettings,
  extensionSettings,
  standaloneSettings,
  telemetrySettings,
} from './process/declared-settings.ts';
import { envoyGatewayFile } from './api/envoy-gateway.ts';
import { runUntilSignal, stepsOf } from './runtime/shutdown.ts';
import { startServing } from './process/serving.ts';
import { helpOn, readSettings } from './process/settings.ts';
import type { Given, Values } from './process/settings.ts';
import { startTelemetry } from './process/telemetry.ts';
import type { ProcessTelemetry } from './process/telemetry.ts';
import { installationId } from './resources/installation.ts';
import { openDirectory } from './resources/directory.ts';
import type { Directory } from './resources/directory.ts';
import type { ReadResources } from './resources/resources.ts';
import { systemClock } from './runtime/clock.ts';
import { watchSource } from './runtime/observer.ts';
import type { StopStep } from './runtime/shutdown.ts';
import { formatAddress } from './telemetry/address.ts';
import type { LogDestination } from './telemetry/log.ts';
import { SettingError } from './telemetry/setting-error.ts';

function allSettings({ environment }: Pick<Given, 'environment'>) {
  const state = environment['XDG_STATE_HOME'] || join(homedir(), '.local', 'state');
  return {
    ...standaloneSettings(state),
    ...controllerSettings,
    ...extensionSettings,
    ...telemetrySettings,
  };
}

/** What standalone is told. */
export type StandaloneSettings = Values<ReturnType<typeof allSettings>>;

/** Reads what standalone is told; fails with SettingError. */
export function readStandaloneSettings(given: Given): StandaloneSettings {
  return readSettings(allSettings(given), given);
}

const PRINT_FLAG = '--print-envoy-gateway-config';

/** What `mesh-gateway help standalone` prints. */
export function standaloneHelp(environment: Given['environment']): string {
  return `mesh-gateway standalone --resources-dir FOLDER

Runs the operator and the extension server in one process, without a cluster: objects are YAML files
in a folder, and Envoy Gateway reads a folder that is made of them.

  ${PRINT_FLAG}
      print what Envoy Gateway is to be configured with for these settings, and end

${helpOn(allSettings({ environment }))}`;
}

/** Standalone at work. */
export type Standalone = {
  readonly telemetry: ProcessTelemetry;
  readonly read: ReadResources;
  /** Fulfilled with the port once Envoy Gateway and Envoy are served, and the folder is written. */
  readonly begun: Promise<number>;
  /** What ends it, in this order. */
  readonly steps: readonly StopStep[];
};

/** What else standalone needs from outside. */
export type StandaloneWish = { readonly version: string; readonly to?: LogDestination };

/** Begins; fails with SettingError, or with ResourceError where the state folder cannot be used. */
export async function startStandalone(
  settings: StandaloneSettings,
  wish: StandaloneWish,
): Promise<Standalone> {
  expectApart('STATE_DIR', settings.stateDir, settings.resourcesDir);
  expectApart('GATEWAY_DIR', settings.gatewayDir, settings.resourcesDir);
  const edsTarget = targetOf(settings);
  const telemetry = await startTelemetry({ ...settings, ...wish, controllers: controllerNames });
  try {
    telemetry.log.info('this installation', { id: await installationId(settings.stateDir) });
    const { directory, files } = openFolders(settings, telemetry);
    const { read } = directory;
    watchSource('folder', read, telemetry);
    const serving = startServing({
      ...settings,
      edsTarget,
      read,
      telemetry,
      clock: systemClock,
    });
    const { revisionOf } = serving;
    const { concurrency, syncPeriodMs } = settings;
    const deps = { read, write: directory.write, clock: systemClock, telemetry, revisionOf };
    const controllers = startControllers(deps, { concurrency, syncPeriodMs });
    files.start();
    directory.start();
    const steps = [
      ...serving.steps.slice(0, 1),
      ...stepsOf(controllers, telemetry.readiness, DRAIN, telemetry.log),
      ...serving.steps.slice(1),
      { name: 'finish the folder of Envoy Gateway', run: () => files.close() },
      { name: 'close the folders', run: () => directory.close() },
      { name: 'end telemetry', run: () => telemetry.close() },
    ];
    const begun = serving.begun.then(async port => {
      await files.whenIdle();
      return port;
    });
    return { telemetry, read, begun, steps };
  } catch (error) {
    await telemetry.close();
    throw error;
  }
}

const DRAIN = { endMs: 5000, obeyMs: 1000 };

function openFolders(
  { resourcesDir, gatewayDir }: StandaloneSettings,
  { log }: ProcessTelemetry,
): { readonly directory: Directory; readonly files: GatewayFiles } {
  const directory = openDirectory({
    folder: resourcesDir,
    indexes: [...extensionIndexes, ...controllerIndexes],
    report: ({ message: why, ...problem }) =>
      log.warn('a declaration is not as it should be', { ...problem, why }),
    reportFailure: error => log.error('unexpected error in the folder', { error }),
    onWritten: () => files.onWritten(),
  });
  const { read, written } = directory;
  const files = new GatewayFiles({ folder: resolve(gatewayDir), read, written, clock: systemClock, log });
  return { directory, files };
}

/** What we write must not be read as if a user had written it. */
function expectApart(setting: string, ours: string, theirs: string): void {
  const steps = relative(resolve(theirs), resolve(ours)).split(sep);
  const isInside = steps[0] !== '..' && !steps.some(step => step.startsWith('.'));
  if (!isInside) return;
  throw new SettingError(
    setting,
    `${resolve(ours)} is inside of RESOURCES_DIR: name a folder beside it, or a hidden one`,
  );
}

/** What Envoy dials, and Envoy Gateway. */
function targetOf({ extensionServerAddress, grpcAddress }: StandaloneSettings): string {
  if (extensionServerAddress !== undefined) return extensionServerAddress;
  const { host = '127.0.0.1', port } = grpcAddress;
  if (port !== 0) return formatAddress({ host: isAny(host) ? '127.0.0.1' : host, port });
  throw new SettingError(
    'EXTENSION_SERVER_ADDRESS',
    'is not set, and GRPC_ADDRESS leaves the port open: set one of both',
  );
}

function isAny(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** The configuration of Envoy Gateway with which it works together with standalone; fails with SettingError. */
function envoyGatewayFileFor(settings: StandaloneSettings): string {
  const extension = { address: targetOf(settings), maxMessageSize: settings.maxMessageSize };
  return envoyGatewayFile({ resources: resolve(settings.gatewayDir), extension });
}

/** Runs `mesh-gateway standalone` until a signal ends the process; gives what is wrong at the start as an error. */
export async function runStandalone(given: Given, version: string): Promise<number> {
  const args = given.args.filter(arg => arg !== PRINT_FLAG);
  const settings = readStandaloneSettings({ ...given, args });
  if (args.length < given.args.length) {
    process.stdout.write(envoyGatewayFileFor(settings));
    return 0;
  }
  const running = await startStandalone(settings, { version });
  await runUntilSignal(running, { signals: process, exit: code => process.exit(code) });
  return 0;
}
