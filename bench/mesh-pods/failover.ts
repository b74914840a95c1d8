import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { containerProcess, proxyConnections } from '../../lab/install/mesh-pod.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import { refOf } from '../../lab/kube/object.ts';
import { waitForObject } from '../../lab/kube/wait.ts';
import type { Figure } from '../figures.ts';
import type { Installation } from '../../lab/install/installation.ts';
import { MESH_HOST } from '../../lab/install/objects.ts';
import { meshPods } from './pool.ts';

const ROUNDS = 3;
const [BEFORE_MS, AFTER_MS] = [5_000, 15_000];

/** How long the pods that are killed are measured. */
export const FAILOVER_MS = ROUNDS * (BEFORE_MS + AFTER_MS);

const CONCURRENCY = 8;
const PAUSE_MS = 20;
/** A tenth of the requests that the pauses allow. */
const LEAST_REQUESTS = ((BEFORE_MS + AFTER_MS) * CONCURRENCY) / PAUSE_MS / 10;

type Sent = { readonly endedAt: number; readonly tookMs: number; readonly error: string | undefined };

type Failover = { readonly seconds: number; readonly failed: number };

/** Kills mesh pods, one after the other, while they have connections of Envoy. */
export async function failoverFigures(installation: Installation): Promise<readonly Figure[]> {
  const rounds: Failover[] = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push(await failover(installation));
  const most = (read: (one: Failover) => number) => Math.max(...rounds.map(read));
  return [
    {
      name: `mesh pod killed to the last affected request, slowest of ${ROUNDS}`,
      value: most(({ seconds }) => seconds),
      unit: 's',
      aim: 3,
    },
    {
      name: `failed requests at a concurrency of ${CONCURRENCY}, most of ${ROUNDS}`,
      value: most(({ failed }) => failed),
      unit: '',
    },
  ];
}

async function failover(installation: Installation): Promise<Failover> {
  const { client, gateway } = installation;
  const load = startLoad(gateway);
  try {
    await sleep(BEFORE_MS);
    const { pod, pid } = await busiest(installation);
    const killedAt = performance.now();
    process.kill(pid, 'SIGKILL');
    await sleep(AFTER_MS);
    const requests = await load.end();
    const restarts = restartsOf(pod);
    const isBack = (one: KubeObject) => restartsOf(one) === restarts + 1 && isReady(one);
    await waitForObject(client, refOf(pod), 'to be ready again', isBack);
    return failoverOf(requests, killedAt);
  } finally {
    await load.end();
  }
}

/** Affected are requests that fail, or take more than twice as long as the slowest before the kill. */
function failoverOf(requests: readonly Sent[], killedAt: number): Failover {
  const before = requests.filter(({ endedAt }) => endedAt < killedAt);
  const errors = before.flatMap(({ error }) => error ?? []);
  if (requests.length < LEAST_REQUESTS || before.length === 0 || errors.length > 0)
    throw new Error(`${requests.length} requests, ${errors.length} failed before the kill: ${errors[0]}`);
  const usualMs = Math.max(...before.map(({ tookMs }) => tookMs));
  const affected = requests.filter(
    ({ endedAt, tookMs, error }) => endedAt >= killedAt && (error !== undefined || tookMs > 2 * usualMs),
  );
  const failed = affected.filter(({ error }) => error !== undefined);
  for (const { endedAt, tookMs, error = 'slow' } of affected)
    console.error(
      `${Math.round(endedAt - killedAt)} ms after the kill: ${error}, took ${Math.round(tookMs)} ms`,
    );
  const last = Math.max(killedAt, ...affected.map(({ endedAt }) => endedAt));
  return { seconds: (last - killedAt) / 1000, failed: failed.length };
}

/** The mesh pod with the most connections; fails if none has any. */
async function busiest(installation: Installation) {
  const pods = (await meshPods(installation)).map(pod => {
    const pid = containerProcess(pod.metadata.uid ?? '');
    return { pod, pid, connections: proxyConnections(pid) };
  });
  const [first] = pods.sort((one, other) => other.connections - one.connections);
  console.error(`connections of mesh pods: ${pods.map(({ connections }) => connections).join(', ')}`);
  if (!first || first.connections === 0 || pods.length < 2) throw new Error('no mesh pod has connections');
  return first;
}

type PodStatus = {
  readonly containerStatuses?: readonly { readonly ready: boolean; readonly restartCount: number }[];
};

function restartsOf({ status }: KubeObject): number {
  return (status as PodStatus).containerStatuses?.[0]?.restartCount ?? 0;
}

function isReady({ status }: KubeObject): boolean {
  return (status as PodStatus).containerStatuses?.[0]?.ready === true;
}

const TIMEOUT_MS = 15_000;

/** Sends concurrent requests through Envoy until it is ended. */
export function startLoad(gateway: string) {
  const pool = new Pool(`http://${gateway}`, { connections: CONCURRENCY, headersTimeout: TIMEOUT_MS });
  const requests: Sent[] = [];
  const over = new AbortController();
  const send = async (): Promise<string | undefined> => {
    try {
      const headers = { host: MESH_HOST };
      const { statusCode, body } = await pool.request({ method: 'GET', path: '/hello', headers });
      const text = await body.text();
      return statusCode === 200 ? undefined : `${statusCode} ${text}`;
    } catch (error) {
      return String(error);
    }
  };
  const work = Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      while (!over.signal.aborted) {
        const begun = performance.now();
        const error = await send();
        const endedAt = performance.now();
        requests.push({ endedAt, tookMs: endedAt - begun, error });
        await sleep(PAUSE_MS);
      }
    }),
  );
  let ending: Promise<readonly Sent[]> | undefined;
  const end = async () => {
    over.abort();
    await work;
    await pool.close();
    return requests;
  };
  return { end: () => (ending ??= end()) };
}
