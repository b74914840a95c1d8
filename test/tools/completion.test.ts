import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runCompletion } from '../../src/tools/completion.ts';
import { PROJECT, runCommand, succeed, typescript } from '../support/lab/command-line.ts';

const mesh = (...args: readonly string[]) => typescript('src/cli.ts', ...args);

let script: string;
beforeAll(async () => {
  script = await succeed(mesh('completion', 'bash'));
});

/** What bash offers for the last word of a line. */
function offered(...words: readonly string[]): readonly string[] {
  const set = `COMP_WORDS=(${words.map(word => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}`;
  const program = `${script}\n${set}\n_mesh_gateway\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', program], { encoding: 'utf8' }).split('\n').filter(Boolean);
}

describe('mesh-gateway completion', () => {
  it('completes commands, as mesh-gateway help lists them', async () => {
    const help = await succeed(mesh('help'));
    const listed = [...help.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name = '']) => name);
    expect(offered('mesh-gateway', '')).toEqual(listed);
    expect(offered('mesh-gateway', 'do')).toEqual(['doctor']);
    expect(offered('mesh-gateway', 'help', 'tr')).toEqual(['trace']);
  });

  it('completes the flags of a command', () => {
    expect(offered('mesh-gateway', 'doctor', '--')).toEqual([
      ...[
        '--color',
        '--connect',
        '--context',
        '--envoy-gateway-namespace',
        '--kubeconfig',
        '--namespace',
        '--output',
        '--wait',
      ],
    ]);
    expect(offered('kubectl-mesh', 'status', '--o')).toEqual(['--output']);
  });

  const COMMANDS = ['status', 'standalone', 'doctor'].map(name => ({
    name,
    summary: `print ${name}`,
    help: '--context --connect, --wait 2m',
  }));

  it.each<readonly [words: readonly string[], candidates: readonly string[]]>([
    [['sta'], ['status\tprint status', 'standalone\tprint standalone', ':4']],
    [
      ['help', 'doc'],
      ['doctor\tprint doctor', ':4'],
    ],
    [['help', 'doctor', ''], [':4']],
    [
      ['doctor', '--wait', '2m', '--co'],
      ['--connect', '--context', ':4'],
    ],
    [['doctor', 'ex'], [':0']],
    [['none', '--'], [':4']],
  ])('prints what kubectl reads for kubectl mesh %j', (words, candidates) => {
    const out = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    onTestFinished(() => {
      out.mockRestore();
    });
    expect(runCompletion(['kubectl', ...words], COMMANDS)).toBe(0);
    expect(out.mock.calls).toEqual([[candidates.join('\n')]]);
  });

  it('has all commands for kubectl', async () => {
    const lines = (await succeed(mesh('completion', 'kubectl'))).split('\n');
    expect(lines).toContain('doctor\tfind what is wrong with an installation, and the fix');
    expect(lines).toContain('version\tprint the version');
  });

  it('is run by the file that kubectl looks for', () => {
    const { bin } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as {
      readonly bin: Readonly<Record<string, string>>;
    };
    expect(bin['kubectl_complete-mesh']).toBe('dist/js/kubectl_complete-mesh');
    const folder = mkdtempSync(join(tmpdir(), 'kubectl-mesh-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'kubectl-mesh'), '#!/bin/sh\nprintf "<%s>" "$@"\n', { mode: 0o755 });
    const env = { PATH: `${folder}:/usr/bin:/bin` };
    const words = ['trace', '--header', 'a b', ''];
    const file = join(PROJECT, 'src/tools/kubectl_complete-mesh');
    expect(execFileSync(file, words, { env, encoding: 'utf8' })).toBe(
      '<completion><kubectl><trace><--header><a b><>',
    );
  });

  it('leaves names of files to the shell', () => {
    expect(offered('mesh-gateway', 'check', 'ex')).toEqual([]);
    expect(script).toContain('complete -o default ');
  });

  it('prints the same for zsh, and its own for fish', async () => {
    const [zsh, fish] = await Promise.all([
      succeed(mesh('completion', 'zsh')),
      succeed(mesh('completion', 'fish')),
    ]);
    expect(zsh).toBe(`autoload -U +X bashcompinit && bashcompinit\n${script}`);
    expect(fish).toContain("complete -c mesh-gateway -n '__fish_seen_subcommand_from doctor' -l wait\n");
    expect(fish).toContain(String.raw`-d 'reconcile mesh-gateway\'s objects in a cluster'`);
  });

  it('refuses other shells', async () => {
    const { code, output } = await runCommand(mesh('completion', 'tcsh'));
    expect({ code, output }).toEqual({
      code: 2,
      output: 'mesh-gateway: completion: name one shell: bash, zsh, fish\n',
    });
  });
});
