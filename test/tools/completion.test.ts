import { execFileSync } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCommand, succeed, typescript } from '../support/lab/command-line.ts';

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
