import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment, LocatedPart } from './locate.ts';
import type { Need } from './parts.ts';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';

/** Something that a machine lacks, and the line that brings it. */
export type Lack = { readonly what: string; readonly line: string };

/** What the machine lacks for building these parts, all of it at once. */
export function lacksFor(located: readonly LocatedPart[], environment: Environment): readonly Lack[] {
  const needed = [...new Set(located.flatMap(({ part }) => part.needs))];
  const goVersion = newest(located.map(goVersionOf));
  return needed.filter(need => !isMet(need, goVersion, environment)).map(need => lackOf(need, goVersion));
}

function isMet(need: Need, goVersion: string, environment: Environment): boolean {
  const works = (program: string, ...args: readonly string[]) =>
    ask(environment, program, ...args) !== undefined;
  switch (need) {
    case 'go':
      return hasGo(goVersion, environment);
    case 'c-compiler':
      return works('gcc', '--version');
    case 'pkg-config':
      return works('pkg-config', '--version');
    case 'libseccomp':
      return works('pkg-config', '--exists', 'libseccomp');
    case 'pip':
      return works('python3', '-m', 'pip', '--version');
  }
}

/** Go comes from its own site: that of Debian is too old on most releases. */
function lackOf(need: Need, goVersion: string): Lack {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const archive = `https://go.dev/dl/go${goVersion}.linux-${arch}.tar.gz`;
  switch (need) {
    case 'go':
      return {
        what: `Go ${goVersion} or newer`,
        line: `curl -fsSL ${archive} | tar -xzC /usr/local && export PATH=/usr/local/go/bin:$PATH`,
      };
    case 'c-compiler':
      return { what: 'a C compiler', line: 'apt-get install -y gcc libc6-dev' };
    case 'pkg-config':
      return { what: 'pkg-config', line: 'apt-get install -y pkg-config' };
    case 'libseccomp':
      return { what: 'libseccomp with its headers', line: 'apt-get install -y libseccomp-dev' };
    case 'pip':
      return { what: 'Python 3 with pip', line: 'apt-get install -y python3-pip' };
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

/** A Go that may fetch a newer one by itself will do. */
function hasGo(atLeast: string, environment: Environment): boolean {
  const [version, toolchain] = ask(environment, 'go', 'env', 'GOVERSION', 'GOTOOLCHAIN') ?? [];
  if (version === undefined) return false;
  return compare(version.replace(/^go/, ''), atLeast) >= 0 || toolchain?.startsWith('auto') === true;
}

/** What a program answers, line by line; nothing where there is no such program, or where it refuses. */
export function ask(
  environment: Readonly<Record<string, string | undefined>>,
  program: string,
  ...args: readonly string[]
): readonly string[] | undefined {
  // Away from any module, whose go.mod would decide which Go answers.
  const { status, stdout } = spawnSync(program, args, { cwd: tmpdir(), env: environment, encoding: 'utf8' });
  return status === 0 ? stdout.trimEnd().split('\n') : undefined;
}
