import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { locateParts, pathOf } from '../../../lab/parts/locate.ts';
import { processesOf } from '../../../lab/process/process-table.ts';
import { until } from '../../../lab/process/wait.ts';
import { commandLine, runCommand, startCommand } from '../../support/lab/command-line.ts';
import { ownFolder } from '../../support/lab/lab.ts';
import type { OwnFolder } from '../../support/lab/lab.ts';

let own: OwnFolder;
beforeAll(() => {
  own = ownFolder();
});
afterAll(async () => {
  await own.end();
});

const inFolder = (...args: readonly string[]) => commandLine(...args, '--folder', own.folder.path);
const lab = (...args: readonly string[]) => runCommand(inFolder(...args));

/** The variables in the output. */
function variablesIn(output: string): Readonly<Record<string, string>> {
  const lines = [...output.matchAll(/^([A-Z_\d]+)=(.*)$/gm)];
  return Object.fromEntries(lines.map(([, name = '', value = '']) => [name, value]));
}

/** A cache in which some programs are replaced by scripts. */
function partsWith(scripts: Readonly<Record<string, string>>): string {
  const cache = mkdtempSync(join(tmpdir(), 'mesh-lab-parts-'));
  onTestFinished(() => rmSync(cache, { recursive: true }));
  const real = locateParts('lab', process.env);
  for (const [index, located] of locateParts('lab', { ...process.env, XDG_CACHE_HOME: cache }).entries()) {
    for (const { name } of located.binaries) {
      const path = pathOf(located, name);
      mkdirSync(dirname(path), { recursive: true });
      const script = scripts[name];
      const realPath = pathOf(real[index] ?? located, name);
      if (script === undefined) symlinkSync(realPath, path);
      else writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    }
  }
  return cache;
}

describe('the command line of the lab', () => {
  it('reports that nothing is up, and how to start it', async () => {
    for (const command of ['status', 'env']) {
      const { code, output } = await lab(command);
      expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining('lab -- up') as string });
    }
  });

  it('starts a lab once, prints the addresses of its parts, and ends it', async () => {
    const first = await lab('up');
    expect(first.code).toBe(0);
    const variables = variablesIn(first.output);
    expect(Object.keys(variables)).toEqual(
      expect.arrayContaining([
        'MESH_PROXY',
        'WEB_2_UDP_PORT',
        'GATEWAY_HTTP',
        'GATEWAY_RESOURCES',
        'ENVOY_ADMIN',
      ]),
    );
    expect(variablesIn((await lab('up')).output)).toEqual(variables);
    expect(variablesIn((await lab('env')).output)).toEqual(variables);
    const status = await lab('status');
    expect(status).toMatchObject({ code: 0 });
    expect(status.output.match(/ runs \(\d+\)/g)).toHaveLength(8);
    expect(await lab('down')).toEqual({ code: 0, output: '8 processes ended\n' });
    expect(await lab('down')).toEqual({ code: 0, output: '0 processes ended\n' });
  });

  it('reports that it is starting while it is, and has a second start wait for the first', async () => {
    const first = startCommand(inFolder('up', '--only', 'tailnet'));
    const firstEnded = once(first, 'exit');
    const isBegun = () => Promise.resolve(own.folder.processes().length > 0);
    await until('the first process', isBegun, { everyMs: 5 });
    first.kill('SIGSTOP');
    const message = `the lab is starting (process ${first.pid})\n`;
    const [status, env] = await Promise.all([lab('status'), lab('env')]);
    expect(status).toEqual({ code: 1, output: expect.stringMatching(/^tailnet +runs /) as string });
    expect(status.output).toContain(message);
    expect(env).toEqual({ code: 1, output: message });

    const second = startCommand(inFolder('up', '--only', 'tailnet'));
    const secondEnded = once(second, 'exit');
    const [output] = (await once(second.stderr ?? second, 'data')) as [Buffer];
    expect(output.toString()).toBe(`  waiting for process ${first.pid}, which uses the lab\n`);
    first.kill('SIGCONT');
    expect(await Promise.all([firstEnded, secondEnded])).toEqual([
      [0, null],
      [0, null],
    ]);
    expect((await lab('status')).output).toContain('the lab is up\n');
    expect(processesOf(own.folder.path)).toHaveLength(6);
    await lab('down');
  });

  it('never starts and ends a lab at the same time', async () => {
    const runs = await Promise.all([
      lab('up', '--only', 'tailnet'),
      lab('down'),
      lab('up', '--only', 'tailnet'),
    ]);
    expect(runs.map(({ code }) => code)).toEqual([0, 0, 0]);
    const isWhole = own.folder.running() !== undefined;
    expect(processesOf(own.folder.path)).toHaveLength(isWhole ? 6 : 0);
    await lab('down');
    expect(processesOf(own.folder.path)).toEqual([]);
    expect(existsSync(`${own.folder.path}.lock`)).toBe(false);
  });

  it.each([
    { args: ['sideways'], message: 'COMMAND' },
    { args: ['up', '--only', 'gateway'], message: 'unknown part "gateway"' },
    { args: ['up', '--extension', 'nowhere'], message: 'give HOST:PORT' },
    { args: ['up', '--fast'], message: '--fast' },
  ])('refuses $args', async ({ args, message }) => {
    const { code, output } = await lab(...args);
    expect({ code, output }).toEqual({ code: 2, output: expect.stringContaining(message) as string });
  });
});

describe('a start that fails', () => {
  it('ends with its error at once, though a part of it would wait on, and leaves nothing', async () => {
    const cache = partsWith({ backends: 'exit 7', tailscale: 'exit 1' });
    const failed = await runCommand([
      'env',
      `XDG_CACHE_HOME=${cache}`,
      ...inFolder('up', '--only', 'tailnet'),
    ]);
    expect(failed.code).toBe(2);
    expect(failed.output).toMatch(/^lab: web-\d-services /m);
    expect(existsSync(own.folder.path)).toBe(false);
    expect(processesOf(own.folder.path)).toEqual([]);
  });
});
