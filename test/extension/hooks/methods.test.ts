import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GrpcError } from '../../../src/extension/grpc/method.ts';
import { PostTranslateModifyResponseSchema } from '../../../src/extension/proto/envoygateway/extension_pb.ts';
import { MAX_BINDINGS } from '../../../src/extension/hooks/bindings.ts';
import { bytesField, concat } from '../../../src/extension/wire.ts';
import { varintField } from '../../support/extension/varint-field.ts';
import { CLUSTER, gatewayCluster, read } from '../../support/extension/clusters.ts';
import { about, bindingObject, startHooks, translation, whole } from '../../support/extension/hooks.ts';
import { anyMessage, hostileBytes, seed } from '../../support/extension/messages.ts';
import { settings, tlsSocket } from '../../support/extension/cluster-settings.ts';

const ABOUT_ONE = [
  'PostRouteModify',
  'PostVirtualHostModify',
  'PostHTTPListenerModify',
  'PostClusterModify',
  'PostEndpointsModify',
];
const ALL = [...ABOUT_ONE, 'PostTranslateModify'];

const settingsOf = (name: string) =>
  name === CLUSTER ? settings({ defaultSocket: tlsSocket() }) : undefined;

describe('the hooks about one message', () => {
  it.each(ABOUT_ONE)('return any message with identical bytes: %s', method => {
    const { call, recorded } = startHooks({ settingsOf });
    fc.assert(
      fc.property(fc.oneof(anyMessage(), fc.constant(gatewayCluster())), message => {
        expect(whole(call(method, about(message)))).toEqual(bytesField(1, message));
      }),
      { seed },
    );
    expect(recorded).toEqual({ failures: [], clusters: [], lines: [] });
  });

  it.each(ABOUT_ONE)('return no message if the request has none: %s', method => {
    const { call } = startHooks({ settingsOf });
    expect(whole(call(method, new Uint8Array()))).toEqual(new Uint8Array());
    expect(whole(call(method, bytesField(2, new Uint8Array())))).toEqual(new Uint8Array());
    expect(whole(call(method, bytesField(1, new Uint8Array())))).toEqual(bytesField(1, new Uint8Array()));
  });

  it('merge a message that is sent in pieces', () => {
    const { call } = startHooks({ settingsOf });
    const cluster = gatewayCluster();
    const inPieces = concat([
      bytesField(1, cluster),
      bytesField(2, new Uint8Array()),
      bytesField(1, varintField(99, 1)),
    ]);
    const asOne = bytesField(1, concat([cluster, varintField(99, 1)]));
    expect(whole(call('PostClusterModify', inPieces))).toEqual(asOne);
    expect(whole(call('PostRouteModify', inPieces))).toEqual(asOne);
  });
});

describe('all hooks', () => {
  it.each(ALL)('respond to any bytes, or reject them as malformed: %s', method => {
    const { call } = startHooks({ settingsOf });
    const requests = fc
      .array(fc.oneof(anyMessage(), fc.constant(gatewayCluster())), { maxLength: 3 })
      .map(clusters =>
        method === 'PostTranslateModify' ? translation({ clusters }) : concat(clusters.map(about)),
      );
    let answers = 0;
    fc.assert(
      fc.property(hostileBytes(requests), request => {
        try {
          whole(call(method, request));
          answers++;
        } catch (error) {
          expect(error).toBeInstanceOf(GrpcError);
          expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
        }
      }),
      { seed, numRuns: 1000 },
    );
    expect(answers).toBeGreaterThan(100);
  });
});

describe('the Translation hook', () => {
  const request = translation({ clusters: [gatewayCluster()] });
  const asItCame = bytesField(1, gatewayCluster());

  it('sets the settings of a mesh cluster', () => {
    const { call, recorded } = startHooks({ settingsOf });
    const { clusters } = fromBinary(
      PostTranslateModifyResponseSchema,
      whole(call('PostTranslateModify', request)),
    );
    const [cluster] = clusters.map(read);
    expect(cluster?.edsClusterConfig?.edsConfig?.configSourceSpecifier.case).toBe('apiConfigSource');
    expect(recorded.clusters).toEqual(['translation']);
  });

  it('takes the settings of a cluster for the Gateways that have MeshBindings in the request', () => {
    const asked: string[] = [];
    const { call } = startHooks({
      settingsOf: (cluster, gateways) => {
        asked.push(...gateways.map(({ namespace, name }) => `${cluster} at ${namespace}/${name}`));
        return undefined;
      },
    });
    const bindings = [bindingObject('1', 'web'), bindingObject('1', 'inner')];
    whole(call('PostTranslateModify', translation({ clusters: [gatewayCluster()] }, bindings)));
    expect(asked).toEqual([`${CLUSTER} at edge/web`, `${CLUSTER} at edge/inner`]);
  });

  it('counts and logs that a request has more MeshBindings than it reads', () => {
    const { call, recorded } = startHooks({ settingsOf });
    const requestWith = (count: number) =>
      translation(
        {},
        Array.from({ length: count }, (_, at) => bindingObject('1', `g${at}`)),
      );
    whole(call('PostTranslateModify', requestWith(MAX_BINDINGS - 1)));
    expect(recorded.failures).toEqual([]);
    whole(call('PostTranslateModify', requestWith(MAX_BINDINGS)));
    expect([recorded.failures, recorded.lines]).toMatchObject([
      ['translation'],
      [['unexpected error in a hook', { name: 'MeshBindings' }]],
    ]);
  });

  it('returns a cluster unchanged if it cannot be edited, counts that, and logs it once a second', async () => {
    const { call, recorded, clock } = startHooks({
      settingsOf: () => {
        throw new Error('the cache is broken');
      },
    });
    for (let calls = 0; calls < 3; calls++) {
      expect(whole(call('PostTranslateModify', request))).toEqual(asItCame);
    }
    expect(recorded.failures).toEqual(['translation', 'translation', 'translation']);
    expect(recorded.lines).toMatchObject([
      ['unexpected error in a hook', { hook: 'translation', name: CLUSTER, failures: 1 }],
    ]);
    await clock.advance(1000);
    whole(call('PostTranslateModify', request));
    expect(recorded.lines.map(([, fields]) => fields)).toMatchObject([{ failures: 1 }, { failures: 3 }]);
  });
});
