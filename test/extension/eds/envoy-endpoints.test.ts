import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { encodeAssignment } from '../../../src/extension/eds/envoy-endpoints.ts';
import { AddressSchema } from '../../../src/extension/proto/envoy/config/core/v3_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../../src/extension/proto/envoy/config/endpoint/v3_pb.ts';
import type { LbEndpoint } from '../../../src/extension/proto/envoy/config/endpoint/v3_pb.ts';
import type { EnvoyEndpoint } from '../../../src/traffic/endpoints/load-assignment.ts';
import { assignment, direct, endpoint } from '../../support/extension/assignments.ts';
import { CLUSTER } from '../../support/extension/clusters.ts';

function read(bytes: Uint8Array) {
  return fromBinary(ClusterLoadAssignmentSchema, bytes);
}

/** The endpoints of an assignment of one locality. */
function encodedEndpoints(...endpoints: readonly EnvoyEndpoint[]): readonly LbEndpoint[] {
  const localities = [{ backend: 0, weight: 1, priority: 0, endpoints }];
  return read(encodeAssignment({ cluster: CLUSTER, localities })).endpoints.flatMap(
    ({ lbEndpoints }) => lbEndpoints,
  );
}

describe('an assignment', () => {
  it('has a locality for each backend and priority, with the region that Envoy Gateway sets', () => {
    const { clusterName, endpoints } = read(encodeAssignment(assignment()));
    expect(clusterName).toBe(CLUSTER);
    const localities = endpoints.map(({ locality, priority, loadBalancingWeight, lbEndpoints }) => [
      locality?.region,
      priority,
      loadBalancingWeight,
      lbEndpoints.length,
    ]);
    expect(localities).toEqual([
      [`${CLUSTER}/backend/0`, 0, 90, 4],
      [`${CLUSTER}/backend/0`, 1, 90, 1],
      [`${CLUSTER}/backend/2`, 0, 10, 1],
    ]);
  });

  it('has equal bytes for equal input', () => {
    expect(encodeAssignment(assignment())).toEqual(encodeAssignment(assignment()));
  });

  it('is encoded even without endpoints, so that Envoy does not wait for it', () => {
    expect(read(encodeAssignment({ cluster: CLUSTER, localities: [] }))).toMatchObject({
      clusterName: CLUSTER,
      endpoints: [],
    });
  });

  it('sets the region of a cluster of one backend to the name of the cluster', () => {
    const region = (cluster: string) =>
      read(encodeAssignment({ cluster, localities: [{ backend: 1, weight: 1, priority: 0, endpoints: [] }] }))
        .endpoints[0]?.locality?.region;
    expect(region(`${CLUSTER}/backend/1`)).toBe(`${CLUSTER}/backend/1`);
    expect(region(`${CLUSTER}/backend/11`)).toBe(`${CLUSTER}/backend/11/backend/1`);
  });
});

describe('an endpoint', () => {
  it('has its address and port', () => {
    const address = {
      case: 'socketAddress',
      value: { address: '100.64.0.7', portSpecifier: { value: 8080 } },
    };
    expect(encodedEndpoints(endpoint())).toMatchObject([
      { hostIdentifier: { value: { address: { address } } } },
    ]);
  });

  it('has its proxy in the metadata that Envoy reads', () => {
    const [one] = encodedEndpoints(endpoint());
    const proxy = one?.metadata?.typedFilterMetadata['envoy.http11_proxy_transport_socket.proxy_address'];
    expect(proxy && anyUnpack(proxy, AddressSchema)?.address.value).toMatchObject({
      address: '10.1.2.3',
      portSpecifier: { case: 'portValue', value: 1055 },
    });
  });

  it('has no proxy metadata if Envoy connects directly', () => {
    const [one] = encodedEndpoints(direct());
    expect(one?.metadata?.typedFilterMetadata).toEqual({});
  });

  it('has its transport socket match in the metadata that Envoy reads', () => {
    const [one, other] = encodedEndpoints(endpoint({ socketMatch: '0a1b' }), endpoint());
    expect(one?.metadata?.filterMetadata).toEqual({ 'envoy.transport_socket_match': { mesh: '0a1b' } });
    expect(other?.metadata?.filterMetadata).toEqual({});
  });

  it('of another backend has no health check configuration', () => {
    const [one] = encodedEndpoints(endpoint({ healthCheckHost: '' }));
    expect(one?.hostIdentifier.value).not.toHaveProperty('healthCheckConfig.hostname');
  });

  it('has a hostname only if its certificate must match it, and always the Host of health checks', () => {
    const [one, other] = encodedEndpoints(
      endpoint({ hostname: 'web.example.ts.net' }),
      endpoint({ isHealthCheckDisabled: true }),
    );
    expect(one?.hostIdentifier.value).toMatchObject({
      hostname: 'web.example.ts.net',
      healthCheckConfig: { hostname: 'web.example.ts.net', disableActiveHealthCheck: false },
    });
    expect(other?.hostIdentifier.value).toMatchObject({
      hostname: '',
      healthCheckConfig: { hostname: 'web.example.ts.net', disableActiveHealthCheck: true },
    });
  });

  it.each([
    ['UNKNOWN', 0],
    ['HEALTHY', 1],
    ['UNHEALTHY', 2],
    ['DRAINING', 3],
  ] as const)('has the health status %s', (health, healthStatus) => {
    expect(encodedEndpoints(endpoint({ health }))).toMatchObject([{ healthStatus }]);
  });

  it.each([
    [1, 1],
    [100, 100],
    [0, 1],
    [2 ** 40, 2 ** 32 - 1],
  ])('of weight %d has a weight that Envoy accepts', (weight, expected) => {
    expect(encodedEndpoints(endpoint({ weight }))).toMatchObject([{ loadBalancingWeight: expected }]);
  });

  it.each([
    ['a name for an address', { address: 'web.example.ts.net' }],
    ['no port', { port: 0 }],
    ['a port beyond all', { port: 65_536 }],
    ['a name for its proxy', { proxy: { address: 'proxy.example.ts.net', port: 1055 } }],
    ['no port of its proxy', { proxy: { address: '10.1.2.3', port: 0 } }],
  ])('with %s is left out, since Envoy would reject the whole assignment', (_, more) => {
    expect(encodedEndpoints(endpoint(more), endpoint())).toHaveLength(1);
  });
});
