import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import type { Route } from '../../../src/api/objects/gateway-api.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { ROUTE_KINDS } from '../../../src/api/key.ts';
import { clusterNameIn, COMPONENTS, NAMESPACE, SECRET_READER } from '../../../src/api/names.ts';
import { addressText } from '../../../src/api/socket-address.ts';
import type {
  DeviceEventReason,
  EndpointEventReason,
} from '../../../src/controllers/mesh-endpoints/events.ts';
import { endpointMetrics, healthMetrics } from '../../../src/telemetry/metrics.ts';
import type { MetricDeclarations } from '../../../src/telemetry/metrics.ts';
import { healthCheckOf } from '../../../src/traffic/settings/envoy-health-check.ts';
import { resourceOf } from '../../support/store/resources.ts';
import { configMapObject, managedTailnet, relaysObject } from '../../support/traffic/objects.ts';
import { CERTIFICATE } from '../../support/traffic/certificates.ts';
import { tracedResources } from '../../support/tools/routes.ts';
import { checkText } from '../../support/tools/checked.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type Example = { readonly text: string; readonly object: MeshEndpoints; readonly route: Route };

const page = readFileSync('docs/mesh-endpoints.md', 'utf8');
const examples = [...page.matchAll(/^```yaml\n(apiVersion: mesh-gateway.*?)^```$/gms)].map(([, text = '']) =>
  readExample(text),
);

function readExample(text: string): Example {
  const [object, route] = parseAllDocuments(text).map(document => {
    const written = document.toJS() as { readonly metadata: object };
    return resourceOf({ ...written, metadata: { namespace: 'default', ...written.metadata } });
  });
  return { text, object: object as MeshEndpoints, route: route as Route };
}

/** The object with the relay ports and addresses that the operator writes. */
function withStatus(object: MeshEndpoints): MeshEndpoints {
  const endpoints = (object.spec.endpoints ?? []).map(endpoint => {
    const { name, protocol, externalTarget } = endpoint;
    const entry = { name, protocol, status: 'Healthy', address: addressText(endpoint) } as const;
    if (externalTarget === undefined) return protocol === 'UDP' ? { ...entry, relayPort: 20_053 } : entry;
    return { ...entry, externalTarget, resolvedAddresses: ['9.9.9.9'] };
  });
  return { ...object, status: { endpoints } };
}

describe('the examples of docs/mesh-endpoints.md', () => {
  it.each(examples)('are valid, without a warning: $object.metadata.name', ({ text }) => {
    expect(checkText(text)).toEqual({ findings: [], objects: 2 });
  });

  it.each(examples)('carry the traffic of their route: $object.metadata.name', ({ object, route }) => {
    const ca = configMapObject('default/internal-ca', { 'ca.crt': CERTIFICATE });
    const relays = relaysObject('main', { '10.1.0.1': 'ready' });
    const world = [managedTailnet(), relays, ca].map(resourceOf);
    const [found] = tracedResources([...world, withStatus(object), route], { podNamespace: NAMESPACE });
    expect(found?.problems).toEqual([]);
    expect(found?.reaches).toBe('all');
  });

  it('have every protocol, every type of check and every kind of route', () => {
    const endpoints = examples.flatMap(({ object }) => object.spec.endpoints ?? []);
    const protocols = new Set(endpoints.map(({ protocol }) => protocol));
    expect([...protocols].sort()).toEqual(['HTTP', 'HTTPS', 'TCP', 'TLS', 'UDP', 'gRPC']);
    const checks = new Set(endpoints.flatMap(endpoint => healthCheckOf({ endpoint })?.type ?? []));
    expect([...checks].sort()).toEqual(['GRPC', 'HTTP', 'TCP', 'UDP']);
    const kinds = new Set(examples.map(({ route }) => route.kind));
    expect([...kinds].sort()).toEqual([...ROUTE_KINDS].sort());
  });
});

// A reason that is added to its type and not here does not compile.

const ENDPOINT_EVENTS: Readonly<Record<EndpointEventReason | DeviceEventReason, true>> = {
  EndpointHealthy: true,
  EndpointUnhealthy: true,
  DevicesDiscovered: true,
  DevicesLeft: true,
};

/** The cells of the rows of the table in a section. */
function rowsIn(title: string): readonly (readonly string[])[] {
  const [, section = ''] = page.split(new RegExp(`\\n##+ ${title}\\n`));
  const [table = ''] = section.split(/\n##+ /);
  const lines = table.split('\n').filter(line => line.startsWith('| '));
  return lines.slice(2).map(line => line.split('|').map(cell => cell.replaceAll('`', '').trim()));
}

describe('docs/mesh-endpoints.md', () => {
  it('has errors that the code writes, each with cause and fix', () => {
    const code = ['src/health', 'src/controllers/mesh-endpoints', 'src/traffic']
      .flatMap(folder =>
        readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(file => join(folder, file)),
      )
      .filter(file => file.endsWith('.ts'))
      .map(file => readFileSync(file, 'utf8'))
      .join('\n');
    const rows = rowsIn('Errors');
    expect(rows.filter(([, , cause, fix]) => cause === '' || fix === '')).toEqual([]);
    const errors = rows.flatMap(([, texts = '']) => texts.split(/, (?!expected)/));
    expect(errors.length).toBeGreaterThan(10);
    // Without numbers and names, which differ.
    const constant = errors.map(text => text.replace(/\d.*|NAME.*|NOT_SERVING$/, '').trim());
    expect(constant.filter(text => !code.includes(text))).toEqual([]);
  });

  it('has the RoleBinding by which the operator may read Secrets', () => {
    const [, text = ''] = /^```yaml\n(apiVersion: rbac.*?)^```$/ms.exec(page) ?? [];
    expect(parse(text)).toMatchObject({
      metadata: { namespace: 'default' },
      roleRef: { kind: 'ClusterRole', name: clusterNameIn(NAMESPACE, SECRET_READER) },
      subjects: [{ kind: 'ServiceAccount', name: COMPONENTS.operator, namespace: NAMESPACE }],
    });
  });

  it('has a row for each metric of health', () => {
    const rows = rowsIn('Metrics and the alert').flatMap(([, names = '']) => names.split(', '));
    const metrics: MetricDeclarations = { ...healthMetrics, ...endpointMetrics };
    expect(rows.sort()).toEqual(
      Object.values(metrics)
        .map(({ name }) => name)
        .sort(),
    );
  });

  it('has a row for each Event about an endpoint or a device', () => {
    const rows = rowsIn('Events');
    const warnings = rows.filter(([, , type]) => type === 'Warning');
    expect(warnings.length).toBeGreaterThan(2);
    expect(warnings.filter(([, , , cause, fix]) => cause === '' || fix === '')).toEqual([]);
    const reasons = rows.map(([, reason = '']) => reason);
    const documented = reasons.filter(reason => reason in ENDPOINT_EVENTS);
    expect(documented.sort()).toEqual(Object.keys(ENDPOINT_EVENTS).sort());
  });
});
