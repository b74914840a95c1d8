import { homedir } from 'node:os';
import { join } from 'node:path';
import { extensionServerIn } from './api/names.ts';
import { trafficKinds } from './traffic/access.ts';
import { extensionIndexes } from './extension/declared.ts';
import {
  clusterSettings,
  dialledAddress,
  extensionSettings,
  folderSettings,
  podSettings,
  telemetrySettings,
} from './process/declared-settings.ts';
import { runUntilSignal } from './process/run.ts';
import { startServing } from './process/serving.ts';
import { helpOn, parseOptional, readSettings } from './process/settings.ts';
import type { Given, Values } from './process/settings.ts';
import { startTelemetry } from './process/telemetry.ts';
import type { ProcessTelemetry } from './process/telemetry.ts';
import { connectKubernetes } from './resources/connect-kubernetes.ts';
import { openDirectory } from './resources/directory.ts';
import type { ReadResources } from './resources/resources.ts';
import { systemClock } from './runtime/clock.ts';
import { watchSource } from './runtime/source.ts';

function allSettings({ environment }: Pick<Given, 'environment'>) {
  const state = environment['XDG_STATE_HOME'] || join(homedir(), '.local', 'state');
  const folders = folderSettings(join(state, 'mesh-gateway-extension-server'));
  return {
    ...clusterSettings,
    resourcesDir: {
      ...folders.resourcesDir,
      help: 'a folder with YAML files, in place of a cluster; nothing is written there',
      parse: parseOptional,
    },
    stateDir: folders.stateDir,
    podNamespace: podSettings.podNamespace,
    extensionServerAddress: dialledAddress,
    ...extensionSettings,
    ...telemetrySettings,
  };
}

type ExtensionServerSettings = Values<ReturnType<typeof allSettings>>;

/** What `mesh-gateway help extension-server` prints. */
export function extensionServerHelp(environment: Given['environment']): string {
  return `mesh-gateway extension-server

Answers the hooks of Envoy Gateway and tells Envoy its endpoints; writes nothing. It reads the cluster
that it is in, the one of KUBECONFIG, or a folder.

${helpOn(allSettings({ environment }))}`;
}

/** Runs `mesh-gateway extension-server` until a signal ends the process; gives what is wrong at the start as an error. */
export async function runExtensionServer(given: Given, version: string): Promise<number> {
  const settings = readSettings(allSettings(given), given);
  const { resourcesDir, extensionServerAddress, podNamespace } = settings;
  const kinds = resourcesDir === undefined ? trafficKinds : [];
  const telemetry = await startTelemetry({ ...settings, version, controllers: [], kinds });
  const { readiness } = telemetry;
  try {
    const { name, read, start, close } = await openSource(settings, given, telemetry);
    watchSource(name, read, telemetry);
    const edsTarget = extensionServerAddress ?? extensionServerIn(podNamespace);
    const more = { edsTarget, read, telemetry, clock: systemClock, random: Math.random };
    const { begun, steps } = startServing({ ...settings, ...more });
    start();
    const last = [
      { name: `close the ${name}`, run: close },
      { name: 'end telemetry', run: () => telemetry.close() },
    ];
    const first = { name: 'become unready', run: () => readiness.stop() };
    const running = { telemetry, begun, steps: [first, ...steps, ...last] };
    await runUntilSignal(running, { signals: process, exit: code => process.exit(code) });
    return 0;
  } catch (error) {
    await telemetry.close();
    throw error;
  }
}

const WRITES_NOTHING = { signal: () => AbortSignal.abort(new Error('an extension server writes nothing')) };

/** Where declarations come from, as far as a reader needs it. */
type Source = {
  readonly name: 'cluster' | 'folder';
  readonly read: ReadResources;
  readonly start: () => void;
  readonly close: () => Promise<void>;
};

async function openSource(
  { resourcesDir, stateDir, kubeconfig }: ExtensionServerSettings,
  { environment }: Given,
  telemetry: ProcessTelemetry,
): Promise<Source> {
  if (resourcesDir !== undefined) return openFolder(resourcesDir, stateDir, telemetry);
  const cluster = await connectKubernetes({
    ...{ kubeconfig, environment, telemetry },
    ...{ kinds: trafficKinds, indexes: extensionIndexes, fence: WRITES_NOTHING },
    ...{ clock: systemClock, random: Math.random, now: () => new Date() },
  });
  return { name: 'cluster', ...cluster };
}

async function openFolder(folder: string, state: string, { log }: ProcessTelemetry): Promise<Source> {
  const directory = await openDirectory({
    folder,
    state,
    indexes: extensionIndexes,
    report: ({ message: why, ...problem }) =>
      log.warn('a declaration is not as it should be', { ...problem, why }),
    reportFailure: error => log.error('something of ours failed', { error }),
  });
  const close = () => directory.close();
  return { name: 'folder', read: directory.read, start: () => directory.start(), close };
}
