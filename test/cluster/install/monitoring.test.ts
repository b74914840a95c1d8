import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMPONENTS } from '../../../src/api/names.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { podsWith } from '../../../lab/kube/pods.ts';
import { refOf } from '../../../lab/kube/object.ts';
import { until } from '../../../lab/process/wait.ts';
import {
  lacksPrometheus,
  measureOf,
  monitoringKinds,
  startPrometheus,
} from '../../support/cluster/install/prometheus.ts';
import type { Prometheus } from '../../support/cluster/install/prometheus.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import { documentedCommands } from '../../../lab/install/installer.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { named } from '../../support/declared.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';

const { operator, extensionServer } = COMPONENTS;
const SOON = { timeoutMs: 240_000 };

let scene: InstallScene;
beforeAll(async () => {
  scene = await installScene();
  await scene.use();
  await scene.answerOf('web-1');
});
afterAll(async () => {
  await scene.end();
});

const manifests = () => join(scene.shell.folder, 'manifests/monitoring');

describe('the monitoring of a cluster', () => {
  let kinds: readonly KubeObject[];
  beforeAll(async () => {
    kinds = await monitoringKinds();
    await applyAll(scene.client, kinds);
  });
  afterAll(async () => {
    for (const kind of kinds) await scene.client.remove(refOf(kind));
  });

  it('is accepted by the kinds of its operator, unchanged', async () => {
    const [, [command = ''] = []] = documentedCommands('install.md', 'Apply the manifests');
    expect(command).toContain('monitoring');
    const applied = await scene.shell.sh(command);
    for (const kind of ['prometheusrule', 'servicemonitor', 'podmonitor', 'configmap'])
      expect(applied).toContain(kind);
    const rules = await scene.client.list({
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PrometheusRule',
      namespace: PLACE.system,
    });
    // The documented configuration enables it.
    expect(rules.map(({ metadata }) => metadata.labels?.['release'])).toEqual(['prometheus']);
    expect(await scene.shell.sh('kubectl diff --server-side -k manifests/monitoring')).toBe('');
  });
});

describe.skipIf(lacksPrometheus)('a Prometheus that reads an installation', () => {
  let prometheus: Prometheus;
  beforeAll(async () => {
    prometheus = await startPrometheus(scene.client, manifests());
  });
  afterAll(() => {
    prometheus.end();
  });

  /** Waits until an expression has a given number of series, and returns their values. */
  const valuesOf = (expression: string, count: number) =>
    until(
      `${count} series of ${expression}`,
      async note => {
        const samples = await prometheus.query(expression);
        note(JSON.stringify(samples));
        return samples.length === count ? samples.map(({ value }) => Number(value[1])) : undefined;
      },
      SOON,
    );

  it('reaches both pods of both processes', async () => {
    expect(await valuesOf(`up{job=~"${operator}|${extensionServer}"} == 1`, 4)).toEqual([1, 1, 1, 1]);
  });

  it('reports one leader', async () => {
    expect(await valuesOf(`leader_election_master_status{job="${operator}"} == 1`, 1)).toEqual([1]);
  });

  it('evaluates all alerts, and none fires', async () => {
    const alerts = await until('all alerts to be evaluated', () => prometheus.alerts(), SOON);
    expect(Object.keys(alerts)).toEqual(
      expect.arrayContaining(['HighReconciliationErrorRate', 'ExtensionServerDown', 'HighMemoryUsage']),
    );
    const isQuiet = async (note: (seen: string) => void) => {
      const states = await prometheus.alerts();
      note(JSON.stringify(states));
      return Object.values(states).every(state => state === 'inactive') ? states : undefined;
    };
    expect(await until('all alerts to be inactive', isQuiet, SOON)).toBeDefined();
  });

  it('reports the share of reconciles that fail', async () => {
    const stop = new AbortController();
    const changes = (async () => {
      while (!stop.signal.aborted) await scene.addHost(`new-${crypto.randomUUID()}.example.com`);
    })();
    const share = measureOf(manifests(), 'HighReconciliationErrorRate');
    expect(share).toContain('rate(');
    const measured = valuesOf(`(${share}) >= 0`, 1).finally(() => {
      stop.abort();
    });
    const [values] = await Promise.all([measured, changes]);
    expect(values).toEqual([0]);
  });

  it('reports the share of its memory limit that each operator uses', async () => {
    const shares = await valuesOf(measureOf(manifests(), 'HighMemoryUsage'), 2);
    for (const share of shares) {
      expect(share).toBeGreaterThan(0.01);
      expect(share).toBeLessThan(0.8);
    }
  });

  it('notices that an endpoint is unhealthy, and of which object it is', async () => {
    // Nothing listens on port 1.
    const healthCheck = { enabled: true, type: 'TCP', interval: '1s', unhealthyThreshold: 1 };
    const { address, fqdn } = remoteOf(testCluster(), 'web-1');
    const fields = { name: 'down', meshIP: address, meshFQDN: fqdn, port: 1, protocol: 'TCP', healthCheck };
    const place = `${scene.namespace}/broken`;
    await scene.client.apply(named(meshEndpoints({ endpoints: [endpoint(fields)] }), place) as KubeObject);
    const labels = `namespace="${scene.namespace}", name="broken", endpoint="down"`;
    expect(await valuesOf(`mesh_gateway_endpoint_healthy{${labels}}`, 1)).toEqual([0]);
    const isPending = async () => {
      const { MeshEndpointUnhealthy: state } = await prometheus.alerts();
      return state === 'pending' ? state : undefined;
    };
    expect(await until('MeshEndpointUnhealthy to be pending', isPending, SOON)).toBe('pending');
  });

  it('notices that an extension server is down', async () => {
    const labels = { 'app.kubernetes.io/name': extensionServer };
    const [pod] = await podsWith(scene.client, PLACE.system, labels);
    if (!pod) throw new Error('no extension server runs');
    await scene.client.remove(refOf(pod));
    const isPending = async () => {
      const { ExtensionServerDown: state } = await prometheus.alerts();
      return state === 'pending' ? state : undefined;
    };
    expect(await until('ExtensionServerDown to be pending', isPending, SOON)).toBe('pending');
  });
});
