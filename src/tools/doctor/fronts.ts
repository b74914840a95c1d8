import { GROUP } from '../../api/generated/kinds.ts';
import { isRecord } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { MESH_POD, RELAY } from '../../api/names.ts';
import { KubeError } from '../../kubernetes/transport/transport.ts';
import type { KubeTransport } from '../../kubernetes/transport/transport.ts';
import { at, hasLabels, mapAt, ok, notChecked, numberAt, textAt, textsAt, warning } from './observed.ts';
import type { Line, Observed } from './observed.ts';
import { askPods } from '../pods.ts';

/** What the front of a mesh pod has refused since it started, or why that could not be read. */
export type ReadFront = {
  readonly pod: string;
  /** The name of its MeshTailnet. */
  readonly tailnet: string;
} & (
  | {
      /** The number of connections, by reason. */
      readonly refused: ReadonlyMap<string, number>;
      /** The addresses of callers that are refused still. */
      readonly callers: readonly string[];
    }
  | { readonly why: string }
);

/** Where NetworkPolicies keep the API server from mesh pods, it would wait for half a minute. */
const TIMEOUT_MS = 3_000;

/** Reads what the fronts of running mesh pods have refused, by way of the API server; those of an older version have none. */
export async function readFronts(
  transport: Pick<KubeTransport, 'send'>,
  pods: readonly Fields[],
  timeoutMs = TIMEOUT_MS,
): Promise<readonly ReadFront[]> {
  const running = pods.filter(
    pod => hasLabels(pod, MESH_POD.labels) && textAt(pod, 'status', 'phase') === 'Running',
  );
  const fronts = await askPods(running, pod => readFront(transport, pod, timeoutMs));
  return fronts.filter(front => front !== undefined);
}

async function readFront(
  transport: Pick<KubeTransport, 'send'>,
  pod: Fields,
  timeoutMs: number,
): Promise<ReadFront | undefined> {
  const name = textAt(pod, 'metadata', 'name');
  const namespace = textAt(pod, 'metadata', 'namespace');
  const one = { pod: name, tailnet: mapAt(pod, 'metadata', 'labels')[`${GROUP}/tailnet`] ?? '' };
  const path = `/api/v1/namespaces/${namespace}/pods/${name}:${RELAY.ports.http}/proxy/relay`;
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const front = at(await transport.send({ verb: 'get', path, signal }), 'front');
    if (front === undefined) return undefined;
    const refused = at(front, 'refused');
    const reasons = isRecord(refused) ? Object.keys(refused) : [];
    return {
      ...one,
      refused: new Map(reasons.map(reason => [reason, numberAt(refused, reason)] as const)),
      callers: textsAt(front, 'refusedCallers'),
    };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    if (error.reason === 'Forbidden')
      return { ...one, why: `you have no right to ask mesh pods in namespace ${namespace} (get pods/proxy)` };
    return { ...one, why: signal.aborted ? NOT_REACHED : error.message };
  }
}

const NOT_REACHED =
  'the API server does not reach it: NetworkPolicies may forbid it, and its log has what it has refused';

/** Such as `12 connections (caller 3, destination 9)`. */
export function refusedText(refused: ReadonlyMap<string, number>): string {
  const sum = [...refused.values()].reduce((all, count) => all + count, 0);
  return `${sum} connections (${[...refused].map(([reason, count]) => `${reason} ${count}`).join(', ')})`;
}

/** What the proxy of mesh pods has refused: it may be an attack, or a caller and a destination that should be listed. */
export function checkRefusals({ fronts }: Pick<Observed, 'fronts'>): readonly Line[] {
  if (fronts.length === 0) return [];
  const lines = fronts.map((front): Line | undefined => {
    if ('why' in front) return notChecked(CHECK, `${front.pod}: ${front.why}`);
    if (front.refused.size === 0) return undefined;
    const lately = front.callers.length === 0 ? '' : `, lately of ${front.callers.join(', ')}`;
    return warning(
      CHECK,
      `the proxy of ${front.pod} has refused ${refusedText(front.refused)} since it started${lately}`,
      `see the log of its container ${RELAY.container}, which names callers and destinations`,
    );
  });
  const found = lines.filter(line => line !== undefined);
  return found.length === 0 ? [ok(CHECK, 'the proxy of mesh pods has refused no connection')] : found;
}

const CHECK = 'refusals';
