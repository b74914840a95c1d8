import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { encode } from '../../../src/extension/encode.ts';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
} from '../../../src/extension/proto/envoy/service/discovery/v3_pb.ts';
import type { DeltaDiscoveryResponse } from '../../../src/extension/proto/envoy/service/discovery/v3_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../../src/extension/proto/envoy/config/endpoint/v3_pb.ts';
import { createExtension } from '../../../src/extension/extension.ts';
import { derivedFrom } from '../../support/store/traffic.ts';
import { createMemory } from '../../support/store/memory.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { extensionMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { named, openGateway } from '../../support/declared.ts';
import { endpoint, meshRoutePolicy } from '../../support/objects.ts';
import { eventually } from '../../support/eventually.ts';
import { testClient } from '../../support/grpc/client.ts';
import { serving } from '../../support/grpc/serving.ts';
import { parseExposition, valueOf } from '../../support/telemetry/exposition.ts';
import {
  backend,
  endpointList,
  endpointsObject,
  httpRoute,
  tailnetObject,
} from '../../support/traffic/objects.ts';

const DELTA_ENDPOINTS = '/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints';
const clusterOf = (n: number) => `httproute/default/web-${n}/rule/0`;

/** A server that listens, with this number of routes, and the gRPC library's client. */
async function scene(routes: number) {
  const objects = Array.from({ length: routes }, (_, n) => [
    httpRoute(`web-${n}`, [backend(`web-${n}`)]),
    endpointsObject(`web-${n}`),
  ]).flat();
  const memory = createMemory(trafficIndexes, [...objects, tailnetObject()]);
  await memory.start();
  const metrics = createRegistry({ metrics: extensionMetrics, version: 'test' });
  const derived = derivedFrom(memory.read);
  const extension = createExtension({
    ...derived,
    options: { dataPath: 'Proxy', edsTarget: '127.0.0.1:5005', messageBytes: 1e8 },
    telemetry: { log: createLog({ level: 'error' }), metrics },
    clock: systemClock,
  });
  const { port } = await serving({ methods: Object.fromEntries(extension.methods) });
  const streams = async () => valueOf(parseExposition(await metrics.text()), 'mesh_gateway_eds_streams');
  return { memory, client: testClient(port), streams, traffic: derived.traffic };
}

/** Subscribes to a cluster over a stream of its own, as Envoy does, and records the responses. */
function follow(
  stream: ClientDuplexStream<Buffer, Buffer>,
  cluster: string,
): readonly DeltaDiscoveryResponse[] {
  const responses: DeltaDiscoveryResponse[] = [];
  stream.on('error', () => undefined);
  stream.on('data', (message: Buffer) => {
    const response = fromBinary(DeltaDiscoveryResponseSchema, message);
    responses.push(response);
    write(stream, { responseNonce: response.nonce });
  });
  write(stream, { node: { cluster: 'default/public' }, resourceNamesSubscribe: [cluster] });
  return responses;
}

function write(
  stream: ClientDuplexStream<Buffer, Buffer>,
  request: Parameters<typeof encode<typeof DeltaDiscoveryRequestSchema>>[1],
): void {
  stream.write(Buffer.from(encode(DeltaDiscoveryRequestSchema, request)));
}

describe('endpoints over the network', () => {
  it('reach 500 streams of one connection, and changes reach the subscribed ones', async () => {
    const { memory, client, streams } = await scene(500);
    const open = Array.from({ length: 500 }, (_, n) => {
      const stream = client.stream(DELTA_ENDPOINTS);
      return { stream, responses: follow(stream, clusterOf(n)) };
    });
    await eventually(() => expect(open.map(({ responses }) => responses.length)).toEqual(open.map(() => 1)));
    expect(open.map(({ responses }) => responses[0]?.resources[0]?.name)).toEqual(
      open.map((_, n) => clusterOf(n)),
    );
    await expect(streams()).resolves.toBe(500);
    await memory.author.put(endpointsObject('web-7', endpointList(2)));
    await eventually(() => expect(open[7]?.responses).toHaveLength(2));
    expect(open.flatMap(({ responses }) => responses)).toHaveLength(501);
    for (const { stream } of open) stream.cancel();
    await eventually(async () => expect(await streams()).toBe(0));
  });

  it('follow a MeshRoutePolicy, which changes no setting of the cluster', async () => {
    const { memory, client, traffic } = await scene(1);
    await memory.author.put(
      endpointsObject('web-0', [
        ...endpointList(1, { metadata: { region: 'us' } }),
        endpoint({ name: 'eu', meshIP: '100.64.1.1', metadata: { region: 'eu' } }),
      ]),
    );
    await memory.author.put(openGateway('default/public'));
    const stream = client.stream(DELTA_ENDPOINTS);
    const responses = follow(stream, clusterOf(0));
    /** The last assignment: its factor, and the addresses by priority. */
    const last = () => {
      const any = responses.at(-1)?.resources[0]?.resource;
      const assignment = any && anyUnpack(any, ClusterLoadAssignmentSchema);
      const priorities = assignment?.endpoints.map(({ priority, lbEndpoints }) => {
        const address = lbEndpoints[0]?.hostIdentifier.value?.address?.address;
        return [priority, address?.case === 'socketAddress' ? address.value.address : undefined];
      });
      return { factor: assignment?.policy?.overprovisioningFactor, priorities };
    };
    await eventually(() => expect(last().priorities).toEqual([[0, '100.64.0.1']]));
    const revision = traffic.revisions.read('Gateway/default/public')?.hash;
    const target = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'web-0' };
    const policy = meshRoutePolicy({
      targetRefs: [target],
      endpoints: { prefer: [{ matchLabels: { region: 'eu' } }] },
      failover: { healthyPercent: 50 },
    });
    await memory.author.put(named(policy, 'default/p'));
    const preferred = [
      [0, '100.64.1.1'],
      [1, '100.64.0.1'],
    ];
    await eventually(() => expect(last()).toEqual({ factor: 200, priorities: preferred }));
    expect(traffic.revisions.read('Gateway/default/public')?.hash).toBe(revision);
    const sent = responses.length;
    const stored = memory.read.get({ kind: 'MeshRoutePolicy', namespace: 'default', name: 'p' });
    if (stored) await memory.write.replaceStatus(stored, { ancestors: [] });
    await memory.author.remove({ kind: 'MeshRoutePolicy', namespace: 'default', name: 'p' });
    await eventually(() => expect(last().factor).toBeUndefined());
    expect(responses.length).toBe(sent + 1);
    stream.cancel();
  });

  it('end with a status for an unsupported request', async () => {
    const { client } = await scene(0);
    const stream = client.stream(DELTA_ENDPOINTS);
    const ended = new Promise(resolve => stream.on('status', ({ code }) => resolve(code)));
    follow(stream, '*');
    await expect(ended).resolves.toBe(3);
  });

  it('end when the Envoy half-closes the stream', async () => {
    const { client, streams } = await scene(1);
    const stream = client.stream(DELTA_ENDPOINTS);
    const ended = new Promise(resolve => stream.on('status', ({ code }) => resolve(code)));
    const responses = follow(stream, clusterOf(0));
    await eventually(() => expect(responses).toHaveLength(1));
    stream.end();
    await expect(ended).resolves.toBe(0);
    await expect(streams()).resolves.toBe(0);
  });
});
