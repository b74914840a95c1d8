import { extensionServerIn } from './api/names.ts';
import { servingKinds } from './traffic/access.ts';
import { trafficIndexes } from './store/traffic/resources.ts';
import {
  clusterSettings,
  dialledAddress,
  extensionSettings,
  podSettings,
  resourcesDir,
  telemetrySettings,
} from './process/declared-settings.ts';
import { runUntilSignal } from './runtime/shutdown.ts';
import { addressSettings, guardOf } from './process/addresses.ts';
import { startServing } from './process/serving.ts';
import { helpOn, parseOptional, readSettings } from './process/settings.ts';
import type { Given, Values } from './process/settings.ts';
import { startTelemetry } from './process/telemetry.ts';
import type { ProcessTelemetry } from './process/telemetry.ts';
import { connectKubernetes } from './kubernetes/connect.ts';
import { logTo } from './files/problems.ts';
import { openDirectory } from './files/directory.ts';
import type { Directory } from './files/directory.ts';
import type { ReadResources } from './store/resources.ts';
import { Tracking } from './store/tracking.ts';
import { trafficValues } from './store/traffic/values.ts';
import { clusterEncoding } from './extension/envoy-cluster/encoding-version.ts';
import { systemClock } from './runtime/clock.ts';
import { registerSource } from './runtime/observer.ts';

const SETTINGS = {
  ...clusterSettings,
  resourcesDir: {
    ...resourcesDir,
    help: 'folder with YAML files to read instead of a cluster',
    parse: parseOptional,
  },
  podNamespace: podSettings.podNamespace,
  extensionServerAddress: dialledAddress,
  ...extensionSettings,
  ...addressSettings,
  ...telemetrySettings,
};

type ExtensionServerSettings = Values<typeof SETTINGS>;

/** What `mesh-gateway help extension-server` prints. */
export function extensionServerHelp(): string {
  return `mesh-gateway extension-server

Serves Envoy Gateway's hooks and Envoy's endpoint discovery (EDS). It only
reads: from the cluster in which it runs, from the cluster of KUBECONFIG, or
from a folder.

${helpOn(SETTINGS)}`;
}

/** Runs `mesh-gateway extension-server` until a signal ends the process; throws where it cannot start. */
export async function runExtensionServer(given: Given, version: string): Promise<number> {
  const settings = readSettings(SETTINGS, given);
  const { extensionServerAddress, podNamespace } = settings;
  const kinds = settings.resourcesDir === undefined ? servingKinds : [];
  const telemetry = await startTelemetry({ ...settings, version, controllers: [], kinds });
  const { readiness } = telemetry;
  try {
    const { name, read, start, close } = await openSource(settings, given, telemetry);
    registerSource(name, read, telemetry);
    const edsTarget = extensionServerAddress ?? extensionServerIn(podNamespace);
    const trustNamespace = name === 'cluster' ? podNamespace : undefined;
    const guard = guardOf(settings);
    const tracking = new Tracking(read);
    const traffic = trafficValues(tracking, {
      ...settings,
      trustNamespace,
      guard,
      clusterEncoding: clusterEncoding(edsTarget),
      // A folder has no operator that publishes what MeshGateways decide.
      settingsFrom: name === 'cluster' ? 'MeshBinding' : 'MeshGateway',
    });
    const more = { edsTarget, tracking, traffic, telemetry, clock: systemClock };
    const { started, steps } = startServing({ ...settings, ...more });
    start();
    const last = [
      { name: `close the ${name}`, run: close },
      { name: 'close telemetry', run: () => telemetry.close() },
    ];
    const first = { name: 'become unready', run: () => readiness.stop() };
    const running = { telemetry, started, steps: [first, ...steps, ...last] };
    await runUntilSignal(running, { signals: process, exit: code => process.exit(code) });
    return 0;
  } catch (error) {
    await telemetry.close();
    throw error;
  }
}

const WRITES_NOTHING = { signal: () => AbortSignal.abort(new Error('the extension server is read-only')) };

/** Where resources are read from. */
type Source = {
  readonly name: 'cluster' | 'folder';
  readonly read: ReadResources;
  readonly start: () => void;
  readonly close: () => Promise<void>;
};

async function openSource(
  { resourcesDir: folder, kubeconfig, podNamespace: namespace }: ExtensionServerSettings,
  { environment }: Given,
  telemetry: ProcessTelemetry,
): Promise<Source> {
  if (folder !== undefined) return { name: 'folder', ...openFolder(folder, telemetry) };
  const cluster = await connectKubernetes({
    kubeconfig,
    environment,
    telemetry,
    kinds: servingKinds,
    namespace,
    indexes: trafficIndexes,
    fence: WRITES_NOTHING,
    clock: systemClock,
    random: Math.random,
    now: () => new Date(),
  });
  return { name: 'cluster', ...cluster };
}

function openFolder(folder: string, { log }: ProcessTelemetry): Directory {
  return openDirectory({
    folder,
    indexes: trafficIndexes,
    report: logTo(log),
    reportFailure: error => log.error('unexpected error in the folder', { error }),
  });
}
