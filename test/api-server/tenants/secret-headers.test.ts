import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterNameIn, COMPONENTS, SECRET_READER } from '../../../src/api/names.ts';
import { SECRETS_OF_OBJECT } from '../../../src/api/shares.ts';
import {
  NOISY,
  printFigure,
  QUIET,
  startMeshProxy,
  startTenants,
  statusWhen,
  tailnetBehind,
  tenantEndpoints,
} from '../../support/cluster/tenants.ts';
import type { Tenants } from '../../support/cluster/tenants.ts';

const OPERATOR_NAMESPACE = 'mesh-system';
const ROLE = clusterNameIn(OPERATOR_NAMESPACE, SECRET_READER);
const RBAC = 'rbac.authorization.k8s.io';
let tenants: Tenants;

beforeAll(async () => {
  tenants = await startTenants();
  await tenants.admin.create({
    ...{ apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name: ROLE } },
    rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
  });
});
afterAll(() => tenants.end());

const header = (name: string, secret: string) => ({ name, secretKeyRef: { name: secret, key: 'k' } });

function checked(name: string, octets: string, headersFrom: readonly object[]) {
  const healthCheck = { enabled: true, interval: '1s', timeout: '1s', healthyThreshold: 1, headersFrom };
  const meshFQDN = `${name}.example.ts.net`;
  return { name, meshIP: `100.64.${octets}`, meshFQDN, port: 8080, protocol: 'HTTP', healthCheck };
}

/** An object that names 1,000 Secrets, none of which the operator may read. */
function greedy(name: string) {
  const endpoints = Array.from({ length: 63 }, (_, at) => {
    const headersFrom = Array.from({ length: 16 }, (_, of) => header(`h${of}`, `${name}-${at * 16 + of}`));
    return checked(`e${at}`, `${at >> 8}.${at & 255}`, headersFrom);
  });
  return tenantEndpoints(NOISY, name, endpoints);
}

/** Applies an object with a Secret for its check; returns after how many ms it is healthy. */
async function timeOf(name: string): Promise<number> {
  const { admin } = tenants;
  const metadata = { namespace: QUIET, name };
  await admin.create({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { k: 'token' } });
  const startedAt = performance.now();
  await admin.create(
    tenantEndpoints(QUIET, name, [checked('web', '200.1', [header('Authorization', name)])]),
  );
  await statusWhen(admin, metadata, ({ endpoints }) => endpoints?.[0]?.status === 'Healthy');
  return performance.now() - startedAt;
}

async function longestOf(names: readonly string[]): Promise<number> {
  const times: number[] = [];
  for (const name of names) times.push(await timeOf(name));
  return Math.max(...times);
}

const text = (ms: number) => `${Math.round(ms)} ms`;

describe('Secrets of two tenants', () => {
  it('are read at once for one, while those of the other are refused', async () => {
    const { admin } = tenants;
    await admin.create(tailnetBehind(await startMeshProxy(() => 200)));
    await tenants.startOperator();
    await admin.create({
      ...{
        apiVersion: `${RBAC}/v1`,
        kind: 'RoleBinding',
        metadata: { namespace: QUIET, name: SECRET_READER },
      },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: ROLE },
      subjects: [{ kind: 'ServiceAccount', name: COMPONENTS.operator, namespace: OPERATOR_NAMESPACE }],
    });
    const alone = await longestOf(['a1', 'a2', 'a3']);
    for (let at = 0; at < 16; at++) await admin.create(greedy(`x${at}`));
    const beside = await longestOf(['b1', 'b2', 'b3', 'b4', 'b5']);
    printFigure('longest time from an object to its first verdict', {
      alone: text(alone),
      beside: text(beside),
    });
    expect(beside).toBeLessThan(10_000);
    const limited = await statusWhen(admin, { namespace: NOISY, name: 'x0' }, ({ endpoints }) =>
      endpoints?.find(({ error }) => error?.includes(`more than ${SECRETS_OF_OBJECT} Secrets`)),
    );
    expect(limited.name).toBe('e4');
  });
});
