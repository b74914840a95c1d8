import type { Kinds } from '../../../api/generated/types.ts';
import { endpointsOf } from '../../../api/objects/endpoints.ts';
import { keyOf } from '../../../api/key.ts';
import { within } from '../../../api/problem.ts';
import { refTo } from '../../../api/objects/references.ts';
import { hostAndPortOf } from '../../../api/socket-address.ts';
import type { ExternalTargets, Resolution } from './external-targets.ts';
import { statusEntriesOf } from '../../../traffic/endpoints/health-status.ts';
import type { EndpointInputs, EndpointProblem, InputSource } from './inputs.ts';

/** The addresses of externalTargets. They are resolved in the background, so that no reconcile waits for DNS. */
export function externalTargetInputs(targets: ExternalTargets): InputSource {
  return {
    use: object => targets.set(keyOf(refTo(object)), hostsOf(object)),
    read: object => {
      const key = keyOf(refTo(object));
      const inputs = new Map<string, EndpointInputs>();
      for (const { name, externalTarget } of endpointsOf(object)) {
        if (externalTarget === undefined) continue;
        inputs.set(name, inputsOf(externalTarget, targets.of(key, hostAndPortOf(externalTarget).host)));
      }
      return Promise.resolve(inputs);
    },
    subscribe: listener => targets.subscribe(listener),
    forget: key => targets.set(key, new Map()),
  };
}

/** The hosts of an object, with the addresses in its status: those of any endpoint of a host, since a new one has none. */
function hostsOf(object: Kinds['MeshEndpoints']): ReadonlyMap<string, readonly string[]> {
  const entries = statusEntriesOf(object);
  const hosts = new Map<string, readonly string[]>();
  for (const { name, externalTarget } of endpointsOf(object)) {
    if (externalTarget === undefined) continue;
    const entry = entries.get(name);
    const last = entry?.externalTarget === externalTarget ? (entry.resolvedAddresses ?? []) : [];
    const { host } = hostAndPortOf(externalTarget);
    if (last.length > 0 || !hosts.has(host)) hosts.set(host, last);
  }
  return hosts;
}

function inputsOf(externalTarget: string, resolution: Resolution | undefined): EndpointInputs {
  switch (resolution?.is) {
    case undefined:
      return { error: notResolved(`externalTarget ${externalTarget} is not resolved yet`) };
    case 'resolved': {
      const { addresses, problem } = resolution;
      return {
        addresses,
        ...(problem && { error: notResolved(within('externalTarget', problem).text) }),
      };
    }
    case 'unresolved':
    case 'refused':
      return { problem: within('externalTarget', resolution.problem) };
  }
}

function notResolved(text: string): EndpointProblem {
  return { reason: 'NotResolved', text };
}
