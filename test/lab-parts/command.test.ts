import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { emptyFolder } from './sample.ts';

/** The environment of a program that stands for `npm run shop`. */
const PREAMBLE = `
  import { writeFileSync } from 'node:fs';
  import { runCommand } from './lab/commands/up-down.ts';
  import { runMain } from './lab/commands/run-main.ts';
  import { startTogether } from './lab/process/start-together.ts';
  import { StateFolder } from './lab/process/state-folder.ts';
  const folder = new StateFolder(process.argv[2]);
  const spoil = () => writeFileSync(process.argv[2] + '/mesh-gateway-state.json', 'no state');
  const interrupt = () => process.kill(process.pid, 'SIGINT');
  const forever = new Promise(() => setInterval(() => undefined, 60_000));
  const starting = work => async stop => {
    folder.create();
    return startTogether(folder, stop, async signal => work(signal));
  };
  const run = (command, start) =>
    runMain('shop', () => runCommand({ name: 'shop', usage: 'COMMAND', folder, start, variables: text => [text] }, command));
`;

type Ended = { readonly code: unknown; readonly out: string; readonly err: string };

/** Runs such a program with a folder that does not exist. */
function runShop(program: string, folder = join(emptyFolder(), 'shop')): Promise<Ended> {
  const args = ['--import', 'tsx', '--input-type=module', '-e', `${PREAMBLE}\n${program}`, '-', folder];
  return new Promise(resolve => {
    execFile(process.execPath, args, (error, out, err) => resolve({ code: error?.code ?? 0, out, err }));
  });
}

it('prints the addresses, and exits though a timer is pending', async () => {
  const { code, out, err } = await runShop(`void forever; run('up', starting(() => 'TILL=1'))`);
  expect({ code, out }).toEqual({ code: 0, out: 'TILL=1\n' });
  expect(err).toMatch(/^ +\d+\.\d s {2}the shop is up\n$/);
});

it('reports after a signal that everything has ended', async () => {
  const folder = join(emptyFolder(), 'shop');
  const program = `run('up', starting(() => (interrupt(), forever)))`;
  expect(await runShop(program, folder)).toEqual({
    code: 130,
    out: '',
    err: 'shop: stopped, and everything has ended\n',
  });
  expect(existsSync(folder)).toBe(false);
});

it('reports after a signal what could not be removed', async () => {
  const { code, err } = await runShop(
    `run('up', starting(stop => (stop.addEventListener('abort', spoil), interrupt(), forever)))`,
  );
  expect(code).toBe(2);
  expect(err).toMatch(/^shop: stopped\nand not all could be ended: .*JSON/);
});

it("reports a failure other than the signal's reason, also after a signal", async () => {
  const failing = `async stop => { interrupt(); await new Promise(setImmediate); throw new Error('it is broken') }`;
  expect(await runShop(`run('up', ${failing})`)).toEqual({ code: 2, out: '', err: 'shop: it is broken\n' });
});

it('reports that ending has failed', async () => {
  const { code, out, err } = await runShop(`folder.create(); spoil(); setImmediate(interrupt); run('down')`);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toMatch(/^shop: .*JSON/);
});

it('leaves no lock behind', async () => {
  const folder = join(emptyFolder(), 'shop');
  await runShop(`run('up', starting(() => 'TILL=1'))`, folder);
  expect(existsSync(folder)).toBe(true);
  expect(await runShop(`run('down')`, folder)).toEqual({ code: 0, out: '0 processes ended\n', err: '' });
  expect([existsSync(folder), existsSync(`${folder}.lock`)]).toEqual([false, false]);
});
