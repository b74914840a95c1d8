import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GATEWAY_NAME } from '../../../../lab/gateway/objects.ts';
import type { KubernetesObject } from '../../../../lab/gateway/objects.ts';
import type { Gateway, Lab } from '../../../../lab/state.ts';
import { gatewayOf, ownFolder, startTestLab } from '../lab.ts';
import type { OwnFolder } from '../lab.ts';
import { gatewayWith, portsFor } from './many-listeners.ts';
import { standaloneProcess } from './standalone-process.ts';
import type { StandaloneOptions, StandaloneProcess } from './standalone-process.ts';

/** The options of a system. */
export type SystemOptions = {
  readonly dataPath?: 'Proxy' | 'Direct';
  /** Additional listeners for TCPRoutes, which need one each. */
  readonly tcpListeners?: readonly string[];
  /** Environment variables of the tested process. */
  readonly variables?: Readonly<Record<string, string>>;
};

/**
 * The whole system, as users have it who edit YAML in a folder: standalone, Envoy Gateway, Envoy, a tailnet,
 * services.
 */
export interface System<Standalone = StandaloneProcess> {
  readonly lab: Lab;
  readonly gateway: Gateway;
  /** The address of each listener, as host:port. */
  readonly listeners: Readonly<Record<string, string>>;
  readonly standalone: Standalone;
  /** The folder that a user edits. */
  readonly resources: string;
  /** The folder with the records of its processes. */
  readonly folder: OwnFolder['folder'];
  /** Replaces the objects of a name; does not wait. */
  put(name: string, objects: readonly KubernetesObject[]): void;
  /** Removes the objects of a name. */
  remove(name: string): void;
  end(): Promise<void>;
}

/** Starts a system whose Gateway has no routes yet. */
export function startSystem(options: SystemOptions = {}): Promise<System> {
  return startSystemWith(standaloneProcess, options);
}

/** A standalone that a test starts; `end` ends what does not end with the lab. */
type StartedStandalone = Pick<StandaloneProcess, 'address' | 'start'> & {
  readonly end?: () => Promise<void>;
};

/** Starts a system with a standalone of the test's choice. */
export async function startSystemWith<Standalone extends StartedStandalone>(
  create: (options: StandaloneOptions) => Promise<Standalone>,
  options: SystemOptions = {},
): Promise<System<Standalone>> {
  const home = mkdtempSync(join(tmpdir(), 'mesh-system-'));
  const folder = (name: string) => {
    const path = join(home, name);
    mkdirSync(path, { mode: 0o700 });
    return path;
  };
  const [resources, generated, state] = [folder('resources'), folder('generated'), folder('state')];
  const more = { tcp: options.tcpListeners ?? [] };
  const ports = await portsFor(more);
  const files = filesIn(resources);
  files.put('gateway', gatewayWith(ports, more));
  const own = ownFolder();
  let created: StartedStandalone | undefined;
  const end = async () => {
    await created?.end?.();
    await own.end();
    rmSync(home, { recursive: true, force: true });
  };
  try {
    const standalone = await create({
      resources,
      generated,
      state,
      log: join(home, 'standalone.log'),
      labFolder: own.folder.path,
      dataPath: options.dataPath ?? 'Proxy',
      variables: options.variables ?? {},
      searchPath: process.env['PATH'] ?? '',
    });
    created = standalone;
    await standalone.start();
    const objects = { ...GATEWAY_NAME, folder: generated, listeners: ports };
    const { lab } = await startTestLab({ gateway: { extension: standalone.address, objects } }, own);
    const listeners = Object.fromEntries(
      Object.entries(ports).map(([name, port]) => [name, `127.0.0.1:${port}`]),
    );
    return {
      lab,
      gateway: gatewayOf(lab),
      listeners,
      standalone,
      resources,
      folder: own.folder,
      ...files,
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

function filesIn(resources: string): Pick<System, 'put' | 'remove'> {
  const fileOf = (name: string) => join(resources, `${name}.yaml`);
  return {
    put: (name, objects) => {
      const unfinished = join(resources, `.${name}`);
      writeFileSync(unfinished, objects.map(object => `${JSON.stringify(object, null, 2)}\n`).join('---\n'));
      renameSync(unfinished, fileOf(name));
    },
    remove: name => rmSync(fileOf(name)),
  };
}
