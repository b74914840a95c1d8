import { ruleOfEnvoyRoute } from '../../traffic/envoy-cluster-name.ts';
import {
  RouteConfigurationSchema,
  RouteSchema,
  VirtualHostSchema,
} from '../proto/envoy/config/route/v3_pb.ts';
import { isMessage, mapField, textOf } from '../wire.ts';
import { connectRetries } from './connect-retries.ts';
import { divideRules } from './mesh-shares.ts';
import type { RuleDivision, SharesOf } from './mesh-shares.ts';

const { number: HOSTS } = RouteConfigurationSchema.field.virtualHosts;
const { number: ROUTES } = VirtualHostSchema.field.routes;
const { number: ACTION } = RouteSchema.field.route;
const { number: NAME } = RouteSchema.field.name;

/** Edits the routes of one translation, all of them before any cluster: they decide which clusters are made. */
export type EnvoyRouteEditor = Pick<RuleDivision, 'clusterNamesFor'> & {
  /** Returns the route configuration itself if nothing in it changes. */
  readonly editRoutes: (configuration: Uint8Array) => Uint8Array;
};

export type EnvoyRouteDeps = {
  readonly sharesOf: SharesOf;
  /** Whether Envoy connects to the MeshEndpoints of a rule through proxies. */
  readonly isProxied: (rule: string) => boolean;
};

/** Gives the routes of rules with MeshEndpoints their shares of the requests, and retries of connections; all other bytes are kept. */
export function envoyRouteEditor({ sharesOf, isProxied }: EnvoyRouteDeps): EnvoyRouteEditor {
  const { divide, clusterNamesFor } = divideRules(sharesOf);
  const retriesIn = connectRetries(isProxied);
  const editHost = (host: Uint8Array) => {
    const addRetries = retriesIn(host);
    return mapField(host, ROUTES, route =>
      mapField(route, ACTION, action => {
        const rule = ruleOfEnvoyRoute(textOf(route, NAME) ?? '');
        const shares = rule === undefined ? undefined : sharesOf(rule);
        if (rule === undefined || !shares || !isMessage(action)) return action;
        return addRetries(divide(action, rule, shares), rule, shares);
      }),
    );
  };
  return { editRoutes: configuration => mapField(configuration, HOSTS, editHost), clusterNamesFor };
}
