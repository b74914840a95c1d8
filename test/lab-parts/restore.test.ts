import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { writePrograms } from '../../lab/install/restore.ts';
import { runCommand } from '../support/lab/command-line.ts';
import { writeProgram } from '../support/lab/fake-tools.ts';
import { emptyFolder } from './sample.ts';

const [FINISHED, NOT_FINISHED] = [0, 1];

let root = '';
const below = (...names: readonly string[]) => join(root, ...names);
const kubeconfig = () => below('cluster', 'credentials', 'admin.kubeconfig');
beforeEach(() => {
  root = emptyFolder();
});

/** Installs with a kubectl that does this, runs `restore`, and returns how it ended and what kubectl was called with. */
async function restoreWith(kubectl: string, before: () => void = () => undefined) {
  for (const folder of ['installation', 'product', 'cluster/credentials', 'tools'])
    mkdirSync(below(folder), { recursive: true });
  writeFileSync(kubeconfig(), 'one cluster');
  writeProgram(below('tools'), 'kubectl', `shift; echo "$*" >>${below('calls')}\n${kubectl}`);
  writeProgram(below('tools'), 'helm', `echo 'kind: List'`);
  const environment = writePrograms({
    folder: below('installation'),
    product: below('product'),
    namespace: 'user-1',
    cluster: { kubeconfig: kubeconfig(), kubectl: below('tools', 'kubectl') },
    pathOf: name => below('tools', name),
  });
  before();
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const { code, output } = await runCommand(['env', '-i', ...variables, 'restore']);
  expect([existsSync(below('installation')), existsSync(below('product'))]).toEqual([false, false]);
  const calls = existsSync(below('calls')) ? readFileSync(below('calls'), 'utf8').trim().split('\n') : [];
  return { code, output, calls: calls.filter(call => !call.includes('/readyz')) };
}

/** As kubectl ends where nothing listens. */
const REFUSED = 'echo "The connection to the server was refused" >&2; exit 1\n';

describe('restore', () => {
  it('removes the user, then restores Envoy Gateway, then removes the product', async () => {
    const { code, calls } = await restoreWith('');
    expect(code).toBe(FINISHED);
    expect(calls.map(call => call.replace(/ --(timeout|request-timeout|server-side|force).*/, ''))).toEqual([
      'get crd meshtailnets.mesh-gateway.dev',
      'delete --ignore-not-found meshtailnet user-1',
      'delete --ignore-not-found namespace user-1',
      '-n envoy-gateway-system wait --for=delete pod',
      'apply',
      '-n envoy-gateway-system rollout restart deployment/envoy-gateway',
      '-n envoy-gateway-system rollout status deployment/envoy-gateway',
      'delete --ignore-not-found -k remove',
    ]);
  });

  it('repeats a step that is not done yet', async () => {
    const once = `case "$*" in *namespace*) [ -e ${below('again')} ] || { touch ${below('again')}; exit 1; };; esac\n`;
    const { code, calls } = await restoreWith(once);
    expect(code).toBe(FINISHED);
    expect(calls.filter(call => call.includes('namespace user-1'))).toHaveLength(2);
  });

  it('calls nothing for a cluster that was deleted', async () => {
    expect(await restoreWith('', () => rmSync(kubeconfig()))).toEqual({
      code: FINISHED,
      output: 'the cluster was deleted: nothing to restore\n',
      calls: [],
    });
  });

  it('calls nothing for another cluster in the same place', async () => {
    const { code, calls } = await restoreWith('', () => writeFileSync(kubeconfig(), 'another cluster'));
    expect({ code, calls }).toEqual({ code: FINISHED, calls: [] });
  });

  it('changes nothing where the API server does not answer, and fails', async () => {
    const { code, output, calls } = await restoreWith(REFUSED);
    expect({ code, calls }).toEqual({ code: NOT_FINISHED, calls: [] });
    expect(output).toContain('the API server does not answer: nothing was restored\n');
  });

  it('ends when the cluster is deleted during a step', async () => {
    const { code, calls } = await restoreWith(
      `case "$*" in *meshtailnet\\ *) rm ${kubeconfig()}; exit 1;; esac\n`,
    );
    expect(code).toBe(FINISHED);
    expect(calls.map(call => call.split(' --')[0])).toEqual([
      'get crd meshtailnets.mesh-gateway.dev',
      'delete',
    ]);
  });

  it('ends when the API server ends during a step', async () => {
    const ends = `[ -e ${below('ended')} ] && { ${REFUSED.trim()}; }
case "$*" in *meshtailnet\\ *) touch ${below('ended')}; exit 1;; esac\n`;
    const { code, calls } = await restoreWith(ends);
    expect(code).toBe(NOT_FINISHED);
    expect(calls).toHaveLength(2);
  });
});
