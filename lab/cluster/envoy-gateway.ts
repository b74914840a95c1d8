import { execFile } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import type { BinaryName } from '../parts/parts.ts';
import { markOf } from '../process/process-table.ts';
import { imageOf } from './images/table.ts';
import { parseManifests } from '../kube/manifests.ts';
import type { KubeObject } from '../kube/object.ts';

const run = promisify(execFile);

/** The namespace of Envoy Gateway, and its GatewayClass. */
export const ENVOY_GATEWAY = { namespace: 'envoy-gateway-system', gatewayClass: 'mesh' } as const;

/** All objects of Envoy Gateway's own chart, the CRDs of Gateway API, and a GatewayClass. */
export async function renderEnvoyGateway(
  folder: string,
  pathOf: (name: BinaryName) => string,
): Promise<readonly KubeObject[]> {
  const chart = join(folder, 'gateway-helm');
  cpSync(pathOf('gateway-helm'), chart, { recursive: true });
  writeFileSync(join(chart, 'values.yaml'), defaultValues(chart));
  const values = join(folder, 'envoy-gateway-values.yaml');
  writeFileSync(values, stringify(VALUES));
  const { namespace } = ENVOY_GATEWAY;
  const args = ['template', 'eg', chart, `--namespace=${namespace}`, `--values=${values}`, '--include-crds'];
  const { stdout } = await run(pathOf('helm'), args, {
    maxBuffer: 64 * 1024 * 1024,
    env: { HOME: folder, PATH: '/usr/bin:/bin', ...markOf(folder) },
  });
  const rendered = parseManifests(stdout, 'the chart of Envoy Gateway');
  return [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, ...rendered, GATEWAY_CLASS];
}

/** The chart has a template of its values with two variables that the release process sets. */
function defaultValues(chart: string): string {
  return readFileSync(join(chart, 'values.tmpl.yaml'), 'utf8')
    .replace(/\$\{GatewayImage\}/g, imageOf('envoy-gateway'))
    .replace(/\$\{GatewayImagePullPolicy\}/g, 'IfNotPresent');
}

const GATEWAY_CLASS: KubeObject = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'GatewayClass',
  metadata: { name: ENVOY_GATEWAY.gatewayClass },
  spec: { controllerName: 'gateway.envoyproxy.io/gatewayclass-controller' },
};

/** Readiness is probed each second instead of each ten, and pods end without draining. */
const QUICK_ENVOY = {
  type: 'StrategicMerge',
  value: {
    spec: {
      template: {
        spec: {
          terminationGracePeriodSeconds: 2,
          containers: ['envoy', 'shutdown-manager'].map(name => ({
            name,
            startupProbe: { periodSeconds: 1 },
            readinessProbe: { periodSeconds: 1 },
          })),
        },
      },
    },
  },
};

const VALUES = {
  topologyInjector: { enabled: false },
  deployment: { envoyGateway: { readinessProbe: { periodSeconds: 1 } } },
  config: {
    envoyGateway: {
      provider: { type: 'Kubernetes', kubernetes: { leaderElection: { disable: true } } },
      extensionApis: { enableBackend: true },
      envoyProxy: {
        provider: {
          type: 'Kubernetes',
          kubernetes: {
            // Without a load balancer a Gateway has the address of its Service.
            envoyService: { type: 'ClusterIP' },
            envoyDeployment: {
              // By default it requests 110m and 544Mi, so a small machine has room for a few Envoys only.
              container: { image: imageOf('envoy'), resources: { requests: { cpu: '10m', memory: '64Mi' } } },
              patch: QUICK_ENVOY,
            },
          },
        },
        shutdown: { drainTimeout: '1s', minDrainDuration: '0s' },
      },
    },
  },
};
