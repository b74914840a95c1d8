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
import type { StandaloneProcess } from './standalone-process.ts';

/** What a system is to be like. */
export type SystemOptions = {
  readonly dataPath?: 'Proxy' | 'Direct';
  /** Listeners for TCPRoutes, of which each takes one, beside the one that there is. */
  readonly tcpListeners?: readonly string[];
  /** Variables of the environment for the process that is tested. */
  readonly variables?: Readonly<Record<string, string>>;
};

/** All of it, as a user has it who edits YAML in a folder: standalone, Envoy Gateway, Envoy, a tailnet, services. */
export interface System {
  readonly lab: Lab;
  readonly gateway: Gateway;
  /** Where each listener is reached, as host:port. */
  readonly listeners: Readonly<Record<string, string>>;
  readonly standalone: StandaloneProcess;
  /** The folder that a user edits. */
  readonly resources: string;
  /** Where its processes are noted. */
  readonly folder: OwnFolder['folder'];
  /** Writes objects under a name, in place of those that it stood for before. Nothing is awaited. */
  put(name: string, objects: readonly KubernetesObject[]): void;
  /** Takes the objects of a name away. */
  remove(name: string): void;
  end(): Promise<void>;
}

/** Starts a system whose Gateway has no routes yet. */
export async function startSystem(options: SystemOptions = {}): Promise<System> {
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
  const end = async () => {
    await own.end();
    rmSync(home, { recursive: true, force: true });
  };
  try {
    const standalone = await standaloneProcess({
      resources,
      generated,
      state,
      log: join(home, 'standalone.log'),
      labFolder: own.folder.path,
      dataPath: options.dataPath ?? 'Proxy',
      variables: options.variables ?? {},
      searchPath: process.env['PATH'] ?? '',
    });
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
