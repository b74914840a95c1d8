import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GrpcError } from '../../../src/extension/grpc/status.ts';
import {
  PostClusterModifyResponseSchema,
  PostEndpointsModifyResponseSchema,
} from '../../../src/extension/proto/envoygateway/extension_pb.ts';
import { bytesField, joined, valuesOf, varintField } from '../../../src/extension/wire.ts';
import { assignment } from '../../support/extension/assignments.ts';
import { CLUSTER, gatewayCluster, read } from '../../support/extension/clusters.ts';
import { about, startHooks, translation, whole } from '../../support/extension/hooks.ts';
import { anyMessage, hostileBytes, seed } from '../../support/extension/messages.ts';
import { needs, tlsSocket } from '../../support/extension/needs.ts';

const ABOUT_ONE = [
  'PostRouteModify',
  'PostVirtualHostModify',
  'PostHTTPListenerModify',
  'PostClusterModify',
  'PostEndpointsModify',
];
const ALL = [...ABOUT_ONE, 'PostTranslateModify'];

const ours = (name: string) => (name === CLUSTER ? needs({ socket: tlsSocket() }) : undefined);
const mixed = (name: string) => (name === CLUSTER ? needs({ endpointsFrom: 'envoy-gateway' }) : undefined);

describe('the hooks about one message', () => {
  it.each(ABOUT_ONE)('answer what is not ours with identical bytes: %s', method => {
    const { call, told } = startHooks({ needsOf: ours, assignmentOf: () => assignment() });
    fc.assert(
      fc.property(anyMessage(), message => {
        expect(whole(call(method, about(message)))).toEqual(bytesField(1, message));
      }),
      { seed },
    );
    expect(told).toEqual({ failures: [], served: [], lines: [] });
  });

  it.each(ABOUT_ONE)('answer without a message where none is sent: %s', method => {
    const { call } = startHooks({ needsOf: ours });
    expect(whole(call(method, new Uint8Array()))).toEqual(new Uint8Array());
    expect(whole(call(method, bytesField(2, new Uint8Array())))).toEqual(new Uint8Array());
    expect(whole(call(method, bytesField(1, new Uint8Array())))).toEqual(bytesField(1, new Uint8Array()));
  });

  it('take a message in pieces for what the pieces are together', () => {
    const { call } = startHooks({ needsOf: ours });
    const cluster = gatewayCluster();
    const inPieces = joined([
      bytesField(1, cluster),
      bytesField(2, new Uint8Array()),
      bytesField(1, varintField(99, 1)),
    ]);
    const asOne = bytesField(1, joined([cluster, varintField(99, 1)]));
    expect(whole(call('PostClusterModify', inPieces))).toEqual(whole(call('PostClusterModify', asOne)));
    expect(whole(call('PostRouteModify', inPieces))).toEqual(asOne);
  });
});

describe('all hooks', () => {
  it.each(ALL)('answer anything hostile, or refuse it as no protobuf: %s', method => {
    const { call } = startHooks({ needsOf: ours, assignmentOf: () => assignment() });
    const requests = fc
      .array(fc.oneof(anyMessage(), fc.constant(gatewayCluster())), { maxLength: 3 })
      .map(clusters =>
        method === 'PostTranslateModify' ? translation({ clusters }) : joined(clusters.map(about)),
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

describe('the Cluster hook', () => {
  it('gives a cluster of ours what it needs', () => {
    const { call, told } = startHooks({ needsOf: ours });
    const { cluster } = fromBinary(
      PostClusterModifyResponseSchema,
      whole(call('PostClusterModify', about(gatewayCluster()))),
    );
    expect(read(cluster).edsClusterConfig?.edsConfig?.configSourceSpecifier.case).toBe('apiConfigSource');
    expect(told.served).toEqual(['cluster']);
  });

  it('answers with what it was given where changing it fails, counts that, and tells once a second', async () => {
    const { call, told, clock } = startHooks({
      needsOf: () => {
        throw new Error('the cache is broken');
      },
    });
    for (let calls = 0; calls < 3; calls++) {
      expect(whole(call('PostClusterModify', about(gatewayCluster())))).toEqual(
        bytesField(1, gatewayCluster()),
      );
    }
    expect(told.failures).toEqual(['cluster', 'cluster', 'cluster']);
    expect(told.lines).toMatchObject([
      ['a hook left unchanged what it could not change', { hook: 'cluster', name: CLUSTER, failures: 1 }],
    ]);
    await clock.advance(1000);
    whole(call('PostClusterModify', about(gatewayCluster())));
    expect(told.lines.map(([, fields]) => fields)).toMatchObject([{ failures: 1 }, { failures: 3 }]);
  });
});

describe('the Endpoints hook', () => {
  const endpoints = joined([
    bytesField(1, Buffer.from(CLUSTER)),
    bytesField(2, bytesField(1, bytesField(1, Buffer.from(`${CLUSTER}/backend/0`)))),
  ]);

  it('fills the localities of a rule that mixes ours with others', () => {
    const { call, told } = startHooks({ needsOf: mixed, assignmentOf: () => assignment() });
    const { loadAssignment } = fromBinary(
      PostEndpointsModifyResponseSchema,
      whole(call('PostEndpointsModify', about(endpoints))),
    );
    expect(valuesOf(loadAssignment, 2, 9)).toHaveLength(2);
    expect(told.served).toEqual(['endpoints']);
  });

  it.each([
    ['ours alone, which our EDS serves', { needsOf: ours, assignmentOf: () => assignment() }],
    ['nobody knows of', { needsOf: mixed, assignmentOf: () => undefined }],
    ['not ours', { needsOf: () => undefined, assignmentOf: () => assignment() }],
  ])('leaves those alone that are %s', (_, parts) => {
    const { call, told } = startHooks(parts);
    expect(whole(call('PostEndpointsModify', about(endpoints)))).toEqual(bytesField(1, endpoints));
    expect(told).toEqual({ failures: [], served: [], lines: [] });
  });

  it('answers with what it was given where filling fails', () => {
    const { call, told } = startHooks({
      needsOf: mixed,
      assignmentOf: () => {
        throw new Error('the cache is broken');
      },
    });
    expect(whole(call('PostEndpointsModify', about(endpoints)))).toEqual(bytesField(1, endpoints));
    expect(told.failures).toEqual(['endpoints']);
  });
});
