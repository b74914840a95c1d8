import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from 'vitest';
import { locateBinaries } from '../../lab/parts/locate.ts';
import { binariesOf, partsOf } from '../../lab/parts/parts.ts';
import { fakeMachine, installFakeGo, installFakeTools, writeProgram } from '../support/lab/fake-tools.ts';
import { emptyFolder, filesBelow, textOnceWritten, untilDead } from './sample.ts';

/** How a run of `npm run parts` ended and what it wrote. */
type Run = { readonly status: number | null; readonly out: string; readonly err: string };

let folder = '';

const machine = () => fakeMachine(folder);

function start(args: readonly string[]) {
  const loader = import.meta.resolve('tsx');
  const child = spawn(process.execPath, ['--import', loader, 'lab/commands/parts.ts', ...args], {
    env: machine(),
  });
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  const run = async (): Promise<Run> => {
    const [out, err, status] = await Promise.all([readAll(child.stdout), readAll(child.stderr), ended]);
    return { status, out, err };
  };
  return { child, run: run() };
}

const runParts = (...args: readonly string[]) => start(args).run;

const installGo = (build: string, version?: string) => installFakeGo(folder, build, version);

beforeEach(() => {
  folder = emptyFolder();
  installFakeTools(folder);
});

const lab = partsOf('lab');
const LAB_PROGRAMS = lab
  .filter(({ from }) => from === 'go')
  .flatMap(part => binariesOf(part, 'lab'))
  .filter(({ copiedFrom }) => copiedFrom === undefined).length;

const buildsSoFar = () => readFileSync(join(folder, 'builds'), 'utf8').trim().split('\n').length;

describe('npm run parts -- --only lab', () => {
  it('builds what the lab needs, and finds it again', async () => {
    installGo('');
    const first = await runParts('--only', 'lab');
    expect(first).toMatchObject({ status: 0, err: '' });
    expect(first.out).toMatch(/tailscale: containerboot \(3 of 3\) built in \d+ s\n/);
    expect(first.out).toContain(`${lab.length} of ${lab.length} parts are built in ${folder}/cache`);
    const second = await runParts('--only', 'lab');
    expect(second.out).toBe(
      `${lab.length} of ${lab.length} parts are built in ${folder}/cache/mesh-gateway/parts\n`,
    );
    expect(buildsSoFar()).toBe(LAB_PROGRAMS);

    const binaryPath = locateBinaries(machine());
    expect(readFileSync(binaryPath('envoy'), 'utf8')).toBe('program\n');
    expect(readFileSync(binaryPath('tailscaled'), 'utf8')).toBe('program\n');
    expect(() => binaryPath('kubelet')).toThrow('kubelet is not built yet: run npm run parts');
  });

  it('builds nothing twice when it runs twice at once', async () => {
    installGo('sleep 0.3');
    const runs = await Promise.all([runParts('--only', 'lab'), runParts('--only', 'lab')]);
    expect(runs.map(({ status }) => status)).toEqual([0, 0]);
    expect(buildsSoFar()).toBe(LAB_PROGRAMS);
    expect(runs.map(({ out }) => out).join('')).toMatch(/waiting for another build \(process \d+\) to end\n/);
  });

  it('ends what it started when interrupted', async () => {
    installGo(`sleep 60 & echo $! > ${folder}/pid; wait`);
    const { child, run } = start(['--only', 'lab']);
    const pid = Number(await textOnceWritten(join(folder, 'pid')));
    child.kill('SIGINT');
    const { status, out } = await run;
    expect(status).toBe(130);
    expect(out).toMatch(/tailscale: tailscaled \(1 of 3\) stopped after \d+ s\n/);
    await untilDead(pid);
  });

  it('continues after it was killed', async () => {
    installGo(`[ -e ${folder}/pid ] || { sleep 3 & echo $! > ${folder}/pid; wait; }`);
    const { child, run } = start(['--only', 'lab']);
    await textOnceWritten(join(folder, 'pid'));
    child.kill('SIGKILL');
    expect((await run).status).toBe(null);
    expect(await runParts('--only', 'lab')).toMatchObject({ status: 0, err: '' });
    const files = filesBelow(join(folder, 'cache/mesh-gateway/parts'));
    expect(files.filter(name => name.includes('work-'))).toEqual([]);
  });

  it('fails when a part fails, and names its log', async () => {
    installGo('case "$*" in *envoy-gateway*) echo cannot find it; exit 1;; esac');
    const { status, out } = await runParts('--only', 'lab');
    expect(status).toBe(1);
    expect(out).toMatch(
      /FAILED after \d+ s: go ended with status 1\n {4}cannot find it\n {2}log: (\S+build.log)\n/,
    );
    const log = /\n {2}log: (\S+)/.exec(out)?.[1] ?? '';
    expect(readFileSync(log, 'utf8')).toBe('cannot find it\n');
    expect(out).toContain(`${lab.length - 1} of ${lab.length} parts are built`);
  });
});

describe('npm run parts', () => {
  it('lists everything that is missing, each with the line that installs it', async () => {
    writeProgram(join(folder, 'bin'), 'python3', 'echo no module named pip >&2; exit 1');
    const { status, out, err } = await runParts();
    expect({ status, out }).toEqual({ status: 2, out: '' });
    expect(err.trim().split('\n')).toEqual([
      expect.stringMatching(
        /^Go 1\.\d+\.\d+ or newer is missing: curl .*go1\.\d+\.\d+\.linux-.* \| tar -xzC \S+ &&/,
      ),
      'Python 3 with pip is missing: apt-get install -y python3-pip',
      'a C compiler is missing: apt-get install -y gcc libc6-dev',
      'pkg-config is missing: apt-get install -y pkg-config',
      'libseccomp with its headers is missing: apt-get install -y libseccomp-dev',
    ]);
  });

  it('refuses a Go that is too old', async () => {
    installGo('', 'go1.9.7');
    const { status, err } = await runParts('--only', 'lab');
    expect(status).toBe(2);
    expect(err).toMatch(/^Go 1\.\d+\.\d+ or newer is missing: /);
    expect(() => locateBinaries(machine())('tailscaled')).toThrow('run npm run parts -- --only lab');
  });

  it('lists what is built and where', async () => {
    installGo('');
    const { status, out } = await runParts('--list');
    expect(status).toBe(0);
    expect(out).toMatch(
      /^tailscale \d+\.\d+\.\d+ +missing \S+cache\/mesh-gateway\/parts\/tailscale-[0-9a-f]{16}\n/,
    );
    expect(out).toMatch(/^kubernetes /m);
  });

  it('runs the Go tests of our own program with the flags of its build, beside the programs of the vendor', async () => {
    installGo('');
    await runParts('--only', 'quickstart');
    installGo(`[ "$1" = test ] && { echo "$PWD $* CGO=$CGO_ENABLED $TAILSCALE_BINARIES"; exit $FAILS; }`);
    const { status, out } = await runParts('--test', 'backends');
    expect(status).toBe(0);
    expect(out).toMatch(
      /\/lab\/parts\/backends test -count=1 -trimpath -buildvcs=false \.\/\.\.\. CGO=0 \S+\/tailscale-\w+\/bin\n$/,
    );
    installGo('exit 3');
    expect((await runParts('--test', 'backends')).status).toBe(1);
    expect((await runParts('--test', 'etcd')).status).toBe(2);
  });

  it('refuses an unknown set', async () => {
    const { status, err } = await runParts('--only', 'moon');
    expect(status).toBe(2);
    expect(err).toContain('unknown set "moon"');
  });
});
