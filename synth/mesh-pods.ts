import { escapedJson } from '../src/api/json.ts';
import type { Installation } from './generated/types.ts';

/** The defaults of `spec.pool` of MeshTailnets. */
export function poolDefaults({ meshPods }: Pick<Installation, 'meshPods'>) {
  const { relayPorts: _, relayPortsPerNamespace: __, extraEnv, ...same } = meshPods;
  // In the order of a chart's values, which Helm sorts.
  const sorted = Object.entries(extraEnv ?? {}).sort(([one], [other]) => (one < other ? -1 : 1));
  const variables = sorted.map(([name, value]) => ({ name, value }));
  return { ...same, ...(variables.length > 0 ? { extraEnv: variables } : {}) };
}

/** Environment variables of the operator with the defaults of tailnets and mesh pods. */
export function meshPodEnvironment(
  installation: Pick<Installation, 'controlURL' | 'meshPods'>,
): Readonly<Record<string, string>> {
  const { relayPorts, relayPortsPerNamespace } = installation.meshPods;
  return {
    ...(installation.controlURL === undefined ? {} : { CONTROL_API_URL: installation.controlURL }),
    MESH_PODS: escapedJson(poolDefaults(installation), NO_PLAIN_ASCII),
    RELAY_PORTS: `${relayPorts.first}-${relayPorts.last}`,
    ...(relayPortsPerNamespace === undefined
      ? {}
      : { RELAY_PORTS_PER_NAMESPACE: String(relayPortsPerNamespace) }),
  };
}

/** Characters that YAML refuses, and those of more than one byte. */
const NO_PLAIN_ASCII = /[^ -~]/g;

/** Linux does not start a process with a variable of 128 KiB or more. */
const MAX_CHARACTERS = 100_000;

/** The API server would accept the Deployment, and none of its pods would start. */
export function excessiveVariables(installation: Installation): readonly string[] {
  const { length } = meshPodEnvironment(installation)['MESH_PODS'] ?? '';
  if (length <= MAX_CHARACTERS) return [];
  const most = `the fields of meshPods must fit into ${MAX_CHARACTERS} characters of JSON in total`;
  return [`meshPods.extraEnv: ${most}, and takes ${length}`];
}
