import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { NETWORK } from '../../../../lab/cluster/network.ts';
import type { KubeClient } from '../../../../lab/kube/client.ts';
import { readManifests } from '../../../../lab/kube/manifests.ts';
import type { KubeObject } from '../../../../lab/kube/object.ts';
import { podsWith } from '../../../../lab/kube/pods.ts';
import { guard } from '../../../../lab/process/guard.ts';
import { freePorts } from '../../../../lab/process/ports.ts';
import { until } from '../../../../lab/process/wait.ts';

const PROGRAM = '/usr/bin/prometheus';

/** Whether tests that need Prometheus are skipped; in CI a missing tool is a failure. */
export const lacksPrometheus = !existsSync(PROGRAM) && process.env['CI'] === undefined;

/** A Prometheus that reads from pods and evaluates alerts. */
export interface Prometheus {
  /** The state of each alert: inactive, pending or firing; fails where a rule cannot be evaluated. */
  readonly alerts: () => Promise<Readonly<Record<string, string>>>;
  /** The series of an expression: labels and value of each. */
  readonly query: (expression: string) => Promise<readonly Sample[]>;
  readonly end: () => void;
}

/** A sample of a series. */
type Sample = {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
};

/**
 * Starts a Prometheus that scrapes and evaluates every second what ServiceMonitors and rules declare, as the
 * Prometheus operator would configure it.
 */
export async function startPrometheus(client: KubeClient, manifests: string): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-prometheus-'));
  const objects = readManifests(manifests);
  const groups = ofKind(objects, 'PrometheusRule').map(({ spec }) => spec as object);
  const jobs = await Promise.all(ofKind(objects, 'ServiceMonitor').map(monitor => jobOf(client, monitor)));
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: ['rules.yaml'],
    scrape_configs: [...jobs, kubelet(folder, client)],
  };
  writeFileSync(join(folder, 'rules.yaml'), stringify(groups[0]));
  writeFileSync(join(folder, 'prometheus.yaml'), stringify(config));
  const [port = 0] = await freePorts(1);
  const args = [`--config.file=${folder}/prometheus.yaml`, `--storage.tsdb.path=${folder}/data`];
  const child = spawn(PROGRAM, [...args, `--web.listen-address=127.0.0.1:${port}`], { stdio: 'ignore' });
  const cleaner = guard(['kill', '-9', String(child.pid)], folder);
  const api = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    const { data } = (await response.json()) as { readonly data: unknown };
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return data;
  };
  await until('Prometheus to answer', () => api('status/buildinfo'));
  return {
    alerts: async () => statesOf(await api('rules')),
    query: async expression => {
      const data = await api(`query?query=${encodeURIComponent(expression)}`);
      return (data as { readonly result: readonly Sample[] }).result;
    },
    end: () => {
      child.kill('SIGKILL');
      cleaner.release();
      rmSync(folder, { recursive: true });
    },
  };
}

const MODULE = 'github.com/prometheus-operator/prometheus-operator';

/** The CRDs of the Prometheus operator that we create objects of, from its Go module. */
export async function monitoringKinds(): Promise<readonly KubeObject[]> {
  const cwd = join(import.meta.dirname, 'prometheus-operator');
  const { stdout } = await promisify(execFile)('go', ['mod', 'download', '-json', MODULE], { cwd });
  const { Dir: folder } = JSON.parse(stdout) as { readonly Dir: string };
  return ['podmonitors', 'prometheusrules', 'servicemonitors'].flatMap(kind =>
    readManifests(join(folder, 'example/prometheus-operator-crd', `monitoring.coreos.com_${kind}.yaml`)),
  );
}

function ofKind(objects: readonly KubeObject[], wanted: string): readonly KubeObject[] {
  return objects.filter(({ kind }) => kind === wanted);
}

type Monitor = {
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly namespaceSelector: { readonly matchNames: readonly string[] };
  readonly endpoints: readonly {
    readonly port: string;
    readonly path: string;
    readonly honorLabels?: boolean;
  }[];
};

type ServiceSpec = {
  readonly selector: Readonly<Record<string, string>>;
  readonly ports: readonly { readonly name: string; readonly port: number }[];
};

/**
 * The scrape configuration that the Prometheus operator makes of a ServiceMonitor: the job has the name of the
 * Service, and each pod is a target.
 */
async function jobOf(client: KubeClient, { spec, metadata }: KubeObject): Promise<object> {
  const { selector, namespaceSelector, endpoints } = spec as Monitor;
  const [namespace = ''] = namespaceSelector.matchNames;
  const [endpoint] = endpoints;
  const labelSelector = Object.entries(selector.matchLabels)
    .map(pair => pair.join('='))
    .join();
  const services = await client.list({ apiVersion: 'v1', kind: 'Service', namespace }, { labelSelector });
  const [service] = services;
  const found = (service?.['spec'] as ServiceSpec | undefined)?.ports.find(
    ({ name }) => name === endpoint?.port,
  );
  if (!service || !found || services.length !== 1) throw new Error(`${metadata.name ?? ''} finds no port`);
  const pods = await podsWith(client, namespace, (service['spec'] as ServiceSpec).selector);
  const addresses = pods.map(({ status }) => (status as { readonly podIP: string }).podIP);
  return {
    job_name: service.metadata.name,
    metrics_path: endpoint?.path,
    honor_labels: endpoint?.honorLabels ?? false,
    static_configs: [
      {
        targets: addresses.map(address => `${address}:${found.port}`),
        labels: { namespace, service: service.metadata.name, endpoint: found.name },
      },
    ],
  };
}

/** The memory of pods by cAdvisor's metrics. */
function kubelet(folder: string, { access }: KubeClient): object {
  const file = join(folder, 'token');
  writeFileSync(file, access.token, { mode: 0o600 });
  return {
    job_name: 'kubelet',
    scheme: 'https',
    metrics_path: '/metrics/cadvisor',
    scrape_interval: '5s',
    authorization: { credentials_file: file },
    tls_config: { insecure_skip_verify: true },
    static_configs: [{ targets: [`${NETWORK.inner}:10250`] }],
  };
}

type Rules = {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly name: string;
      readonly state: string;
      readonly health: string;
      readonly lastError?: string;
    }[];
  }[];
};

function statesOf(data: unknown): Readonly<Record<string, string>> {
  const rules = (data as Rules).groups.flatMap(group => group.rules);
  const wrong = rules.filter(({ health }) => health !== 'ok');
  if (wrong.length > 0 || rules.length === 0) throw new Error(`not evaluated: ${JSON.stringify(wrong)}`);
  return Object.fromEntries(rules.map(({ name, state }) => [name, state]));
}

/** The expression of an alert without the threshold at its end, so that it returns the measured value. */
export function measureOf(manifests: string, alert: string): string {
  const text = readFileSync(join(manifests, 'rules.yaml'), 'utf8');
  const [, found = ''] = new RegExp(`alert: ${alert}\\n.*?expr: (.*?) > [0-9.]+\\n`, 's').exec(text) ?? [];
  return found;
}
