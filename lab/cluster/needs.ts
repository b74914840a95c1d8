import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** What a cluster needs from the machine beside its parts. */
export type Machine = { readonly isRoot: boolean; readonly searchPath: string };

/** Programs that a cluster uses, and the Debian package of each. */
const PROGRAMS = {
  bash: 'bash',
  ip: 'iproute2',
  iptables: 'iptables',
  ldd: 'libc-bin',
  mount: 'mount',
  nsenter: 'util-linux',
  openssl: 'openssl',
  tar: 'tar',
  unshare: 'util-linux',
};

const CNI_FOLDERS = ['/usr/lib/cni', '/opt/cni/bin'];
const CNI_PLUGINS = ['bridge', 'host-local', 'loopback', 'portmap'];

/** The folder of the CNI plugins. */
export function cniFolder(): string | undefined {
  return CNI_FOLDERS.find(folder => CNI_PLUGINS.every(name => existsSync(join(folder, name))));
}

/** What is missing for a command, with the line that installs it; undefined if nothing is. */
export function missingOf({ isRoot, searchPath }: Machine, command: string): string | undefined {
  if (!isRoot) return `a cluster needs root: sudo npm run cluster -- ${command}`;
  const missing = Object.entries(PROGRAMS).filter(([program]) => !isOnPath(program, searchPath));
  const hasPlugins = cniFolder() !== undefined;
  if (missing.length === 0 && hasPlugins) return undefined;
  const names = [...missing.map(([program]) => program), ...(hasPlugins ? [] : ['CNI plugins'])];
  const packages = [
    ...missing.map(([, debian]) => debian),
    ...(hasPlugins ? [] : ['containernetworking-plugins']),
  ];
  return `${names.join(', ')} missing: apt-get install -y ${[...new Set(packages)].join(' ')}`;
}

function isOnPath(program: string, searchPath: string): boolean {
  return searchPath.split(delimiter).some(folder => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
