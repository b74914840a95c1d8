import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lint } from '../../src/lint/lint.ts';
import { makeFolders } from '../support/resources/folder.ts';
import { PROJECT, succeed, typescript } from '../support/lab/command-line.ts';

const readme = readFileSync(join(PROJECT, 'README.md'), 'utf8');
const install = readFileSync(join(PROJECT, 'docs/install.md'), 'utf8');

function blocksOf(text: string, language: string): readonly string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
    ([, block = '']) => block,
  );
}

/** Commands as lines, without the ends of lines inside of them and with the manifests of the repository. */
function commandsIn(blocks: readonly string[]): readonly string[] {
  const text = blocks.join('').replaceAll(/\\\n +/g, '');
  return text
    .replaceAll(/ manifests\b/g, ' dist/manifests')
    .split('\n')
    .filter(Boolean);
}

describe('README.md', () => {
  it('shows objects that are valid, without a warning', () => {
    const [example = ''] = blocksOf(readme, 'yaml');
    expect(lint(example)).toEqual({ findings: [], objects: 2 });
  });

  it('installs as docs/install.md does, and applies the examples', () => {
    const [, cluster = ''] = readme.split('### On your cluster\n');
    const [block = ''] = blocksOf(cluster, 'sh');
    const commands = commandsIn([block]);
    const documented = commandsIn(blocksOf(install, 'sh'));
    expect(commands.slice(0, -1).filter(command => !documented.includes(command))).toEqual([]);
    expect(commands).toHaveLength(3);
    expect(commands.at(-1)).toBe('kubectl apply -f examples/cluster');
  });
});

describe('the route to the tailnet', () => {
  async function expectProxied(folder: string): Promise<void> {
    const out = await succeed(typescript('src/cli.ts', 'explain', folder));
    expect(out).toMatch(/^HTTPRoute default\/web .*100\.64\.0\.11:8080 +through 192\.0\.2\.10:1055/s);
  }

  it('of README.md leads through the proxy of the MeshTailnet', async () => {
    const { root } = makeFolders();
    const [example = ''] = blocksOf(readme, 'yaml');
    writeFileSync(join(root, 'example.yaml'), example);
    await expectProxied(root);
  });

  it('of examples/cluster leads through the proxy of the MeshTailnet', async () => {
    await expectProxied(join(PROJECT, 'examples/cluster'));
  });
});
