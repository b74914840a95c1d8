import { API_VERSION } from '../api/generated/kinds.ts';
import type { Kinds } from '../api/generated/types.ts';
import { isRecord } from '../api/json.ts';
import { MAX_SERVED } from '../api/served-services.ts';
import { unknownFields } from '../api/validation/unknown-fields.ts';
import { validate } from '../api/validation/validate.ts';
import { SettingError } from '../telemetry/setting-error.ts';
import { parseCount, parseDuration, parseOptional } from './settings.ts';
import type { Settings } from './settings.ts';

type TailnetSpec = Kinds['MeshTailnet']['spec'];

/** Defaults of mesh pods for fields of spec.pool that a MeshTailnet does not set. */
type MeshPodDefaults = Pick<TailnetSpec['pool'], (typeof POD_FIELDS)[number]>;

const POD_FIELDS = [
  'image',
  'resources',
  'nodeSelector',
  'tolerations',
  'priorityClassName',
  'extraEnv',
] as const satisfies readonly (keyof TailnetSpec['pool'])[];

/** Settings of tailnets and mesh pods, which each MeshTailnet may override. */
export const meshPodSettings = {
  controlURL: {
    name: 'CONTROL_API_URL',
    help: "control API of MeshTailnets without spec.controlURL; if not set, the vendor's for managed pools of domains under ts.net",
    parse: parseControlURL,
  },
  meshPods: {
    name: 'MESH_PODS',
    help: `defaults of spec.pool of MeshTailnets, as JSON with any of ${POD_FIELDS.join(', ')}`,
    default: '{}',
    parse: parseMeshPods,
  },
  orphanAgeMs: {
    name: 'ORPHAN_AGE',
    help: 'how long an offline device of this installation without a mesh pod is reported before it is deleted',
    default: '10m',
    parse: parseDuration,
  },
  relayPorts: {
    name: 'RELAY_PORTS',
    help: 'UDP ports on which mesh pods receive datagrams; use the same range in their network policy',
    default: '20000-29999',
    parse: parsePortRange,
  },
  relayPortsPerNamespace: {
    name: 'RELAY_PORTS_PER_NAMESPACE',
    help: 'how many of these ports new UDP endpoints of a namespace may take on a tailnet; an eighth of them if not set',
    parse: parsePortCount,
  },
  maxVipServices: {
    name: 'MAX_VIP_SERVICES',
    help: 'how many VIP services may be registered on a tailnet, at most 1000; a namespace may have an eighth of them',
    default: String(MAX_SERVED),
    parse: parseServiceCount,
  },
  relayImage: {
    name: 'RELAY_IMAGE',
    help: 'image of mesh-gateway, which the relays of mesh pods run; that of the pod of the operator if not set',
    parse: parseOptional,
  },
  imagePullSecrets: {
    name: 'IMAGE_PULL_SECRETS',
    help: 'Secrets with which nodes pull the images of mesh pods, separated by commas',
    default: '',
    parse: (_setting, text) => text.split(/[\s,]+/).filter(name => name !== ''),
  },
} as const satisfies Settings;

function parseControlURL(setting: string, text: string): string | undefined {
  const controlURL = text.trim();
  if (controlURL === '') return undefined;
  validateSpec(setting, 'spec.controlURL', { controlURL });
  return controlURL;
}

function parseMeshPods(setting: string, text: string): MeshPodDefaults {
  const given = parseObject(setting, text);
  const foreign = Object.keys(given).find(name => !POD_FIELDS.some(field => field === name));
  if (foreign !== undefined)
    throw new SettingError(setting, `${JSON.stringify(foreign)} is not one of ${POD_FIELDS.join(', ')}`);
  const { pool } = validateSpec(setting, 'spec.pool', { pool: given });
  return Object.fromEntries(
    POD_FIELDS.filter(name => pool[name] !== undefined).map(name => [name, pool[name]]),
  );
}

function parseObject(setting: string, text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return value;
  } catch {
    // The parser's message quotes the text, which may hold secrets.
    throw new SettingError(setting, 'is not JSON');
  }
  const example = '{"image":"registry.example.com/meshd:1.0"}';
  throw new SettingError(setting, `is not a JSON object: write one, such as ${example}`);
}

/** Validates a field as one of a MeshTailnet, so that both accept and refuse the same values. */
function validateSpec(setting: string, at: string, fields: Readonly<Record<string, unknown>>): TailnetSpec {
  const tailnet = {
    apiVersion: API_VERSION,
    kind: 'MeshTailnet',
    metadata: { name: 'defaults' },
    spec: { tailnet: 'defaults.example', ...fields },
  };
  const refusal = (path: string, message: string) =>
    new SettingError(setting, [path.slice(at.length + 1), message].filter(part => part !== '').join(': '));
  const [unknown] = unknownFields('MeshTailnet', tailnet);
  if (unknown) throw refusal(unknown.path, 'there is no such field');
  const verdict = validate('MeshTailnet', tailnet);
  if (verdict.valid) return verdict.object.spec;
  throw refusal(verdict.faults[0]?.path ?? at, verdict.faults[0]?.message ?? 'is refused');
}

const FIRST_FREE_PORT = 1024;

function parsePortRange(setting: string, text: string): { readonly first: number; readonly last: number } {
  const [, from = '', to = ''] = /^(\d{1,5})-(\d{1,5})$/.exec(text.trim()) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (from !== '' && FIRST_FREE_PORT <= first && first <= last && last <= 65_535) return { first, last };
  const form = `write the first and the last port, from ${FIRST_FREE_PORT} to 65535, such as 20000-29999`;
  throw new SettingError(setting, `${JSON.stringify(text.slice(0, 60))} is not a range of ports; ${form}`);
}

function parseServiceCount(setting: string, text: string): number {
  const count = parseCount(setting, text);
  if (count <= MAX_SERVED) return count;
  throw new SettingError(setting, `${count} is more than mesh pods serve: the most is ${MAX_SERVED}`);
}

function parsePortCount(setting: string, text: string): number | undefined {
  return text.trim() === '' ? undefined : parseCount(setting, text);
}
