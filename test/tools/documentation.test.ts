import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { severityOf } from '../../src/api/problem.ts';
import { makeFolders } from '../support/files/folder.ts';
import { PROJECT, succeed, typescript } from '../support/lab/command-line.ts';
import { checkText } from '../support/tools/checked.ts';

const readme = readFileSync(join(PROJECT, 'README.md'), 'utf8');
const pages = ['install.md', 'tailnets.md'].map(page => readFileSync(join(PROJECT, 'docs', page), 'utf8'));

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
    expect(checkText(example)).toEqual({ findings: [], objects: 3 });
  });

  it('installs as the pages do, and applies the examples', () => {
    const [, cluster = ''] = readme.split('### On your cluster\n');
    const block = blocksOf(cluster, 'sh').find(text => text.includes('helm upgrade')) ?? '';
    const commands = commandsIn([block]);
    const documented = commandsIn(pages.flatMap(page => blocksOf(page, 'sh')));
    expect(commands.slice(0, -1).filter(command => !documented.includes(command))).toEqual([]);
    expect(commands).toHaveLength(5);
    expect(commands.at(-1)).toBe('kubectl apply -f examples/cluster');
  });
});

/**
 * The files that run the commands below a heading, and the words by which they find them: all blocks but those beside which the
 * page has why they are not run.
 */
const RUN: Readonly<Record<string, readonly [file: string, words: string]>> = {
  'README.md: On this machine': ['test/lab/parts/quickstart.test.ts', "describe('npm start'"],
  'README.md: On your cluster': ['test/cluster/install/new-user.soak.ts', "'On your cluster'"],
  'docs/install.md: Install with Helm': ['test/api-server/chart/release.test.ts', "'Install with Helm'"],
  'docs/install.md: The manifests': ['test/support/cluster/install/shared.ts', "'The manifests'"],
  'docs/install.md: Apply the manifests': ['test/support/cluster/install/shared.ts', "'Apply the manifests'"],
  'docs/install.md: The first endpoint': ['test/cluster/install/install.test.ts', "'The first endpoint'"],
  'docs/install.md: Remove': ['test/cluster/install/removal.test.ts', "'Remove'"],
};

describe('commands of README.md and docs/install.md', () => {
  const sections = ['README.md', 'docs/install.md'].flatMap(page => {
    const [, ...parts] = readFileSync(join(PROJECT, page), 'utf8').split(/^#{2,3} /m);
    return parts.map(text => ({ name: `${page}: ${text.split('\n', 1)[0]}`, text }));
  });
  const blocks = sections.flatMap(({ name, text }) =>
    [...text.matchAll(/((?:^.+\n)+)\n```sh\n/gm)].map(([, before = '']) => ({ name, before })),
  );

  it('are all run by a test, or have beside them why they are not', () => {
    const unexplained = blocks.filter(({ name, before }) => !(name in RUN) && !/not run here/.test(before));
    expect(blocks.length).toBeGreaterThan(8);
    expect(unexplained.map(({ name }) => name)).toEqual([]);
  });

  it.each(Object.entries(RUN))('of %s are read by a test', (name, [file, words]) => {
    expect(blocks.map(block => block.name)).toContain(name);
    expect(readFileSync(join(PROJECT, file), 'utf8')).toContain(words);
  });
});

describe('examples', () => {
  it.each(['cluster', 'discovery', 'external-pool', 'failover', 'quickstart'])(
    'of %s are valid, without a warning',
    folder => {
      const path = join(PROJECT, 'examples', folder);
      const reports = readdirSync(path).map(file => checkText(readFileSync(join(path, file), 'utf8')));
      const findings = reports.flatMap(report => report.findings);
      expect(findings.filter(each => severityOf(each) !== 'note')).toEqual([]);
      expect(reports.reduce((sum, { objects }) => sum + objects, 0)).toBeGreaterThan(0);
    },
  );
});

describe('the route to the tailnet', () => {
  async function expectProxied(folder: string, proxy: string): Promise<void> {
    const out = await succeed(typescript('src/cli.ts', 'trace', '--all', '--file', folder));
    expect(out).toMatch(/^HTTPRoute default\/web .*100\.64\.0\.11:8080 +through (\S+)/s);
    expect(/through (\S+)/.exec(out)?.[1]).toBe(proxy);
  }

  /** The objects with the status that the operator writes when mesh pods are ready. */
  function withReadyPool(text: string): string {
    const documents = parseAllDocuments(text);
    const tailnet = documents.find(document => document.get('kind') === 'MeshTailnet');
    if (!tailnet) throw new Error('there is no MeshTailnet');
    tailnet.set('status', { pool: { ready: 2, desired: 2, proxyAddress: '10.96.0.7:1055' } });
    return documents.map(String).join('---\n');
  }

  it('of README.md leads through the mesh pods of the MeshTailnet', async () => {
    const { root } = makeFolders();
    const [example = ''] = blocksOf(readme, 'yaml');
    writeFileSync(join(root, 'example.yaml'), withReadyPool(example));
    cpSync(join(PROJECT, 'examples/cluster/gateway.yaml'), join(root, 'gateway.yaml'));
    await expectProxied(root, '10.96.0.7:1055');
  });

  it('of examples/cluster leads through the mesh pods, or through your own proxy', async () => {
    const { root } = makeFolders();
    cpSync(join(PROJECT, 'examples/cluster'), root, { recursive: true });
    const file = join(root, 'tailnet.yaml');
    writeFileSync(file, withReadyPool(readFileSync(file, 'utf8')));
    await expectProxied(root, '10.96.0.7:1055');
    cpSync(join(PROJECT, 'examples/external-pool/tailnet.yaml'), file);
    await expectProxied(root, '192.0.2.10:1055');
  });
});
