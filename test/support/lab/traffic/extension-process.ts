import { join } from 'node:path';
import type { RunningExtension, ExtensionBase } from './composed.ts';
import { standaloneProcess } from './standalone-process.ts';
import type { StandaloneProcess } from './standalone-process.ts';

/** The version of the address that Envoys dial: with another one every cluster differs. */
type Version = 'first' | 'second';

/** An extension server as a separate process, which can end and restart while the rest continues. */
export interface ExtensionProcess
  extends RunningExtension, Pick<StandaloneProcess, 'kill' | 'freeze' | 'thaw'> {
  /** The address that Envoys dial for a version. */
  targetOf(version: Version): string;
  /** Starts it, and waits until it is ready. */
  start(version: Version): Promise<void>;
}

/** Starts the first version. */
export async function startExtensionProcess(base: ExtensionBase): Promise<ExtensionProcess> {
  const { port } = base;
  const targets = { first: `127.0.0.1:${port}`, second: `localhost:${port}` } as const;
  const versionWith = (target: string) =>
    standaloneProcess({
      command: 'extension-server',
      resources: base.resources,
      generated: '',
      state: join(base.home, 'extension-state'),
      log: join(base.home, 'extension-server.log'),
      labFolder: base.folder.path,
      dataPath: 'Proxy',
      variables: { GRPC_ADDRESS: targets.first, EXTENSION_SERVER_ADDRESS: target },
      searchPath: process.env['PATH'] ?? '',
    });
  const versions = { first: await versionWith(targets.first), second: await versionWith(targets.second) };
  let current = versions.first;
  const extension = {
    address: targets.first,
    targetOf: (version: Version) => targets[version],
    start: (version: Version) => {
      current = versions[version];
      return current.start();
    },
    kill: () => current.kill(),
    freeze: () => current.freeze(),
    thaw: () => current.thaw(),
    close: () => current.stop(),
  };
  await extension.start('first');
  return extension;
}
