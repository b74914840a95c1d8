import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GROUP, kinds } from '../../../src/api/generated/kinds.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { refOf } from '../../../lab/kube/object.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitForAbsence } from '../../../lab/kube/wait.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';

const client = kubeClient(sharedApiServer().access);
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace(client);
});
afterAll(async () => {
  await removeNamespace(client, namespace);
});

const { kind } = kinds.MeshEndpoints;
const backendRef = { group: GROUP, kind, name: 'web', port: 8080, weight: 3 };

const ROUTE_KINDS: readonly {
  readonly routeKind: string;
  readonly version?: string;
  readonly hostnames?: readonly string[];
}[] = [
  { routeKind: 'HTTPRoute', hostnames: ['web.example.com'] },
  { routeKind: 'GRPCRoute', hostnames: ['grpc.example.com'] },
  { routeKind: 'TLSRoute', hostnames: ['tls.example.com'] },
  { routeKind: 'TCPRoute' },
  { routeKind: 'TCPRoute', version: 'v1alpha2' },
  { routeKind: 'UDPRoute' },
];

type RouteSpec = { readonly rules: readonly { readonly backendRefs: unknown }[] };

function route(
  { routeKind, version = 'v1', hostnames }: (typeof ROUTE_KINDS)[number],
  ref: unknown,
): KubeObject {
  return {
    apiVersion: `gateway.networking.k8s.io/${version}`,
    kind: routeKind,
    metadata: { namespace, generateName: 'mesh-' },
    spec: {
      parentRefs: [{ name: 'public' }],
      ...(hostnames ? { hostnames } : {}),
      rules: [{ backendRefs: [ref] }],
    },
  };
}

describe.each(ROUTE_KINDS)('a $routeKind', kindOfRoute => {
  it('accepts a MeshEndpoints as its backend, and keeps the reference unchanged', async () => {
    const created = await client.create(route(kindOfRoute, backendRef), {
      fieldValidation: 'Strict',
    });
    const ref = refOf(created);
    const { rules } = (await client.get(ref))['spec'] as RouteSpec;
    expect(rules.map(rule => rule.backendRefs)).toEqual([[backendRef]]);
    await client.remove(ref);
    await waitForAbsence(client, ref);
  });

  it('is refused with a weight that its own schema does not allow', async () => {
    const created = client.create(route(kindOfRoute, { ...backendRef, weight: 1_000_001 }));
    await expect(created).rejects.toMatchObject({
      status: 422,
      reason: 'Invalid',
      causes: expect.arrayContaining([
        expect.objectContaining({ field: 'spec.rules[0].backendRefs[0].weight' }),
      ]) as unknown,
    });
  });
});
