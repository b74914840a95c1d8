import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { encode } from '../../../src/extension/encode.ts';
import { envoyRouteEditor } from '../../../src/extension/envoy-route/envoy-route.ts';
import {
  RetryPolicySchema,
  RouteConfigurationSchema,
} from '../../../src/extension/proto/envoy/config/route/v3_pb.ts';
import { bytesField, concat } from '../../../src/extension/wire.ts';
import type { RuleShares } from '../../../src/traffic/rule-shares.ts';
import { plainRoute, routeConfiguration, weightedRoute } from '../../support/extension/routes.ts';

const RULE = 'httproute/shop/checkout/rule/0';
const OTHER = 'httproute/other/checkout/rule/0';
const SHARES: RuleShares = { total: 100, mesh: [{ cluster: `${RULE}/backend/0`, weight: 70 }] };

/** The routes of a translation as they are edited where one rule has MeshEndpoints. */
function edited(configuration: Uint8Array, isProxied: boolean, shares = SHARES): Uint8Array {
  const sharesOf = (rule: string) => (rule === RULE ? shares : undefined);
  return envoyRouteEditor({ sharesOf, isProxied: () => isProxied }).editRoutes(configuration);
}

/** The retries of the routes of a configuration. */
function retriesIn(configuration: Uint8Array) {
  return fromBinary(RouteConfigurationSchema, configuration).virtualHosts.flatMap(({ routes }) =>
    routes.map(({ route }) => route?.retryPolicy?.retryOn),
  );
}

describe('the retries of routes', () => {
  it.each([
    ['to one cluster', plainRoute(RULE)],
    ['to several', weightedRoute(RULE, [{ name: `${RULE}/backend/1`, weight: 30 }])],
  ])('are set where they lead to MeshEndpoints through proxies, %s, and nowhere else', (_, route) => {
    const given = routeConfiguration(plainRoute(OTHER), route);
    const after = edited(given, true);
    expect(retriesIn(after)).toEqual([undefined, 'connect-failure']);
    const message = fromBinary(RouteConfigurationSchema, after);
    delete message.virtualHosts[0]?.routes[1]?.route?.retryPolicy;
    expect(message).toEqual(fromBinary(RouteConfigurationSchema, edited(given, false)));
    expect(edited(after, true)).toBe(after);
  });

  it('are those of a policy where it has any, even none, in the route or its virtual host', () => {
    const none = encode(RetryPolicySchema, { retryOn: '5xx', numRetries: 0 });
    const action = concat([bytesField(1, Buffer.from(RULE)), bytesField(9, none)]);
    const own = concat([bytesField(2, action), bytesField(14, Buffer.from(`${RULE}/match/0/*`))]);
    const host = concat([bytesField(3, plainRoute(RULE)), bytesField(16, none)]);
    for (const given of [routeConfiguration(own), bytesField(2, host)])
      expect(edited(given, true)).toBe(given);
  });

  it('are not set where all requests go to other backends', () => {
    const given = routeConfiguration(plainRoute(RULE));
    expect(edited(given, true, { total: 30, mesh: [] })).toBe(given);
  });
});
