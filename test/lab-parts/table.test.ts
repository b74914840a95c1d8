import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { binariesOf, PARTS, partsOf } from '../../lab/parts/parts.ts';
import type { Part, PartSet } from '../../lab/parts/parts.ts';
import { versionOf } from '../../lab/parts/key.ts';

const FOLDER = 'lab/parts';
const thirdParty = PARTS.filter(({ source }) => source !== undefined);
const goModules = thirdParty.filter(({ from }) => from === 'go');

const goModOf = ({ name }: Part) => readFileSync(join(FOLDER, name, 'go.mod'), 'utf8');

/** The text after a word, on its line, or one per line in parentheses. */
function directives(text: string, word: string): readonly string[] {
  const blocks = [...text.matchAll(new RegExp(`^${word} (?:\\(\\n([^)]*)\\)|(.*))$`, 'gm'))];
  return blocks.flatMap(([, block, line]) => (block ?? line ?? '').trim().split(/\n\s*/));
}

describe('the table of parts', () => {
  it('has a part for each folder, and a folder for each part', () => {
    const folders = readdirSync(FOLDER, { withFileTypes: true }).filter(entry => entry.isDirectory());
    expect(folders.map(({ name }) => name).sort()).toEqual(PARTS.map(({ name }) => name).sort());
  });

  it('names each program once', () => {
    const names = PARTS.flatMap(({ binaries }) => binaries.map(({ name }) => name));
    expect(new Set(names).size).toBe(names.length);
  });

  it('lists the parts of each set', () => {
    const names = (set: PartSet) => partsOf(set).map(({ name }) => name);
    expect(names('quickstart')).toEqual(['tailscale', 'tailnet', 'backends', 'envoy', 'envoy-gateway']);
    expect(names('lab')).toEqual([...names('quickstart'), 'extension-peer', 'control-peer', 'coredns']);
    expect(names('api')).toEqual(
      PARTS.map(({ name }) => name).filter(name =>
        [...names('lab'), 'etcd', 'kubernetes', 'helm'].includes(name),
      ),
    );
    expect(partsOf('cluster')).toEqual(PARTS);
  });

  it('builds of each part only the programs of a set, the longest first', () => {
    const programs = (set: PartSet, name: string) =>
      PARTS.filter(part => part.name === name).flatMap(part =>
        binariesOf(part, set).map(binary => binary.name),
      );
    expect(programs('quickstart', 'tailscale')).toEqual(['tailscaled', 'tailscale']);
    expect(programs('lab', 'tailscale')).toEqual(['tailscaled', 'tailscale', 'containerboot']);
    expect(programs('lab', 'envoy-gateway')).toEqual(['envoy-gateway']);
    expect(programs('api', 'envoy-gateway')).toEqual(['envoy-gateway', 'gateway-helm']);
    expect(programs('api', 'kubernetes')).toEqual(['kube-apiserver', 'kube-controller-manager', 'kubectl']);
    expect(programs('cluster', 'kubernetes').slice(3)).toEqual(['kubelet', 'kube-proxy', 'kube-scheduler']);
  });

  it('names no version: those are in the folders', () => {
    expect(readFileSync('lab/parts/parts.ts', 'utf8')).not.toMatch(/\d+\.\d+/);
  });
});

describe.each(goModules.map(part => [part.name, part] as const))('the Go module of %s', (_, part) => {
  it('has a tool line for each program of other modules and no other', () => {
    const programs = part.binaries.filter(({ copiedFrom }) => copiedFrom === undefined);
    const packages = programs.map(binary => binary.package).filter(name => name !== '.');
    expect([...directives(goModOf(part), 'tool')].sort()).toEqual(packages.sort());
  });

  it('names the version once', () => {
    const version = versionOf(part, join(FOLDER, part.name));
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    const requirements = directives(goModOf(part), 'require').filter(line =>
      line.startsWith(`${part.source} `),
    );
    expect(requirements).toHaveLength(1);
    expect(requirements[0]).toContain(` v${version}`);
  });

  it('does not select a toolchain', () => {
    expect(directives(goModOf(part), 'toolchain')).toEqual([]);
  });
});

/** The version of each module that a part's go.mod requires. */
function versionsIn(name: string): ReadonlyMap<string, string> {
  const text = readFileSync(join(FOLDER, name, 'go.mod'), 'utf8');
  return new Map(directives(text, 'require').map(line => line.split(' ').slice(0, 2) as [string, string]));
}

// A library is compiled once for two programs only if all that it imports has the same version in both.
it.each([
  { ours: 'conformance', theirs: 'envoy-gateway', except: /^$/ },
  { ours: 'coredns', theirs: 'helm', except: /^github\.com\/prometheus\// },
])('$ours requires the module versions of $theirs, so that both share the libraries of Kubernetes', row => {
  const theirs = versionsIn(row.theirs);
  const shared = [...versionsIn(row.ours)].filter(([name]) => theirs.has(name) && !row.except.test(name));
  expect(shared.map(([name]) => name)).toContain('k8s.io/client-go');
  expect(Object.fromEntries(shared)).toEqual(
    Object.fromEntries(shared.map(([name]) => [name, theirs.get(name)])),
  );
});

it('Node is pinned by its hash, the same version for each processor', () => {
  const [node] = thirdParty.filter(({ from }) => from === 'npm');
  const version = node && versionOf(node, join(FOLDER, node.name));
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  const lock = readFileSync(join(FOLDER, 'node/package-lock.json'), 'utf8');
  expect(lock.split(`"version": "${version}"`)).toHaveLength(3);
  expect(lock.match(/"integrity": "sha512-/g)).toHaveLength(2);
});

it('the Python package of Envoy is pinned by its hash', () => {
  const text = readFileSync(join(FOLDER, 'envoy/requirements.txt'), 'utf8');
  const [envoy] = thirdParty.filter(({ from }) => from === 'python');
  expect(envoy && versionOf(envoy, join(FOLDER, envoy.name))).toMatch(/^\d+\.\d+\.\d+$/);
  expect(text.match(/--hash=sha256:[0-9a-f]{64}/g)).toHaveLength(2);
});
