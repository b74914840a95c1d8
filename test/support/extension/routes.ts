import { encode } from '../../../src/extension/encode.ts';
import { RouteConfigurationSchema } from '../../../src/extension/proto/envoy/config/route/v3_pb.ts';
import { bytesField, concat } from '../../../src/extension/wire.ts';
import { varintField } from './varint-field.ts';

/** A share of the requests of a route. */
export type Share = { readonly name: string; readonly weight: number };

/** The name that Envoy Gateway gives to the route of the first match of a rule. */
const routeNameOf = (rule: string) => `${rule}/match/0/web_example_com`;

/** A field that is not known here, as newer settings are. */
const UNKNOWN = varintField(1000, 7);

/** A route of Envoy Gateway to several clusters, with fields that are not known here at all levels. */
export function weightedRoute(rule: string, shares: readonly Share[], name = routeNameOf(rule)): Uint8Array {
  const clusters = shares.map(share =>
    bytesField(
      1,
      concat([bytesField(1, Buffer.from(share.name)), bytesField(2, varintField(1, share.weight)), UNKNOWN]),
    ),
  );
  const weighted = bytesField(3, concat([...clusters, UNKNOWN]));
  const action = bytesField(2, concat([weighted, varintField(20, 2), UNKNOWN]));
  return concat([action, bytesField(14, Buffer.from(name)), UNKNOWN]);
}

/** A route of Envoy Gateway to one cluster. */
export function plainRoute(cluster: string): Uint8Array {
  const action = bytesField(2, bytesField(1, Buffer.from(cluster)));
  return concat([action, bytesField(14, Buffer.from(routeNameOf(cluster)))]);
}

/** The routes of a listener, in one virtual host. */
export function routeConfiguration(...routes: readonly Uint8Array[]): Uint8Array {
  const host = concat([
    bytesField(1, Buffer.from('host')),
    ...routes.map(each => bytesField(3, each)),
    UNKNOWN,
  ]);
  const named = encode(RouteConfigurationSchema, { name: 'default/public/http' });
  return concat([named, bytesField(2, host), UNKNOWN]);
}
