import { request as requestHttp } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { readAll } from '../../kubernetes/transport/body.ts';
import { KubeError } from '../../kubernetes/transport/transport.ts';
import type { Fields } from '../../api/json.ts';
import { placeOf } from '../../api/objects/oldest.ts';
import type { OpenPort } from '../check/cluster.ts';
import type { Declarations } from '../check/objects.ts';
import { OWNER } from '../doctor/cluster.ts';
import { mapAt, nameOf, textAt } from '../doctor/observed.ts';
import { askPods } from '../pods.ts';
import { stateOf } from './state.ts';
import type { EnvoyState } from './state.ts';

/** An Envoy: what it has, or why that could not be read. */
export type ReadEnvoy = {
  /** Its pod, without the namespace. */
  readonly pod: string;
  /** As gatewayOf returns it. */
  readonly gateway: string;
} & ({ readonly state: EnvoyState } | { readonly why: string });

/**
 * What an Envoy serves by the labels of its pod: a Gateway, such as default/public, or where Envoy Gateway merges Gateways
 * those of a GatewayClass, by its name. Empty where the labels have neither.
 */
export function gatewayOf(pod: Fields): string {
  const labels = mapAt(pod, 'metadata', 'labels');
  const gateway = [labels[`${OWNER}-namespace`], labels[`${OWNER}-name`]].filter(Boolean).join('/');
  return gateway === '' ? (labels[`${OWNER}class`] ?? '') : gateway;
}

/** The GatewayClass whose merged Gateways an Envoy serves, by what gatewayOf returns; undefined for the Envoy of one Gateway. */
export function mergedClassOf(gateway: string): string | undefined {
  return gateway.includes('/') ? undefined : gateway;
}

/** What the Envoys of a Gateway, such as default/public, may serve: it alone, or all Gateways of its GatewayClass. */
export function servingIn({ objects }: Declarations): (gateway: string) => readonly string[] {
  const classes = new Map<string, string>(
    objects.flatMap(({ resource }) => {
      if (resource?.kind !== 'Gateway') return [];
      return [[placeOf(resource), resource.gatewayClassName] as const];
    }),
  );
  return gateway => [gateway, classes.get(gateway) ?? ''].filter(Boolean);
}

/** Reads what the running Envoys among pods have, by port-forwards to their admin interfaces; all clusters, or those of one rule. */
export async function readEnvoys(
  pods: readonly Fields[],
  openPort: OpenPort,
  cluster?: string,
): Promise<readonly ReadEnvoy[]> {
  const running = pods.filter(
    pod =>
      textAt(pod, 'status', 'phase') === 'Running' && textAt(pod, 'metadata', 'deletionTimestamp') === '',
  );
  return await askPods(running, pod => readEnvoy(pod, openPort, cluster));
}

async function readEnvoy(pod: Fields, openPort: OpenPort, cluster: string | undefined): Promise<ReadEnvoy> {
  const one = { pod: textAt(pod, 'metadata', 'name'), gateway: gatewayOf(pod) };
  if (one.gateway === '') return { ...one, why: 'its labels name neither a Gateway nor a GatewayClass' };
  const only = cluster === undefined ? '' : `^${cluster.replaceAll('.', String.raw`\.`)}(/backend/[0-9]+)?$`;
  const filtered = (name: string) => (only === '' ? '' : `&${name}=${encodeURIComponent(only)}`);
  let left = MAX_BYTES;
  const get = async (path: string) => {
    const body = await readAdmin(pod, path, openPort, left);
    left -= Buffer.byteLength(body);
    return parsed(body, whatOf(pod, path));
  };
  try {
    const dump = await get(`/config_dump?include_eds${filtered('name_regex')}`);
    const clusters = await get(`/clusters?format=json${filtered('filter')}`);
    const stats = await get(
      `/stats?format=json&filter=${encodeURIComponent(String.raw`\.update_rejected$`)}`,
    );
    return { ...one, state: stateOf({ dump, clusters, stats }) };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    return { ...one, why: error.reason === 'Forbidden' ? refusalOf(pod) : error.message };
  }
}

function refusalOf(pod: Fields): string {
  const namespace = textAt(pod, 'metadata', 'namespace');
  return `you have no right to forward ports of pods in namespace ${namespace} (get and create pods/portforward)`;
}

const ADMIN_PORT = 19_000;
const TIMEOUT_MS = 15_000;
/** Of one Envoy: whoever may create pods where Envoys run can send more. */
const MAX_BYTES = 16 * 1024 * 1024;

function whatOf(pod: Fields, path: string): string {
  return `${path.replace(/\?.*/, '')} of Envoy ${nameOf(pod)}`;
}

/** Sends a request to the admin interface of an Envoy, which only its own pod can reach. */
async function readAdmin(pod: Fields, path: string, openPort: OpenPort, maxBytes: number): Promise<string> {
  const what = whatOf(pod, path);
  const place = { namespace: textAt(pod, 'metadata', 'namespace'), pod: textAt(pod, 'metadata', 'name') };
  const connection = await openPort({ ...place, port: ADMIN_PORT }, TIMEOUT_MS);
  try {
    const { statusCode, body } = await answerOf(connection, path, maxBytes, what);
    if (statusCode === 200) return body;
    throw new KubeError('Malformed', `${what}: status ${statusCode}`);
  } catch (error) {
    throw malformed(error, what);
  } finally {
    connection.destroy();
  }
}

function parsed(body: string, what: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch (error) {
    throw malformed(error, what);
  }
}

function malformed(error: unknown, what: string): KubeError {
  if (error instanceof KubeError) return error;
  return new KubeError('Malformed', `${what}: ${error instanceof Error ? error.message : 'failed'}`);
}

async function answerOf(connection: Duplex, path: string, maxBytes: number, what: string) {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { path, headers: { host: 'localhost' }, createConnection: () => connection, signal };
    requestHttp(options, resolve).once('error', reject).end();
  });
  return { statusCode: response.statusCode ?? 0, body: await readAll(response, maxBytes, what) };
}
