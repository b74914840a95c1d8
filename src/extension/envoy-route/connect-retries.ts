import type { RuleShares } from '../../traffic/rule-shares.ts';
import { encode } from '../encode.ts';
import {
  RetryPolicySchema,
  RouteActionSchema,
  VirtualHostSchema,
} from '../proto/envoy/config/route/v3_pb.ts';
import { bytesField, bytesOf, concat } from '../wire.ts';

const { number: RETRY } = RouteActionSchema.field.retryPolicy;
const { number: RETRY_OF_HOST } = VirtualHostSchema.field.retryPolicy;

/** Adds retries to the action of a route to MeshEndpoints through proxies, unless a policy has set some. */
type AddRetries = (action: Uint8Array, rule: string, shares: RuleShares) => Uint8Array;

/** Creates the function that reads the retries of a virtual host, which has those of a policy, and returns the one for its routes. */
export function connectRetries(isProxied: (rule: string) => boolean): (host: Uint8Array) => AddRetries {
  const retry = bytesField(RETRY, encodeConnectRetry());
  return host => {
    const isSet = bytesOf(host, RETRY_OF_HOST) !== undefined;
    return (action, rule, { mesh }) => {
      if (isSet || mesh.length === 0 || bytesOf(action, RETRY) !== undefined) return action;
      return isProxied(rule) ? concat([action, retry]) : action;
    };
  };
}

/** More did not help: what fails then was on its way when the mesh pod died. */
const RETRIES = 2;

/**
 * The retries of routes to MeshEndpoints for which no policy sets any. A mesh pod that has died refuses connections until kube-proxy
 * knows, so that nothing of the request was sent, and each retry connects to any of the mesh pods. Envoy waits up to 25 ms, then 75.
 */
export function encodeConnectRetry(): Uint8Array {
  return encode(RetryPolicySchema, { retryOn: 'connect-failure', numRetries: RETRIES });
}
