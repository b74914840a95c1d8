import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseManifests } from '../../lab/kube/manifests.ts';
import { runSynth, SYNTH_HELP } from '../../synth/command.ts';
import { builtProduct } from '../support/programs/programs.ts';
import { runHere } from '../support/tools/run-here.ts';
import type { Run } from '../support/tools/run-here.ts';

const root = mkdtempSync(join(tmpdir(), 'mesh-gateway-synth-'));
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };

// As in the package: the command beside the CRDs of our kinds.
beforeAll(() => {
  cpSync(join(builtProduct(), 'dist/js'), join(root, 'dist/js'), { recursive: true });
  cpSync('dist/crds', join(root, 'dist/crds'), { recursive: true });
});

afterAll(() => rmSync(root, { recursive: true }));

/** Runs the command as users do. */
async function runProcess(...args: readonly string[]): Promise<Run> {
  const child = spawn(process.execPath, [join(root, 'dist/js/cli.js'), ...args], { cwd: root });
  child.stdin.end();
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  const [out, err, status] = await Promise.all([readAll(child.stdout), readAll(child.stderr), ended]);
  return { status, out, err };
}

/** Runs the command in this process. */
const run = (...args: readonly string[]) =>
  runHere(root, () => runSynth(args, version), { name: 'synth', help: SYNTH_HELP });

function written(name: string, text: string): string {
  writeFileSync(join(root, name), text);
  return name;
}

const filesIn = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(root.length + folder.length + 2))
    .sort();

describe('mesh-gateway synth', () => {
  it('writes the committed files by default', async () => {
    expect(await runProcess('synth', '--out', 'default')).toMatchObject({
      status: 0,
      err: '15 files, 15 changed\n',
    });
    expect(filesIn('default')).toHaveLength(15);
    for (const path of filesIn('default'))
      expect(readFileSync(join(root, 'default', path), 'utf8')).toBe(
        readFileSync(join('dist/manifests', path), 'utf8'),
      );
  });

  it('prints the values of the chart of Envoy Gateway, which are in its file', async () => {
    const { out, ...rest } = await run('envoy-gateway-values');
    expect(rest).toEqual({ status: 0, err: '' });
    const [, ...lines] = readFileSync('dist/manifests/envoy-gateway/values.yaml', 'utf8').split('\n');
    expect(out).toBe(lines.join('\n'));
    const config = written('other-domain.yaml', 'clusterDomain: corp.example');
    const other = await run('envoy-gateway-values', '--config', config, '--namespace', 'mesh');
    expect(other.out).toContain('hostname: mesh-extension-server.mesh.svc.corp.example\n');
  });

  it('changes nothing where nothing has changed', async () => {
    await run('--out', 'twice');
    expect(await run('--out', 'twice')).toMatchObject({ status: 0, err: '15 files, 0 changed\n' });
  });

  it('follows a configuration, and is of its own version', async () => {
    const config = written('mine.yaml', 'namespace: mine\nimage: {repository: registry.example.com/mesh}\n');
    expect((await run('--config', config, '--out', 'mine')).status).toBe(0);
    const operator = readFileSync(join(root, 'mine/operator.yaml'), 'utf8');
    expect(operator).toContain('namespace: mine\n');
    expect(operator).toContain(`image: registry.example.com/mesh:${version}\n`);
  });

  it('writes only the named parts, and does not change the rest', async () => {
    await run('--out', 'part');
    const config = written('part.yaml', 'operator: {replicas: 5}\n');
    const outcome = await run('--config', config, '--out', 'part', '--only', 'operator, rbac');
    expect(outcome).toMatchObject({ status: 0, err: '3 files, 1 changed\n' });
    expect(filesIn('part')).toHaveLength(15);
    expect(readFileSync(join(root, 'part/operator.yaml'), 'utf8')).toContain('replicas: 5\n');
  });

  it('lists all files, so that choosing a part removes nothing from a cluster', async () => {
    const listed = (folder: string) => readFileSync(join(root, folder, 'kustomization.yaml'), 'utf8');
    await run('--out', 'chosen', '--only', 'rbac, operator');
    expect(listed('chosen')).toMatch(/^resources:\n {2}- rbac.yaml\n {2}- operator.yaml\n$/m);
    await run('--out', 'chosen', '--only', 'crds,monitoring');
    expect(listed('chosen')).toMatch(
      /^resources:\n {2}- crds.yaml\n {2}- rbac.yaml\n {2}- operator.yaml\n$/m,
    );
    await run('--out', 'chosen');
    const all = listed('chosen');
    const config = written('unfenced.yaml', 'networkPolicies: {enabled: false}\n');
    await run('--config', config, '--out', 'chosen', '--only', 'operator');
    expect(listed('chosen')).toBe(all);
  });

  it('prints the objects that are applied together, or those of the chosen charts, instead of writing files', async () => {
    const kindsIn = (text: string) => parseManifests(text, 'standard output').map(({ kind }) => kind);
    const all = await runProcess('synth', '--out', '-');
    expect(all).toMatchObject({ status: 0, err: '' });
    expect(kindsIn(all.out)).toEqual(
      ['crds', 'namespace', 'rbac', 'admission-policies', 'operator', 'extension-server', 'network-policies']
        .map(name => readFileSync(`dist/manifests/${name}.yaml`, 'utf8'))
        .flatMap(kindsIn),
    );
    const { out } = await run('--out', '-', '--only', 'namespace,monitoring');
    expect(new Set(kindsIn(out))).toEqual(
      new Set(['Namespace', 'ServiceMonitor', 'PodMonitor', 'PrometheusRule', 'ConfigMap']),
    );
    expect((await run('--out', '-', '--check')).status).toBe(2);
  });

  it('checks whether a folder is as synthesized, and writes nothing', async () => {
    await run('--out', 'checked');
    expect(await run('--out', 'checked', '--check')).toEqual({ status: 0, out: '', err: '' });
    const before = filesIn('checked');
    const config = written('checked.yaml', 'operator: {replicas: 3}\nnetworkPolicies: {enabled: false}\n');
    expect(await runProcess('synth', '--config', config, '--out', 'checked', '--check')).toEqual({
      status: 1,
      out: [
        'checked/operator.yaml is different',
        'checked/kustomization.yaml is different',
        'checked/network-policies.yaml is stale',
        '',
      ].join('\n'),
      err: '',
    });
    expect(filesIn('checked')).toEqual(before);
    expect(await run('--out', 'checked', '--check')).toEqual({ status: 0, out: '', err: '' });
  });

  it('prints what would change in a folder, as a patch that changes it so, and writes nothing', async () => {
    await run('--out', 'diffed');
    expect(await run('--out', 'diffed', '--diff')).toEqual({ status: 0, out: '', err: '' });
    const config = written('diffed.yaml', 'operator: {replicas: 3}\nnetworkPolicies: {enabled: false}\n');
    rmSync(join(root, 'diffed/namespace.yaml'));
    const { status, out, err } = await run('--config', config, '--out', 'diffed', '--diff');
    expect({ status, err }).toEqual({ status: 1, err: '' });
    expect(out).toContain('--- diffed/operator.yaml\n+++ diffed/operator.yaml\n@@ ');
    expect(out).toContain('\n-  replicas: 2\n+  replicas: 3\n');
    expect(out).toContain('--- /dev/null\n+++ diffed/namespace.yaml\n');
    expect(out).toContain('--- diffed/network-policies.yaml\n+++ /dev/null\n');
    execFileSync('git', ['apply', '-p0'], { cwd: root, input: out });
    expect((await run('--config', config, '--out', 'diffed', '--diff')).status).toBe(0);
    expect((await run('--out', '-', '--diff')).status).toBe(2);
  });

  it('prints the objects of a pool that a user runs', async () => {
    const config = written('pool.yaml', 'meshPods: {image: "meshd:1"}\n');
    const spec = 'spec: {tailnet: example.ts.net, pool: {replicas: 1}}';
    const tailnet = written(
      'tailnet.yaml',
      `apiVersion: mesh-gateway.dev/v1alpha1\nkind: MeshTailnet\nmetadata: {name: home}\n${spec}\n`,
    );
    const flags = ['--config', config, '--namespace', 'pools', '--address', '10.96.0.50'];
    const { status, out, err } = await run('pool', '--tailnet', tailnet, ...flags);
    expect({ status, err }).toEqual({ status: 0, err: '' });
    const objects = parseManifests(out, 'standard output');
    expect(
      objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name ?? ''}`),
    ).toEqual([
      ...['ServiceAccount', 'Role', 'RoleBinding', 'Service'].map(kind => `${kind} pools/meshd-home`),
      'Service pools/meshd-home-pods',
      ...['PodDisruptionBudget', 'NetworkPolicy', 'StatefulSet'].map(kind => `${kind} pools/meshd-home`),
      'MeshTailnet /home',
    ]);
    expect(out).toContain('image: meshd:1\n');
  });

  it('removes files that a chosen part does not have any more', async () => {
    await run('--out', 'fenced');
    const config = written('open.yaml', 'networkPolicies: {enabled: false}\n');
    const outcome = await run('--config', config, '--out', 'fenced', '--only', 'network-policies');
    expect(outcome).toMatchObject({ status: 0, err: '1 files, 2 changed\n' });
    expect(filesIn('fenced')).not.toContain('network-policies.yaml');
    const listed = readFileSync(join(root, 'fenced/kustomization.yaml'), 'utf8');
    expect(listed).toContain('operator.yaml');
    expect(listed).not.toContain('network-policies');
  });

  it('does not replace a file that synth did not write, and then writes nothing', async () => {
    mkdirSync(join(root, 'overlay'));
    writeFileSync(join(root, 'overlay/kustomization.yaml'), 'namePrefix: mine-\n');
    const { status, err } = await run('--out', 'overlay');
    expect({ status, err }).toEqual({
      status: 2,
      err: 'mesh-gateway: synth: overlay/kustomization.yaml was not written by synth and would be lost: name another folder, or move it away\n',
    });
    expect(filesIn('overlay')).toEqual(['kustomization.yaml']);
  });

  it('removes files that it wrote and that are not needed any more, and nothing else', async () => {
    await run('--out', 'less');
    writeFileSync(join(root, 'less/own.yaml'), 'kind: Mine\n');
    mkdirSync(join(root, 'less/notes'));
    writeFileSync(join(root, 'less/notes/README.md'), 'mine\n');
    const config = written('less.yaml', 'networkPolicies: {enabled: false}\n');
    await run('--config', config, '--out', 'less');
    expect(filesIn('less')).not.toContain('network-policies.yaml');
    expect(filesIn('less')).toEqual(expect.arrayContaining(['own.yaml', 'notes/README.md']));
  });

  it('prints each fault on a line with its path, and writes nothing', async () => {
    const config = written('wrong.yaml', 'namespace: A\noperator: {replica: 1, replicas: 0}\n');
    expect(await runProcess('synth', '--config', config, '--out', 'wrong')).toEqual({
      status: 2,
      out: '',
      err: [
        'wrong.yaml: operator.replica: there is no such field',
        `wrong.yaml: namespace: "A" is not the name of a namespace (lower-case letters, digits and '-', at most 63 characters)`,
        'wrong.yaml: operator.replicas: 0 is too small: the least is 1',
        '',
      ].join('\n'),
    });
    expect(existsSync(join(root, 'wrong'))).toBe(false);
  });

  it('changes no file if the configuration is invalid', async () => {
    await run('--out', 'kept');
    const config = written('kept.yaml', 'namespace: A\n');
    writeFileSync(join(root, 'kept/operator.yaml'), 'mine');
    expect((await run('--config', config, '--out', 'kept')).status).toBe(2);
    expect(readFileSync(join(root, 'kept/operator.yaml'), 'utf8')).toBe('mine');
  });

  it.each([
    ['no folder', [], 'synth: name the folder to write to: --out FOLDER'],
    ['an empty folder', ['--out', ''], 'synth: name the folder to write to: --out FOLDER'],
    ['a file as folder', ['--out', 'dist/js/cli.js'], 'synth: dist/js/cli.js is there and is not a folder'],
    [
      'a part that there is not',
      ['--out', 'x', '--only', 'rbac,operater'],
      'synth: there is no part "operater"; did you mean operator?',
    ],
    ['a pool without a MeshTailnet', ['pool'], 'synth pool: name the file of a MeshTailnet'],
    [
      'a pool of what is no MeshTailnet',
      ['pool', '--tailnet', 'dist/crds/meshtailnets.mesh-gateway.dev.yaml', '--address', '10.96.0.50'],
      'is not a MeshTailnet',
    ],
    ['no part', ['--out', 'x', '--only', ''], 'synth: there is no part ""; there are '],
    ['no such file', ['--out', 'x', '--config', 'none.yaml'], 'none.yaml'],
    ['a folder as file', ['--out', 'x', '--config', 'dist'], 'synth: dist is not a file'],
    ['another flag', ['--out', 'x', '--dry-run'], '--dry-run'],
    ['another word', ['--out', 'x', 'y'], 'y'],
  ])('refuses %s', async (_, args, message) => {
    const { status, out, err } = await run(...args);
    expect({ status, out }).toEqual({ status: 2, out: '' });
    expect(err).toContain(message);
    expect(err.trim().split('\n')).toHaveLength(1);
    expect(existsSync(join(root, 'x'))).toBe(false);
  });

  it('refuses a file that is no text', async () => {
    writeFileSync(join(root, 'bytes.yaml'), Buffer.from([0x6e, 0xff, 0xfe]));
    const { status, err } = await run('--config', 'bytes.yaml', '--out', 'x');
    expect({ status, err }).toEqual({
      status: 2,
      err: 'mesh-gateway: synth: bytes.yaml is not UTF-8 text\n',
    });
  });

  it('is explained, with the names of its parts', async () => {
    const { status, out } = await runProcess('help', 'synth');
    expect(status).toBe(0);
    expect(out.replaceAll(/\s+/g, ' ')).toContain(
      'crds, namespace, rbac, admission-policies, operator, extension-server, network-policies, monitoring, envoy-gateway',
    );
    expect((await runProcess('synth', '--help')).out).toBe(out);
  });
});
