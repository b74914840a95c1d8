import { afterAll, beforeAll, expect, it } from 'vitest';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { waitFor } from '../../../lab/process/wait.ts';
import {
  NOISY,
  startMeshProxy,
  startTenants,
  statusWhen,
  tailnetBehind,
  tenantEndpoints,
  tenantRoute,
} from '../../support/cluster/tenants.ts';
import type { Tenants } from '../../support/cluster/tenants.ts';
import { followEndpoints } from '../../support/grpc/followed-endpoints.ts';

let tenants: Tenants;
beforeAll(async () => {
  tenants = await startTenants();
});
afterAll(() => tenants.end());

const SETTINGS = {
  KUBERNETES_SERVICE_HOST: '100.96.0.1',
  REFUSED_ADDRESSES: '100.88.0.0/16',
  EXTERNAL_TARGETS_ALLOW: '10.1.0.0/16',
};

const object = { namespace: NOISY, name: 'web' };

/** The addresses that a user has written into the status, by endpoint. */
const WRITTEN: Readonly<Record<string, readonly string[]>> = {
  public: ['9.9.9.9'],
  allowed: ['10.1.2.3'],
  loopback: ['127.0.0.1'],
  pod: ['10.244.1.7'],
  metadata: ['169.254.169.254'],
  'api-server': ['100.96.0.1'],
  refused: ['100.88.0.1'],
  partly: ['8.8.8.8', '10.244.1.8'],
};

const targets = Object.keys(WRITTEN).map((name, at) => ({
  ...{ name, meshIP: `100.64.1.${at + 1}`, meshFQDN: `${name}.example.ts.net`, port: 80, protocol: 'HTTP' },
  externalTarget: `${name}.service.example:80`,
}));

/** Checked endpoints in the tailnet: a device, the API server, and what the configuration refuses. */
const inTailnet = ['100.64.0.1', '100.96.0.1', '100.88.0.2'].map((meshIP, at) => ({
  ...{ name: `mesh-${at}`, meshIP, meshFQDN: `mesh-${at}.example.ts.net`, port: 80, protocol: 'HTTP' },
  healthCheck: { enabled: true },
}));

const OPEN = ['9.9.9.9:80', '10.1.2.3:80', '100.64.0.1:80'].sort();

it('a hand-written status and a meshIP open no address, with and without the operator', async () => {
  const { admin, startExtensionServer, startOperator } = tenants;
  const dialled = new Set<string>();
  const proxy = await startMeshProxy(target => {
    dialled.add(target);
    return 200;
  });
  await admin.apply(tailnetBehind(proxy));
  await admin.apply(tenantEndpoints(object.namespace, object.name, [...targets, ...inTailnet]));
  await admin.apply(tenantRoute(object.namespace, object.name));
  const entries = targets.map(({ name, externalTarget }) => ({
    ...{ name, externalTarget, status: 'Healthy', resolvedAddresses: WRITTEN[name] },
  }));
  const lying = { name: 'mesh-0', status: 'Healthy', resolvedAddresses: ['9.9.9.8'] };
  await admin.patchStatus(
    { apiVersion: API_VERSION, kind: 'MeshEndpoints', ...object },
    { endpoints: [...entries, lying] },
  );
  const client = await startExtensionServer(SETTINGS);
  const endpoints = followEndpoints(client, `${NOISY}/web`, `httproute/${NOISY}/web/rule/0`);
  const first = await waitFor('the endpoints', () => Promise.resolve(endpoints()));
  expect([...first].sort()).toEqual(OPEN);

  await startOperator(SETTINGS);
  const status = await statusWhen(admin, object, found =>
    found.endpoints?.some(({ name, lastChecked }) => name === 'mesh-0' && lastChecked !== undefined)
      ? found
      : undefined,
  );
  const errorOf = (name: string) => status.endpoints?.find(entry => entry.name === name)?.error;
  expect(errorOf('mesh-1')).toContain('100.96.0.1 is an address of the API server');
  expect(errorOf('mesh-2')).toContain('100.88.0.2 is in 100.88.0.0/16 of REFUSED_ADDRESSES');
  expect(errorOf('pod')).toContain('10.244.1.7, an address of pod.service.example, is not public');
  const resolved = status.conditions?.find(({ type }) => type === 'RoutesResolved');
  expect(resolved).toMatchObject({ status: 'False', reason: 'AddressRefused' });
  expect([...dialled]).toEqual(['100.64.0.1:80']);
  expect([...(endpoints() ?? [])].sort()).toEqual(OPEN);
});
