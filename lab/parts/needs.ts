import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment, LocatedPart } from './locate.ts';
import type { Need } from './parts.ts';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';

/** A missing tool, and the line that installs it. */
export type MissingTool = { readonly what: string; readonly line: string };

/** Every tool that is missing for building these parts. */
export function missingToolsFor(
  located: readonly LocatedPart[],
  environment: Environment,
): readonly MissingTool[] {
  const needed = [...new Set(located.flatMap(({ part }) => part.needs))];
  const goVersion = newest(located.map(goVersionOf));
  return needed.filter(need => !isMet(need, goVersion, environment)).map(need => missingOf(need, goVersion));
}

function isMet(need: Need, goVersion: string, environment: Environment): boolean {
  const works = (program: string, ...args: readonly string[]) =>
    outputOf(environment, program, ...args) !== undefined;
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

/** Go is downloaded from go.dev: that of most Debian releases is too old. */
function missingOf(need: Need, goVersion: string): MissingTool {
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

/** The version of Go that a part's module requires. */
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

/** A Go that may download a newer toolchain is accepted. */
function hasGo(atLeast: string, environment: Environment): boolean {
  const [version, toolchain] = outputOf(environment, 'go', 'env', 'GOVERSION', 'GOTOOLCHAIN') ?? [];
  if (version === undefined) return false;
  return compare(version.replace(/^go/, ''), atLeast) >= 0 || toolchain?.startsWith('auto') === true;
}

/** The lines that a program prints; undefined if it is missing or fails. */
export function outputOf(
  environment: Readonly<Record<string, string | undefined>>,
  program: string,
  ...args: readonly string[]
): readonly string[] | undefined {
  // Outside any module, whose go.mod would select the toolchain.
  const { status, stdout } = spawnSync(program, args, { cwd: tmpdir(), env: environment, encoding: 'utf8' });
  return status === 0 ? stdout.trimEnd().split('\n') : undefined;
}
