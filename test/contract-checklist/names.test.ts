import { mkdirSync } from 'node:fs';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { MESH_POD, OAUTH_SECRET } from '../../src/api/names.ts';
import { formatFault } from '../../src/api/validation/fault.ts';
import { validate } from '../../src/api/validation/validate.ts';
import { operatorAccess } from '../../src/controllers/registry.ts';
import {
  controllerSettings,
  extensionSettings,
  telemetrySettings,
} from '../../src/process/declared-settings.ts';
import type { Settings } from '../../src/process/settings.ts';
import { reportResults } from '../../src/health/results.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { healthMetrics } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import { bytesField } from '../../src/extension/wire.ts';
import { extensionServerAccess } from '../../src/traffic/access.ts';
import { healthCheckOf } from '../../src/traffic/settings/envoy-health-check.ts';
import { named } from '../support/declared.ts';
import { eventually } from '../support/eventually.ts';
import { makeFolders } from '../support/files/folder.ts';
import { testClient } from '../support/grpc/client.ts';
import { tcpCheck } from '../support/health/checks.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';
import { productKinds } from '../support/schema/product-schemas.ts';
import { startHere } from '../support/standalone/served-here.ts';
import { requestPath } from '../support/standalone/served-process.ts';
import { at, containersOf, listAt } from '../support/synth/parts.ts';
import { objectOf, objectsIn, synthesized } from '../support/synth/synthesized.ts';
import { parseExposition, valueOf } from '../support/telemetry/exposition.ts';

/** The object as the API server would store it. */
function stored(kind: 'MeshEndpoints' | 'MeshTailnet', object: unknown): unknown {
  const verdict = validate(kind, object);
  if (!verdict.valid) throw new Error(JSON.stringify(verdict.faults));
  return verdict.object;
}

describe('MeshEndpoints', () => {
  it('has group, version, kind and scope', () => {
    const kind = productKinds().find(({ name }) => name === 'MeshEndpoints');
    expect(kind).toMatchObject({ group: 'mesh-gateway.dev', version: 'v1alpha1', scope: 'Namespaced' });
    expect(`${kind?.plural}.${kind?.group}`).toBe('meshendpoints.mesh-gateway.dev');
  });

  it.each([
    ['tagSelectors', { tagSelectors: [{ key: 'web', operator: 'Exists' }] }],
    [
      'serviceDiscovery',
      { serviceDiscovery: { vipServices: [{ name: 'web', port: 443, targetEndpoint: 'web' }] } },
    ],
  ])('needs no endpoints with %s', (_field, given) => {
    expect(validate('MeshEndpoints', meshEndpoints({ endpoints: undefined, ...given })).valid).toBe(true);
    const verdict = validate('MeshEndpoints', meshEndpoints({ endpoints: undefined }));
    expect(verdict.valid ? [] : verdict.faults.map(formatFault)).toEqual([
      expect.stringContaining(
        'endpoints is required unless tagSelectors or serviceDiscovery.vipServices is given',
      ),
    ]);
  });

  it('has the defaults of the contract', () => {
    const object = meshEndpoints({ endpoints: [endpoint({ healthCheck: {} })] });
    expect(at(stored('MeshEndpoints', object), 'spec', 'endpoints', 0, 'healthCheck')).toEqual({
      ...{ enabled: false, path: '/', interval: '30s', timeout: '10s' },
      ...{ healthyThreshold: 2, unhealthyThreshold: 3, expectedStatus: 200 },
    });
    const types = ['HTTP', 'HTTPS', 'gRPC', 'TCP', 'TLS', 'UDP'].map(protocol => {
      const checked = meshEndpoints({ endpoints: [endpoint({ protocol, healthCheck: { enabled: true } })] });
      const verdict = validate('MeshEndpoints', named(checked, 'default/web'));
      const [only] = (verdict.valid ? verdict.object.spec.endpoints : undefined) ?? [];
      return only && healthCheckOf({ endpoint: only })?.type;
    });
    expect(types).toEqual(['HTTP', 'HTTP', 'GRPC', 'HTTP', 'HTTP', 'UDP']);
  });
});

describe('the names', () => {
  it('are those of the containers', () => {
    const objects = objectsIn(synthesized({}));
    const containers = ['mesh-operator', 'mesh-extension-server'].map(name =>
      containersOf(objectOf(objects, 'Deployment', name)).map(container => at(container, 'name')),
    );
    expect(containers).toEqual([['manager'], ['extension-server']]);
    expect(MESH_POD.container).toBe('meshd');
  });

  it('are those of the Secret with the credentials', () => {
    expect(OAUTH_SECRET).toBe('mesh-oauth');
    expect(at(stored('MeshTailnet', meshTailnet()), 'spec', 'oauth')).toMatchObject({
      secretRef: { name: 'mesh-oauth' },
      ...{ clientIdKey: 'client-id', clientSecretKey: 'client-secret' },
    });
  });
});

describe('the settings', () => {
  it('have the defaults of the contract', () => {
    const all: Settings = { ...telemetrySettings, ...controllerSettings, ...extensionSettings };
    const defaults = new Map(Object.values(all).map(setting => [setting.name, setting.default]));
    expect(Object.fromEntries(defaults)).toMatchObject({
      CONTROLLER_MAX_CONCURRENT_RECONCILES: '10',
      SYNC_PERIOD: '30s',
      LOG_LEVEL: 'info',
      MAX_MESSAGE_SIZE: '100M',
      GRPC_KEEPALIVE_TIME: '30s',
      METRICS_ADDRESS: ':8080',
      GRPC_ADDRESS: ':5005',
    });
    expect(telemetrySettings.logLevel.parse('LOG_LEVEL', 'debug')).toBe('debug');
  });
});

describe('the metrics', () => {
  it('include those of gRPC, in which a call is recorded', async () => {
    const folders = makeFolders();
    mkdirSync(folders.folder);
    const running = await startHere(folders);
    const { metricsPort } = await running.line('serving metrics and probes');
    const client = testClient(await running.started);
    const service = bytesField(1, Buffer.from('unknown'));
    expect((await client.call('/grpc.health.v1.Health/Check', service)).code).toBe(status.NOT_FOUND);
    const recorded = async (name: string) => {
      const [, text] = await requestPath(metricsPort, '/metrics');
      const labels = { method: '/grpc.health.v1.Health/Check', code: 'NOT_FOUND' };
      return valueOf(parseExposition(text), name, labels);
    };
    await eventually(async () => expect(await recorded('grpc_server_requests_total')).toBe(1));
    expect(await recorded('grpc_server_errors_total')).toBe(1);
    expect(await recorded('grpc_server_request_duration_seconds_count')).toBe(1);
    expect(await recorded('grpc_server_request_duration_seconds_sum')).toBeGreaterThan(0);
  });
});

describe('the metrics of health checks', () => {
  const labels = { tailnet: 'home', type: 'TCP' };

  it.each([
    { name: 'health_check_success_total', sample: 'health_check_success_total', labels, value: 1 },
    { name: 'health_check_failure_total', sample: 'health_check_failure_total', labels, value: 2 },
    {
      name: 'health_check_duration_seconds',
      sample: 'health_check_duration_seconds_count',
      labels: { type: 'TCP' },
      value: 3,
    },
  ])('include $name, which counts results but unknown ones', async ({ sample, labels, value }) => {
    const registry = createRegistry({ metrics: healthMetrics, version: '1.2.3' });
    const log = createLog({ level: 'error', to: { write: () => undefined } });
    const report = reportResults({ record: registry.record, log, clock: systemClock });
    const check = { ...tcpCheck('100.64.0.1'), tailnet: 'home' };
    report(check, { is: 'success' }, 5);
    report(check, { is: 'failure', error: 'connection refused', code: 'ECONNREFUSED' }, 5);
    report(check, { is: 'failure', error: 'connection refused', code: 'ECONNREFUSED' }, 5);
    report(check, { is: 'unknown', why: 'no mesh pod is ready' }, 5);
    expect(valueOf(parseExposition(await registry.text()), sample, labels)).toBe(value);
  });
});

describe('the rights', () => {
  it('include those of the contract', () => {
    const verbsOf = (rules: typeof operatorAccess.unused) =>
      rules.filter(({ resources }) => resources.includes('meshendpoints')).flatMap(({ verbs }) => verbs);
    expect(verbsOf(operatorAccess.unused)).toContain('create');
    expect(verbsOf(extensionServerAccess.unused)).toContain('get');
    const objects = objectsIn(synthesized({}));
    const roles = ['mesh-operator', 'mesh-extension-server'].flatMap(name => [
      { name, role: name },
      { name, role: `${name}-unused` },
    ]);
    for (const { name, role } of roles) {
      const binding = objectOf(objects, 'ClusterRoleBinding', `${role}.mesh-system`);
      expect(listAt(binding, 'subjects')).toEqual([
        {
          kind: 'ServiceAccount',
          namespace: 'mesh-system',
          name: objectOf(objects, 'ServiceAccount', name).metadata.name,
        },
      ]);
    }
  });
});
