import { API_VERSION } from '../api/generated/kinds.ts';
import type { Kinds } from '../api/generated/types.ts';
import { isRecord } from '../api/json.ts';
import { unknownFields } from '../api/validation/unknown-fields.ts';
import { validate } from '../api/validation/validate.ts';
import { SettingError } from '../telemetry/setting-error.ts';
import type { Settings } from './settings.ts';

type TailnetSpec = Kinds['MeshTailnet']['spec'];

/** What mesh pods get where their MeshTailnet does not say it: fields of its spec.pool. */
type MeshPodDefaults = Pick<TailnetSpec['pool'], (typeof POD_FIELDS)[number]>;

const POD_FIELDS = [
  'image',
  'resources',
  'nodeSelector',
  'tolerations',
  'priorityClassName',
  'extraEnv',
] as const satisfies readonly (keyof TailnetSpec['pool'])[];

/** What a process is told of tailnets and mesh pods; each MeshTailnet may say it otherwise. */
export const meshPodSettings = {
  controlURL: {
    name: 'CONTROL_API_URL',
    help: 'the control API of MeshTailnets that name none',
    parse: parseControlURL,
  },
  meshPods: {
    name: 'MESH_PODS',
    help: `what mesh pods get where their MeshTailnet does not say it, as JSON of its spec.pool: ${POD_FIELDS.join(', ')}`,
    usual: '{}',
    parse: parseMeshPods,
  },
  relayPorts: {
    name: 'RELAY_PORTS',
    help: 'the UDP ports on which mesh pods take datagrams; as in their network policy',
    usual: '20000-29999',
    parse: parsePortRange,
  },
} as const satisfies Settings;

function parseControlURL(setting: string, text: string): string | undefined {
  const controlURL = text.trim();
  if (controlURL === '') return undefined;
  judgeSpec(setting, 'spec.controlURL', { controlURL });
  return controlURL;
}

function parseMeshPods(setting: string, text: string): MeshPodDefaults {
  const given = parseObject(setting, text);
  const foreign = Object.keys(given).find(name => !POD_FIELDS.some(field => field === name));
  if (foreign !== undefined)
    throw new SettingError(setting, `${JSON.stringify(foreign)} is none of ${POD_FIELDS.join(', ')}`);
  const { pool } = judgeSpec(setting, 'spec.pool', { pool: given });
  return Object.fromEntries(
    POD_FIELDS.filter(name => pool[name] !== undefined).map(name => [name, pool[name]]),
  );
}

function parseObject(setting: string, text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return value;
  } catch {
    // What the parser says quotes the text, and that may hold anything.
    throw new SettingError(setting, 'is not JSON');
  }
  const example = '{"image":"registry.example.com/meshd:1.0"}';
  throw new SettingError(setting, `is no JSON object: write one, such as ${example}`);
}

/** Judges a field as that of a MeshTailnet, so that both places take and refuse the same. */
function judgeSpec(setting: string, at: string, fields: Readonly<Record<string, unknown>>): TailnetSpec {
  const tailnet = {
    ...{ apiVersion: API_VERSION, kind: 'MeshTailnet', metadata: { name: 'defaults' } },
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
  throw new SettingError(setting, `${JSON.stringify(text.slice(0, 60))} is no range of ports; ${form}`);
}
