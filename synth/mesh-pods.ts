import { escapedJson } from '../src/api/json.ts';
import type { Installation } from './generated/types.ts';

/** What the operator is told of tailnets and mesh pods, where their MeshTailnet does not say it. */
export function meshPodEnvironment(
  installation: Pick<Installation, 'controlURL' | 'meshPods'>,
): Readonly<Record<string, string>> {
  const { relayPorts, extraEnv, ...same } = installation.meshPods;
  const variables = Object.entries(extraEnv ?? {}).map(([name, value]) => ({ name, value }));
  const pool = { ...same, ...(variables.length > 0 ? { extraEnv: variables } : {}) };
  return {
    ...(installation.controlURL === undefined ? {} : { CONTROL_API_URL: installation.controlURL }),
    MESH_PODS: escapedJson(pool, NO_PLAIN_ASCII),
    RELAY_PORTS: `${relayPorts.first}-${relayPorts.last}`,
  };
}

/** What YAML refuses, and what is more than one byte. */
const NO_PLAIN_ASCII = /[^ -~]/g;

/** Linux starts no process with a variable of 128 KiB or more. */
const MOST_CHARACTERS = 100_000;

/** The API server would take the Deployment, and none of its pods would ever start. */
export function excessiveVariables(installation: Installation): readonly string[] {
  const { length } = meshPodEnvironment(installation)['MESH_PODS'] ?? '';
  if (length <= MOST_CHARACTERS) return [];
  const most = `what is said of mesh pods must fit into ${MOST_CHARACTERS} characters of JSON in all`;
  return [`meshPods.extraEnv: ${most}, and takes ${length}`];
}
