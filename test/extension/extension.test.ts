import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { encode } from '../../src/extension/encode.ts';
import {
  Cluster_DiscoveryType,
  ClusterSchema,
} from '../../src/extension/proto/envoy/config/cluster/v3_pb.ts';
import {
  PostTranslateModifyRequestSchema,
  PostTranslateModifyResponseSchema,
} from '../../src/extension/proto/envoygateway/extension_pb.ts';
import { createExtension } from '../../src/extension/extension.ts';
import { createMemory } from '../support/store/memory.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { extensionMetrics } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import { Envoy } from '../support/extension/envoy.ts';
import {
  backend,
  endpointList,
  endpointsObject,
  httpRoute,
  tailnetObject,
} from '../support/traffic/objects.ts';
import { derivedFrom } from '../support/store/traffic.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const WEB = 'httproute/default/web/rule/0';
const web = [httpRoute('web', [backend('web')]), endpointsObject('web'), tailnetObject()];

/** An extension server over objects that does not listen. */
async function extensionOf(objects: readonly object[]) {
  const memory = createMemory(trafficIndexes, objects);
  await memory.start();
  const clock = new VirtualClock();
  const log = createLog({ level: 'error', to: { write: line => expect.fail(line) } });
  const telemetry = { log, metrics: createRegistry({ metrics: extensionMetrics, version: 'test' }) };
  const options = { dataPath: 'Proxy', edsTarget: '127.0.0.1:5005', messageBytes: 1e8 } as const;
  return {
    memory,
    clock,
    extension: createExtension({ ...derivedFrom(memory.read), options, telemetry, clock }),
  };
}

describe('the extension server', () => {
  it('implements all methods of its definitions except state-of-the-world EDS', async () => {
    const { extension } = await extensionOf([]);
    const defined = extension.files.flatMap(({ services }) =>
      services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`)),
    );
    expect(defined.filter(path => !extension.methods.has(path))).toEqual([
      '/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints',
    ]);
    expect([...extension.methods.keys()].filter(path => !defined.includes(path))).toEqual([]);
  });

  it('configures clusters to get their endpoints from itself', async () => {
    const { extension, memory, clock } = await extensionOf(web);
    const hook = extension.methods.get('/envoygateway.extension.EnvoyGatewayExtension/PostTranslateModify');
    if (hook?.kind !== 'unary') return expect.fail('there is no hook');
    const cluster = encode(ClusterSchema, {
      name: WEB,
      clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.EDS },
    });
    const request = encode(PostTranslateModifyRequestSchema, { clusters: [cluster] });
    const answer = await hook.call(request);
    if (!(answer instanceof Uint8Array)) return expect.fail('the answer has several parts');
    const [first = new Uint8Array()] = fromBinary(PostTranslateModifyResponseSchema, answer).clusters;
    const changed = fromBinary(ClusterSchema, first);
    const { serviceName = '' } = changed.edsClusterConfig ?? {};
    const envoy = new Envoy(extension.methods).begin('default/public', [serviceName]);
    expect(envoy.endpoints.get(WEB)).toEqual(['100.64.0.1:8080']);
    await memory.author.put(endpointsObject('web', endpointList(2)));
    await clock.advance(5);
    expect(envoy.endpoints.get(WEB)).toEqual(['100.64.0.1:8080', '100.64.0.2:8080']);
  });

  it('has no watches and timers after it is closed', async () => {
    const { extension, memory, clock } = await extensionOf(web);
    const envoy = new Envoy(extension.methods).begin('default/public', [WEB]);
    extension.close();
    await memory.author.put(endpointsObject('web', endpointList(2)));
    await clock.advance(100);
    expect(envoy.pushed).toEqual([[WEB]]);
    expect(clock.timers).toBe(0);
  });
});
