import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { PostRouteModifyResponseSchema } from '../../../src/extension/proto/envoygateway/extension_pb.ts';
import { RouteSchema } from '../../../src/extension/proto/envoy/config/route/v3_pb.ts';
import { bytesField, joined } from '../../../src/extension/wire.ts';
import { about, startHooks, whole } from '../../support/extension/hooks.ts';

const RULE = 'httproute/default/web/rule/0';
const NAME = `${RULE}/match/0/web_example_com`;
const INVALID = { name: 'invalid-backend-cluster', weight: 1 };
/** A field of the future, which nobody here knows. */
const UNKNOWN = bytesField(999, Buffer.from('kept'));

type Weighted = { readonly name: string; readonly weight: number };

/** A route as Envoy Gateway makes it. */
function routeTo(clusters: readonly Weighted[], name = NAME): Uint8Array {
  const weighted = { clusters: clusters.map(({ name, weight }) => ({ name, weight })) };
  const route = create(RouteSchema, { name, route: { weightedClusters: weighted } });
  return joined([toBinary(RouteSchema, route), UNKNOWN]);
}

function start() {
  const { call, told } = startHooks({
    backendsOf: rule => (rule === RULE ? [{ cluster: `${RULE}/backend/0`, weight: 90 }] : []),
  });
  const change = (route: Uint8Array): Uint8Array => {
    const { route: changed } = fromBinary(
      PostRouteModifyResponseSchema,
      whole(call('PostRouteModify', about(route))),
    );
    return changed;
  };
  return { change, told };
}

function clustersIn(route: Uint8Array): readonly Weighted[] {
  const { clusters = [] } = fromBinary(RouteSchema, route).route?.weightedClusters ?? {};
  return clusters.map(({ name, weight = 0 }) => ({ name, weight }));
}

describe('the hook about a route whose backends have clusters of their own', () => {
  it('adds ours by its weight, and keeps everything else', () => {
    const { change, told } = start();
    const changed = change(routeTo([INVALID]));
    expect(clustersIn(changed)).toEqual([{ name: `${RULE}/backend/0`, weight: 90 }, INVALID]);
    expect(Buffer.from(changed).includes(Buffer.from(UNKNOWN))).toBe(true);
    expect(told.served).toEqual(['route']);
  });

  it('adds it where there is none at all', () => {
    expect(clustersIn(start().change(routeTo([])))).toEqual([{ name: `${RULE}/backend/0`, weight: 90 }]);
  });

  it('adds it once', () => {
    const { change } = start();
    const once = change(routeTo([INVALID]));
    expect(change(once)).toEqual(once);
  });

  it.each([
    ['of another rule', routeTo([INVALID], 'httproute/default/web/rule/1/match/0/x')],
    ['of another kind', routeTo([INVALID], 'grpcroute/default/web/rule/0/match/0/x')],
    ['without a name', routeTo([INVALID], '')],
    ['that has one cluster for all', toBinary(RouteSchema, create(RouteSchema, { name: NAME, route: {} }))],
    ['that redirects', toBinary(RouteSchema, create(RouteSchema, { name: NAME }))],
  ])('leaves a route alone %s', (_, route) => {
    const { change, told } = start();
    expect(change(route)).toEqual(route);
    expect(told.served).toEqual([]);
  });
});
