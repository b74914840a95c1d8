import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parseManifests, readManifests } from '../../../lab/kube/manifests.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import {
  CHART,
  chartFields,
  chartSwitches,
  comparable,
  helm,
  otherValues,
  RELEASE_NAMESPACE,
  rendered,
  synthesizedFor,
} from '../../support/synth/chart.ts';
import { envoyGatewayValues } from '../../../synth/charts/envoy-gateway.ts';
import { readConfiguration } from '../../../synth/config.ts';
import type { Installation } from '../../../synth/generated/types.ts';
import { at, containersOf, put } from '../../support/synth/parts.ts';
import type { Written } from '../../support/synth/synthesized.ts';

/** Values of the chart in which these have another value than their default. */
function valuesWith(paths: readonly (readonly string[])[]): Written {
  const values: Written = {};
  for (const path of paths) {
    path.slice(0, -1).forEach((_, depth) => {
      const outer = path.slice(0, depth + 1);
      put(values, outer, at(values, ...outer) ?? {});
    });
    put(values, path, at(otherValues, ...path));
  }
  return values;
}

/** Reading the CRDs takes longer than all else. */
const WITHOUT_CRDS = ['crds', 'enabled'];

const MONITORING = ['monitoring', 'enabled'];

const paths = chartFields.map(({ path }) => path);

/**
 * In each pair of switches some case turns both, one, the other, and none: a case turns those whose index has one of its
 * bits set, or those that have not; then there are all and none.
 */
const switches = chartSwitches.map(({ path }) => path);
const bits = switches.length
  .toString(2)
  .split('')
  .map((_, bit) => bit);
const combinations = [
  switches,
  ...bits.map(bit => switches.filter((_, index) => (index >> bit) & 1)),
  ...bits.map(bit => switches.filter((_, index) => !((index >> bit) & 1))),
].map((turned, index) => ({ name: `combination ${index}`, turned }));

async function expectSame(values: Written): Promise<void> {
  expect(comparable(await rendered(values))).toEqual(comparable(synthesizedFor(values)));
}

describe('helm template renders what mesh-gateway synth writes', () => {
  it('from the defaults', async () => {
    await expectSame({});
    expect(Object.keys(comparable(await rendered({})))).toContain(
      `Deployment ${RELEASE_NAMESPACE}/mesh-operator`,
    );
  });

  it.each(paths.map(path => ({ name: path.join('.'), path })))('with $name alone', async ({ path }) => {
    const [first = ''] = path;
    const more = first === 'crds' ? [] : [WITHOUT_CRDS];
    const values = valuesWith([path, ...more, ...(first === 'monitoring' ? [MONITORING] : [])]);
    expect(at(values, ...path)).toBeDefined();
    await expectSame(values);
  });

  it.each(combinations)('with all pairs of switches: $name', async ({ turned }) => {
    await expectSame(valuesWith(turned));
  });

  it('with all values', async () => {
    await expectSame(valuesWith(paths));
  });

  it('where maps set keys of each other, and of objects', async () => {
    const labels = { team: 'a', release: 'a', 'app.kubernetes.io/name': 'a', grafana_dashboard: 'a' };
    await expectSame({ labels, monitoring: { enabled: true, labels: { release: 'b' } } });
    await expectSame({ labels, monitoring: { enabled: true, dashboardLabels: { team: 'b' } } });
  });
});

describe('the kustomize overlay', () => {
  it('changes the image of every process, and nothing else names the old one', async () => {
    const kubectl = promisify(execFile)(locateBinaries(process.env)('kubectl'), [
      'kustomize',
      'examples/gitops/kustomize',
    ]);
    const { stdout } = await kubectl;
    const objects = parseManifests(stdout, 'the overlay');
    const images = objects.flatMap(containersOf).map(container => at(container, 'image'));
    expect(images).toEqual(Array(2).fill('registry.example.com/mesh-gateway:0.1.0'));
    expect(stdout).not.toMatch(/[^/]mesh-gateway:\d/);
    expect(objects.map(({ kind }) => kind).sort()).toEqual(
      readManifests('dist/manifests')
        .map(({ kind }) => kind)
        .filter(kind => kind !== 'Kustomization')
        .sort(),
    );
  });
});

describe('the chart', () => {
  it('passes helm lint', async () => {
    expect(await helm(['lint', '--strict', CHART])).toContain('0 chart(s) failed');
  });

  it.each<{ readonly values: Written; readonly at: string }>([
    { values: { operator: { replicas: 0 } }, at: '/operator/replicas' },
    { values: { operator: { replicas: '2' } }, at: '/operator/replicas' },
    { values: { operator: { replicas: null } }, at: '/operator' },
    { values: { operator: { replica: 2 } }, at: '/operator' },
    { values: { dataPath: 'direct' }, at: '/dataPath' },
    { values: { scheduling: null }, at: "missing property 'scheduling'" },
    { values: { namespace: 'mesh-system' }, at: "additional properties 'namespace' not allowed" },
    { values: { image: { repository: 'a b' } }, at: '/image/repository' },
    { values: { controlURL: 'ftp://control.example.com' }, at: '/controlURL' },
    { values: { envoyGateway: { proxyNamespaces: [] } }, at: '/envoyGateway/proxyNamespaces' },
    { values: { refusedAddresses: ['10.0.0.1', '10.0.0.1'] }, at: '/refusedAddresses' },
    {
      values: { scheduling: { tolerations: [{ effect: 'Never' }] } },
      at: '/scheduling/tolerations/0/effect',
    },
    { values: { meshPods: { extraEnv: { TZ: 1 } } }, at: '/meshPods/extraEnv/TZ' },
    { values: { scheduling: { affinity: { nodes: {} } } }, at: "additional properties 'nodes' not allowed" },
    {
      values: {
        scheduling: {
          affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ namespaces: [] }] } },
        },
      },
      at: "missing property 'topologyKey'",
    },
  ])('refuses $values', async ({ values, at: place }) => {
    const refused = rendered(values);
    await expect(refused).rejects.toThrow(place);
    await expect(refused).rejects.toThrow("don't meet the specifications of the schema");
  });

  it.each(['default', 'kube-system', 'envoy-gateway-system', 'monitoring'])(
    'refuses to be installed in the namespace %s',
    async namespace => {
      const refused = helm(['template', 'mesh-gateway', CHART, '--namespace', namespace]);
      await expect(refused).rejects.toThrow(`the namespace ${namespace} is used by others`);
    },
  );

  it('prints the next commands', async () => {
    const args = ['install', 'mesh-gateway', CHART, '--namespace', RELEASE_NAMESPACE, '--dry-run=client'];
    const notes = (await helm(args)).split('NOTES:')[1];
    expect(notes).toContain(`kubectl -n ${RELEASE_NAMESPACE} wait`);
    expect(notes).toContain(`hostname: mesh-extension-server.${RELEASE_NAMESPACE}.svc.cluster.local`);
    expect(notes).toContain('mesh-gateway synth');
  });

  it.each([
    { given: [], config: {} },
    { given: ['--set', 'clusterDomain=corp.example'], config: { clusterDomain: 'corp.example' } },
    {
      given: ['--set', 'extensionServer.maxMessageSize=50M'],
      config: { extensionServer: { maxMessageSize: '50M' } },
    },
  ])(
    'prints the values of the chart of Envoy Gateway as synth does, with $given',
    async ({ given, config }) => {
      const args = ['install', 'mesh-gateway', CHART, '--namespace', RELEASE_NAMESPACE, '--dry-run=client'];
      const [, printed = ''] = /--values - <<END\n(.*?)END\n/s.exec(await helm([...args, ...given])) ?? [];
      const { installation } = readConfiguration(
        JSON.stringify({ ...config, namespace: RELEASE_NAMESPACE }),
      ) as { readonly installation: Installation };
      expect(printed).toBe(envoyGatewayValues({ installation, version: '0' }));
    },
  );
});
