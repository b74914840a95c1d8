import { homedir } from 'node:os';
import { join, relative, resolve, sep } from 'node:path';
import { controllerIndexes, controllerNames, startControllers } from './controllers/registry.ts';
import { OAUTH_SECRET } from './api/names.ts';
import { openExternalTargets } from './controllers/mesh-endpoints/inputs/external-targets.ts';
import { openTailnets } from './control/tailnets.ts';
import { clusterEncoding } from './extension/envoy-cluster/encoding-version.ts';
import { Tracking } from './store/tracking.ts';
import { trafficIndexes } from './store/traffic/resources.ts';
import { trafficValues } from './store/traffic/values.ts';
import type { TrafficValues } from './store/traffic/values.ts';
import { GatewayFiles } from './files/gateway/gateway-files.ts';
import { startHealthChecks } from './health/health-checks.ts';
import {
  controllerSettings,
  extensionSettings,
  standaloneSettings,
  telemetrySettings,
} from './process/declared-settings.ts';
import { logTo } from './files/problems.ts';
import { envoyGatewayFile } from './api/envoy-gateway.ts';
import { readEndpointGauges } from './controllers/mesh-endpoints/gauges.ts';
import { readMeshGatewayGauges } from './controllers/mesh-gateway/gauges.ts';
import { readRoutePolicyGauges } from './controllers/mesh-route-policy/gauges.ts';
import { readyMembers } from './controllers/mesh-tailnet/pool/ready-members.ts';
import { meshPodSettings } from './process/mesh-pods.ts';
import { runUntilSignal, controllerSteps } from './runtime/shutdown.ts';
import { addressSettings, guardOf } from './process/addresses.ts';
import { startServing } from './process/serving.ts';
import { helpOn, readSettings } from './process/settings.ts';
import type { Given, Values } from './process/settings.ts';
import { startTelemetry } from './process/telemetry.ts';
import type { ProcessTelemetry } from './process/telemetry.ts';
import { installationId } from './files/installation.ts';
import { inputSources } from './controllers/mesh-endpoints/inputs/sources.ts';
import { localReferenced, localSecrets } from './files/local-secrets.ts';
import type { ReadOwnNamespace } from './store/own-namespace.ts';
import { openDirectory } from './files/directory.ts';
import type { Directory } from './files/directory.ts';
import type { ReadManifests } from './files/manifests.ts';
import type { ReadResources, RecordEvents, WriteResources } from './store/resources.ts';
import { systemClock } from './runtime/clock.ts';
import { registerSource } from './runtime/observer.ts';
import type { AddressGuard } from './traffic/address-guard.ts';
import type { ShutdownStep } from './runtime/shutdown.ts';
import { formatAddress } from './telemetry/address.ts';
import type { Log, LogDestination } from './telemetry/log.ts';
import { SettingError } from './telemetry/setting-error.ts';

function allSettings({ environment }: Pick<Given, 'environment'>) {
  const state = environment['XDG_STATE_HOME'] || join(homedir(), '.local', 'state');
  return {
    ...standaloneSettings(state),
    ...controllerSettings,
    ...addressSettings,
    controlURL: meshPodSettings.controlURL,
    ...extensionSettings,
    ...telemetrySettings,
  };
}

/** The settings of standalone. */
export type StandaloneSettings = Values<ReturnType<typeof allSettings>>;

/** Reads the settings of standalone; throws SettingError. */
export function readStandaloneSettings(given: Given): StandaloneSettings {
  return readSettings(allSettings(given), given);
}

const PRINT_FLAG = '--print-envoy-gateway-config';

/** What `mesh-gateway help standalone` prints. */
export function standaloneHelp(environment: Given['environment']): string {
  return `mesh-gateway standalone --resources-dir FOLDER

Runs the operator and the extension server in one process, without a cluster:
objects are YAML files in a folder, and standalone writes another folder from
them for Envoy Gateway to read.

  ${PRINT_FLAG}
      print the configuration of Envoy Gateway for these settings, and exit

${helpOn(allSettings({ environment }))}`;
}

/** A started standalone. */
export type Standalone = {
  readonly telemetry: ProcessTelemetry;
  readonly read: ReadResources;
  /** The objects of files that Envoy Gateway reads. */
  readonly manifests: ReadManifests;
  /** Fulfilled with the port once it serves Envoy Gateway and Envoy, and the folder for Envoy Gateway is written. */
  readonly started: Promise<number>;
  /** The steps of its shutdown, in order. */
  readonly steps: readonly ShutdownStep[];
};

export type StandaloneOptions = { readonly version: string; readonly to?: LogDestination };

/** Starts standalone; throws SettingError, or ResourceError where the state folder cannot be used. */
export async function startStandalone(
  settings: StandaloneSettings,
  options: StandaloneOptions,
): Promise<Standalone> {
  expectApart('STATE_DIR', settings.stateDir, settings.resourcesDir);
  expectApart('GATEWAY_DIR', settings.gatewayDir, settings.resourcesDir);
  const edsTarget = targetOf(settings);
  const telemetry = await startTelemetry({ ...settings, ...options, controllers: controllerNames });
  try {
    telemetry.log.info('installation id', { id: await installationId(settings.stateDir) });
    const { directory, files } = openFolders(settings, telemetry);
    const { read, manifests } = directory;
    registerSource('folder', read, telemetry);
    const guard = guardOf(settings);
    const tracking = new Tracking(read);
    const encoding = clusterEncoding(edsTarget);
    const served = { ...settings, clusterEncoding: encoding, guard, settingsFrom: 'MeshGateway' } as const;
    const values = trafficValues(tracking, served);
    const serving = startServing({ ...settings, edsTarget, tracking, traffic: values, telemetry, clock });
    const operating = startOperating(settings, options, {
      tracking,
      values,
      guard,
      telemetry,
      write: directory.write,
    });
    files.start();
    directory.start();
    const steps = [
      ...serving.steps.slice(0, 1),
      ...operating,
      ...serving.steps.slice(1),
      { name: 'finish writing the folder of Envoy Gateway', run: () => files.close() },
      { name: 'close the folders', run: () => directory.close() },
      { name: 'close telemetry', run: () => telemetry.close() },
    ];
    const started = serving.started.then(async port => {
      await files.whenIdle();
      return port;
    });
    return { telemetry, read, manifests, started, steps };
  } catch (error) {
    await telemetry.close();
    throw error;
  }
}

const [clock, date] = [systemClock, () => new Date()];

const DRAIN = { graceMs: 5000, abortMs: 1000 };

type OperatingDeps = {
  readonly tracking: Tracking;
  readonly values: TrafficValues;
  readonly guard: AddressGuard;
  readonly telemetry: ProcessTelemetry;
  readonly write: WriteResources;
};

/** Starts what the operator does in a cluster; returns the steps that end it. */
function startOperating(
  settings: StandaloneSettings,
  { version }: StandaloneOptions,
  { guard, ...deps }: OperatingDeps,
): readonly ShutdownStep[] {
  const { tracking, telemetry } = deps;
  const { metrics, log, readiness } = telemetry;
  const { dataPath, controlURL, secretsDir, concurrency, syncPeriodMs } = settings;
  const read = tracking.untracked;
  const { health, close: endChecks } = startHealthChecks({
    members: readyMembers(read),
    concurrency: settings.healthCheckConcurrency,
    clock,
    now: date,
    random: Math.random,
    record: metrics.record,
    log,
  });
  readEndpointGauges(read, metrics, settings.endpointMetricLabels);
  readMeshGatewayGauges(read, metrics);
  readRoutePolicyGauges(read, metrics);
  const userAgent = `mesh-gateway/${version}`;
  const tailnets = openTailnets({ clock, now: date, random: Math.random, userAgent, metrics });
  const targets = openExternalTargets({ clock, guard });
  const referenced = localReferenced(secretsDir);
  const sources = { read, referenced, clock, podNamespace: undefined, syncPeriodMs, guard, targets };
  const controllers = startControllers(
    {
      ...deps,
      clock,
      now: date,
      dataPath,
      controlURL,
      tailnets,
      health,
      inputs: inputSources(sources),
      ownNamespace: secretsOf(settings),
      events: eventsInLog(log),
      relayPorts: undefined,
      vipServices: undefined,
      pools: undefined,
      enforcement: undefined,
      cluster: undefined,
      anchorNamespace: undefined,
    },
    { concurrency, syncPeriodMs },
  );
  return [
    // Before reconciles are drained: they may wait for the control API.
    { name: 'close the tailnets', run: () => tailnets.close() },
    { name: 'end lookups', run: () => targets.close() },
    ...controllerSteps(controllers, readiness, DRAIN, log),
    // Until then a reconcile may read verdicts, and write status.
    { name: 'end health checks', run: endChecks },
  ];
}

/** Without a cluster, Events are lines of the log. */
function eventsInLog(log: Log): RecordEvents {
  return {
    record: ({ regarding: { kind, namespace, name }, type, reason, note }) => {
      const level = type === 'Warning' ? 'warn' : 'info';
      const place = namespace === undefined ? name : `${namespace}/${name}`;
      log[level]('event', { reason, object: `${kind} ${place}`, why: note });
    },
  };
}

function secretsOf({ secretsDir, clientId, clientSecret }: StandaloneSettings): ReadOwnNamespace {
  const isGiven = clientId !== undefined || clientSecret !== undefined;
  const data = { 'client-id': clientId ?? '', 'client-secret': clientSecret ?? '' };
  return localSecrets({ folder: secretsDir, given: isGiven ? { [OAUTH_SECRET]: data } : {} });
}

function openFolders(
  { resourcesDir, gatewayDir }: StandaloneSettings,
  { log }: ProcessTelemetry,
): { readonly directory: Directory; readonly files: GatewayFiles } {
  const directory = openDirectory({
    folder: resourcesDir,
    indexes: [...trafficIndexes, ...controllerIndexes],
    report: logTo(log),
    reportFailure: error => log.error('unexpected error in the folder', { error }),
    onManifests: () => files.onWritten(),
  });
  const { read, manifests } = directory;
  const files = new GatewayFiles({
    folder: resolve(gatewayDir),
    read,
    written: manifests,
    clock,
    log,
  });
  return { directory, files };
}

/** Folders that standalone writes must not be read as resources. */
function expectApart(setting: string, written: string, read: string): void {
  const steps = relative(resolve(read), resolve(written)).split(sep);
  const isInside = steps[0] !== '..' && !steps.some(step => step.startsWith('.'));
  if (!isInside) return;
  throw new SettingError(
    setting,
    `${resolve(written)} is inside RESOURCES_DIR: name a folder outside it, or a hidden one`,
  );
}

/** The address to which Envoy and Envoy Gateway connect. */
function targetOf({ extensionServerAddress, grpcAddress }: StandaloneSettings): string {
  if (extensionServerAddress !== undefined) return extensionServerAddress;
  const { host = '127.0.0.1', port } = grpcAddress;
  if (port !== 0) return formatAddress({ host: isAny(host) ? '127.0.0.1' : host, port });
  throw new SettingError(
    'EXTENSION_SERVER_ADDRESS',
    'is not set, and GRPC_ADDRESS has port 0: set one of them',
  );
}

function isAny(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** The configuration of Envoy Gateway for standalone; throws SettingError. */
function envoyGatewayFileFor(settings: StandaloneSettings): string {
  const extension = { address: targetOf(settings), maxMessageSize: settings.maxMessageSize };
  return envoyGatewayFile({ resources: resolve(settings.gatewayDir), extension });
}

/** Runs `mesh-gateway standalone` until a signal ends the process; throws where it cannot start. */
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
