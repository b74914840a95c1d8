import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment, LocatedPart } from '../locate.ts';
import type { Need } from '../parts.ts';

/** Something that a machine lacks, and the line that brings it. */
export type Lack = { readonly what: string; readonly line: string };

/** What the machine lacks for building these parts, all of it at once. */
export function lacksFor(located: readonly LocatedPart[], environment: Environment): readonly Lack[] {
  const needed = new Set(located.flatMap(({ part }) => part.needs));
  const goVersion = newest(located.map(goVersionOf));
  return [...needed].flatMap(need => {
    const works = (command: string, ...args: readonly string[]) =>
      spawnSync(command, args, { env: environment }).status === 0;
    return lackOf(need, { goVersion, works, hasGo: hasGo(goVersion, environment) });
  });
}

type Machine = {
  readonly goVersion: string;
  readonly hasGo: boolean;
  readonly works: (command: string, ...args: readonly string[]) => boolean;
};

/** Debian's own Go is too old on most releases, so Go comes from its own site. */
function lackOf(need: Need, { goVersion, hasGo, works }: Machine): readonly Lack[] {
  const unless = (isThere: boolean, what: string, line: string) => (isThere ? [] : [{ what, line }]);
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  switch (need) {
    case 'go':
      return unless(
        hasGo,
        `Go ${goVersion} or newer`,
        `curl -fsSL https://go.dev/dl/go${goVersion}.linux-${arch}.tar.gz | tar -xzC /usr/local && export PATH=/usr/local/go/bin:$PATH`,
      );
    case 'c-compiler':
      return unless(works('gcc', '--version'), 'a C compiler', 'apt-get install -y gcc libc6-dev');
    case 'pkg-config':
      return unless(works('pkg-config', '--version'), 'pkg-config', 'apt-get install -y pkg-config');
    case 'libseccomp':
      return unless(
        works('pkg-config', '--exists', 'libseccomp'),
        'libseccomp with its headers',
        'apt-get install -y libseccomp-dev',
      );
    case 'pip':
      return unless(
        works('python3', '-m', 'pip', '--version'),
        'Python 3 with pip',
        'apt-get install -y python3-pip',
      );
  }
}

/** The version of Go that a part's module asks for. */
function goVersionOf({ part, source }: LocatedPart): string {
  if (part.from !== 'go') return '';
  return /^go (\S+)$/m.exec(readFileSync(join(source, 'go.mod'), 'utf8'))?.[1] ?? '';
}

function newest(versions: readonly string[]): string {
  return versions.reduce((best, version) => (compare(version, best) > 0 ? version : best), '');
}

function compare(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

function hasGo(atLeast: string, environment: Environment): boolean {
  const { status, stdout } = spawnSync('go', ['env', 'GOVERSION', 'GOTOOLCHAIN'], {
    env: environment,
    encoding: 'utf8',
  });
  if (status !== 0) return false;
  const [version = '', toolchain = ''] = stdout.split('\n');
  return compare(version.replace(/^go/, ''), atLeast) >= 0 || toolchain.startsWith('auto');
}
