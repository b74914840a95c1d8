import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fillLocalities } from '../../src/extension/localities.ts';
import { ClusterLoadAssignmentSchema } from '../../src/extension/proto/envoy/config/endpoint/v3_pb.ts';
import { bytesField, joined, valuesOf, varintField } from '../../src/extension/wire.ts';
import { assignment } from '../support/extension/assignments.ts';
import { CLUSTER } from '../support/extension/clusters.ts';
import { anyField, hostileBytes, seed } from '../support/extension/messages.ts';

/** A locality as Envoy Gateway makes it for a backend: for ours it is empty. */
function locality(region: string, weight: number, ...more: readonly Uint8Array[]): Uint8Array {
  const name = bytesField(1, bytesField(1, Buffer.from(region)));
  return bytesField(2, joined([name, bytesField(3, varintField(1, weight)), ...more]));
}

const SERVICE = locality(
  `${CLUSTER}/backend/1`,
  5,
  bytesField(2, bytesField(3, new Uint8Array())),
  varintField(77, 1),
);

function made(...more: readonly Uint8Array[]): Uint8Array {
  const name = bytesField(1, Buffer.from(CLUSTER));
  return joined([
    name,
    locality(`${CLUSTER}/backend/0`, 80),
    SERVICE,
    locality(`${CLUSTER}/backend/2`, 20),
    ...more,
  ]);
}

function told(bytes: Uint8Array) {
  return fromBinary(ClusterLoadAssignmentSchema, bytes).endpoints.map(one => [
    one.locality?.region.slice(CLUSTER.length),
    one.priority,
    one.loadBalancingWeight,
    one.lbEndpoints.length,
  ]);
}

describe('localities of mesh backends', () => {
  it('are filled with the weights that Envoy Gateway gave, others only with a priority of their own', () => {
    expect(told(fillLocalities(made(), assignment()))).toEqual([
      ['/backend/0', 0, 80, 4],
      ['/backend/0', 1, 80, 1],
      ['/backend/1', 0, 5, 1],
      ['/backend/2', 0, 20, 1],
    ]);
  });

  it('are not touched where they are those of others', () => {
    const filled = fillLocalities(made(bytesField(4, Buffer.from('policy'))), assignment());
    expect(valuesOf(filled, 2, 9)[2]).toEqual(valuesOf(SERVICE, 2, 9)[0]);
    expect(valuesOf(filled, 4, 9)).toEqual([Uint8Array.from(Buffer.from('policy'))]);
  });

  it('are filled anew the second time, with what is assigned then', () => {
    const once = fillLocalities(made(), assignment());
    expect(fillLocalities(once, assignment())).toEqual(once);
    const less = { cluster: CLUSTER, localities: assignment().localities.slice(0, 1) };
    expect(told(fillLocalities(once, less))).toEqual([
      ['/backend/0', 0, 80, 4],
      ['/backend/1', 0, 5, 1],
      ['/backend/2', 0, 20, 1],
    ]);
  });

  it('stay empty at priority 0 where all endpoints have a lower one', () => {
    const localities = assignment().localities.filter(({ priority }) => priority === 1);
    expect(told(fillLocalities(made(), { cluster: CLUSTER, localities })).slice(0, 2)).toEqual([
      ['/backend/0', 0, 80, 0],
      ['/backend/0', 1, 80, 1],
    ]);
  });

  it('are given back as they are where nothing is assigned', () => {
    const given = made();
    expect(fillLocalities(given, { cluster: CLUSTER, localities: [] })).toBe(given);
  });

  it('do without what this code does not know, and without harm from hostile bytes', () => {
    const unknown = fc.array(anyField(), { maxLength: 4 }).map(fields => made(...fields));
    fc.assert(
      fc.property(hostileBytes(unknown), bytes => {
        const once = fillLocalities(bytes, assignment());
        expect(fillLocalities(once, assignment())).toEqual(once);
      }),
      { seed, numRuns: 1000 },
    );
  });
});
