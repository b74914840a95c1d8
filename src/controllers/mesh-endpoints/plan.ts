import type { EndpointStatus, MeshEndpoint } from '../../api/generated/types.ts';
import { endpointsOf } from '../../api/objects/endpoints.ts';
import type { CheckedEndpoint } from '../../health/health.ts';
import { isCurrent, statusEntriesOf } from '../../traffic/endpoints/health-status.ts';
import { checkOf, writtenVerdict } from './checks.ts';
import type { PlannedCheck } from './checks.ts';
import type { Input } from './gather.ts';
import type { EndpointInputs } from './inputs/inputs.ts';
import { relayedPathOf } from './relay-ports.ts';
import type { RelayedPath } from './relay-ports.ts';

/** An endpoint with everything that its status and its check depend on. */
export type PlannedEndpoint = {
  readonly endpoint: MeshEndpoint;
  readonly origin: Origin;
  readonly inputs: EndpointInputs;
  /** Its entry in status.endpoints, if that is about the same address. */
  readonly known: EndpointStatus | undefined;
  readonly relayed: RelayedPath | undefined;
  readonly check: PlannedCheck;
};

/** Where an endpoint comes from, as its entry shows it. */
type Origin = Pick<EndpointStatus, 'source' | 'deviceID' | 'metadata'>;

const STATIC: Origin = { source: 'Static' };

const NO_INPUTS: EndpointInputs = {};

type PlanInput = Pick<Input, 'object' | 'tailnet' | 'isAllowed' | 'relayPorts' | 'inputs' | 'readCa'>;

/** Plans how the endpoints of an object are reached and checked, in the order of `endpointsOf`. */
export function plan({
  object,
  isAllowed,
  relayPorts,
  inputs: all,
  readCa,
  ...rest
}: PlanInput): readonly PlannedEndpoint[] {
  const tailnet = isAllowed ? rest.tailnet : undefined;
  const entries = statusEntriesOf(object);
  const listed = new Set(object.spec.endpoints);
  const { namespace = '' } = object.metadata;
  return endpointsOf(object).map(endpoint => {
    const entry = entries.get(endpoint.name);
    const known = entry && isCurrent(entry, endpoint) ? entry : undefined;
    const inputs = all.get(endpoint.name) ?? NO_INPUTS;
    const relayed = relayedPathOf(endpoint, known, tailnet, relayPorts);
    const context = { inputs, relayed, tailnet, namespace, domain: object.spec.tailnet, readCa };
    const origin = listed.has(endpoint) || !entry ? STATIC : originOf(entry);
    return { endpoint, origin, inputs, known, relayed, check: checkOf(endpoint, context) };
  });
}

function originOf({ source, deviceID, metadata }: EndpointStatus): Origin {
  return {
    ...(source && { source }),
    ...(deviceID !== undefined && { deviceID }),
    ...(metadata && { metadata }),
  };
}

/** The checks of endpoints that can be used, by their names. */
export function checkedEndpoints(planned: readonly PlannedEndpoint[]): ReadonlyMap<string, CheckedEndpoint> {
  const checked = new Map<string, CheckedEndpoint>();
  for (const { endpoint, inputs, known, relayed, check } of planned) {
    if (check.is !== 'on' || inputs.problem || (relayed && 'reason' in relayed)) continue;
    checked.set(endpoint.name, { check: check.check, written: writtenVerdict(known) });
  }
  return checked;
}
