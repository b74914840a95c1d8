import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { installationIn, refusalOf, userFile } from '../../lab/cluster/installed.ts';
import { stepIn } from '../../lab/process/steps.ts';
import { API_VERSION } from '../../src/api/generated/kinds.ts';
import { emptyFolder } from './sample.ts';

const DEPLOYMENTS = '/apis/apps/v1/deployments?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dmesh-gateway';
const KINDS = `/apis/${API_VERSION}`;

/** The requests of a client to an API server that answers these paths, and others with 404. */
const serverWith = (answers: Readonly<Record<string, unknown>>) => (_method: string, path: string) => {
  const body = answers[path];
  return Promise.resolve(body === undefined ? { status: 404, body: '' } : { status: 200, body });
};

const listOf = (...names: readonly string[]) => ({
  items: names.map(each => {
    const [name, namespace] = each.split('/').reverse();
    return { metadata: { name, ...(namespace !== undefined && { namespace }) } };
  }),
});

describe('the installation in a cluster', () => {
  it('is nothing in one that never had any', async () => {
    expect(await installationIn(serverWith({ [DEPLOYMENTS]: listOf() }))).toEqual([]);
  });

  it('is nothing where tests have left the kinds', async () => {
    const resources = [
      { kind: 'MeshTailnet', name: 'meshtailnets' },
      { kind: 'MeshTailnet', name: 'meshtailnets/status' },
    ];
    const answers = {
      [DEPLOYMENTS]: listOf(),
      [KINDS]: { resources },
      [`${KINDS}/meshtailnets`]: listOf(),
    };
    expect(await installationIn(serverWith(answers))).toEqual([]);
  });

  it('is its namespace, its Deployments in any namespace, and the objects of its users', async () => {
    const resources = [
      { kind: 'MeshTailnet', name: 'meshtailnets' },
      { kind: 'MeshEndpoints', name: 'meshendpoints' },
    ];
    const answers = {
      '/api/v1/namespaces/mesh-system': {},
      [DEPLOYMENTS]: listOf('elsewhere/mesh-operator'),
      [KINDS]: { resources },
      [`${KINDS}/meshtailnets`]: listOf('example'),
      [`${KINDS}/meshendpoints`]: listOf('team/web'),
    };
    expect(await installationIn(serverWith(answers))).toEqual([
      'Namespace mesh-system',
      'Deployment elsewhere/mesh-operator',
      'MeshTailnet example',
      'MeshEndpoints team/web',
    ]);
  });

  it('is unknown where the API server does not list it', async () => {
    const refuse = () => Promise.resolve({ status: 403, body: '' });
    await expect(installationIn(refuse)).rejects.toThrow(/deployments.* was answered with 403/);
  });
});

describe('a cluster with a running installation', () => {
  it('may be used if nothing is found', () => {
    expect(refusalOf('npm run bench -- failover', [], undefined)).toBe(undefined);
    expect(refusalOf('npm run bench -- failover', [], 'npm run bench -- mesh-pods')).toBe(undefined);
  });

  it('is refused with what would be replaced, and the ways out', () => {
    const found = ['Namespace mesh-system', ...[1, 2, 3, 4, 5, 6].map(at => `MeshTailnet t${at}`)];
    expect(refusalOf('npm run bench -- failover', found, undefined)).toBe(
      'the cluster has an installation of mesh-gateway, which npm run bench -- failover would replace: ' +
        'Namespace mesh-system, MeshTailnet t1, MeshTailnet t2, MeshTailnet t3, MeshTailnet t4 and 2 more. ' +
        'Remove it as docs/install.md describes, or end the cluster: npm run cluster -- down',
    );
  });

  it('is refused with the run that was aborted, if one has left it', () => {
    expect(
      refusalOf('npm run bench -- failover', ['Namespace mesh-system'], 'npm run bench -- mesh-pods'),
    ).toBe(
      'npm run bench -- mesh-pods was aborted and left this in the cluster: Namespace mesh-system. ' +
        'End the cluster, then try again: npm run cluster -- down',
    );
  });

  it('has the name of its user until that has ended', () => {
    const folder = join(emptyFolder(), 'cluster');
    mkdirSync(folder);
    const users = userFile(folder);
    expect(users.read()).toBe(undefined);
    users.write('npm run conformance');
    expect(userFile(folder).read()).toBe('npm run conformance');
    users.remove();
    users.remove();
    expect(users.read()).toBe(undefined);
  });
});

it.each([
  ['   3.4 s  control plane, node, tailnet', 'control plane, node, tailnet'],
  ['1234.5 s  the cluster is up', 'the cluster is up'],
  ['cluster: etcd is not built yet: run npm run parts', undefined],
])('the step in the line "%s"', (line, step) => {
  expect(stepIn(line)).toBe(step);
});
