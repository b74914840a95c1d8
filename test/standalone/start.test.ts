import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { makeFolders } from '../support/files/folder.ts';
import { PROJECT, typescript } from '../support/lab/command-line.ts';
import { fakeMachine, installFakeGo, installFakeTools } from '../support/lab/fake-tools.ts';

/** The folders of `npm start` on a machine with Python and nothing else. */
function freshMachine() {
  const { root, folder, state } = makeFolders();
  cpSync(join(PROJECT, 'examples', 'quickstart'), folder, { recursive: true });
  installFakeTools(root);
  return { root, folder, state };
}

type Machine = ReturnType<typeof freshMachine>;

function start({ root, folder, state }: Machine, ...options: readonly string[]) {
  const args = ['--folder', folder, '--state', state, ...options];
  const [program = '', ...rest] = typescript('lab/commands/start.ts', ...args);
  const env = { ...fakeMachine(root), HOME: root };
  const child = spawn(program, rest, { cwd: PROJECT, env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return {
    output: () => output,
    printed: (text: string | RegExp) => eventually(() => expect(output).toMatch(text)),
    end: async () => {
      const closed = once(child, 'close');
      child.kill('SIGINT');
      expect(await closed).toEqual([0, null]);
      expect(output).toContain('everything has ended');
    },
  };
}

function edit({ folder }: Machine, change: (text: string) => string): void {
  const web = join(folder, 'web.yaml');
  writeFileSync(web, change(readFileSync(web, 'utf8')));
}

describe('npm start', () => {
  it('ends with an error where the folder does not exist', async () => {
    const { root, state } = freshMachine();
    const missing = join(root, 'missing');
    const [program = '', ...args] = typescript(
      'lab/commands/start.ts',
      '--folder',
      missing,
      '--state',
      state,
    );
    const child = spawn(program, args, { cwd: PROJECT, env: { ...fakeMachine(root), HOME: root } });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [error, ended] = await Promise.all([text(child.stderr), once(child, 'close')]);
    expect(error).toBe(`start: --folder ${missing}: there is no such folder\n`);
    expect(ended).toEqual([2, null]);
  });

  it('without a data plane prints what becomes of each route, and follows edits until it is ended', async () => {
    const machine = freshMachine();
    installFakeGo(machine.root, '');
    const running = start(machine, '--no-data-plane');
    await running.printed('Without a data plane no request can be sent.');
    expect(running.output()).toContain('TCPRoute default/echo at Gateway');
    expect(running.output()).toMatch(/100\.64\.0\.2:18081 +through 127\.0\.0\.1:1055/);
    expect(running.output()).not.toContain('Building');

    edit(machine, text => text.replaceAll('port: 18082', 'port: 19999'));
    await running.printed('100.64.0.3:19999');
    edit(machine, () => 'kind: [');
    await running.printed('! problem in a resource file: web.yaml');
    await running.end();
  });

  it('without Go prints one line with what to install, and follows edits', async () => {
    const machine = freshMachine();
    const running = start(machine);
    await running.printed(
      /\nGo 1\.\d+\.\d+ or newer is missing: curl \S+ https:.*\n\nInstall it and run npm start/,
    );
    edit(machine, text => text.replaceAll('port: 18082', 'port: 19999'));
    await running.printed('100.64.0.3:19999');
    expect(running.output()).not.toContain('Building');
    await running.end();
  });

  it('builds what is missing behind the routes, and continues after an interruption with the next program', async () => {
    const machine = freshMachine();
    const failing = '*envoy-gateway*) echo no such module; exit 1;;';
    installFakeGo(machine.root, `case "$*" in */tailscale) exec sleep 600;; ${failing} esac`);
    const first = start(machine);
    await first.printed(/tailscale: tailscale \(2 of 2\) \.\.\. log: \S+build\.log\n/);
    expect(first.output()).toMatch(
      /TCPRoute default\/echo at Gateway[^]*Building the real parts[^]*: tailscale, tailnet, backends, envoy, envoy-gateway\.\n[^]*\n6 programs to build, about \d+ min\n/,
    );
    edit(machine, text => text.replaceAll('port: 18082', 'port: 19999'));
    await first.printed('100.64.0.3:19999');
    await first.end();
    expect(first.output()).toMatch(/tailscale: tailscale \(2 of 2\) stopped after \d+ s\n/);

    installFakeGo(machine.root, `case "$*" in ${failing} esac`);
    const second = start(machine);
    await second.printed(/1 of 5 parts could not be built/);
    expect(second.output()).toContain('tailscale: tailscale (2 of 2) built');
    expect(second.output()).not.toContain('tailscaled (1 of 2)');
    expect(second.output()).toContain('    no such module\n');
    await second.end();
  });
});
