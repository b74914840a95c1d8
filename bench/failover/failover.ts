import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import { useCluster } from '../../lab/cluster/use-cluster.ts';
import { withInstallation } from '../../lab/install/installation.ts';
import type { Installation } from '../../lab/install/installation.ts';
import { serviceObjects } from '../../lab/install/objects.ts';
import { applyAll } from '../../lab/kube/apply.ts';
import { waitForCondition, waitForObject } from '../../lab/kube/wait.ts';
import type { OnStep } from '../../lab/process/steps.ts';
import { until } from '../../lab/process/wait.ts';
import { setService } from '../../lab/tailnet/backends.ts';
import { locatePrograms } from '../bundled.ts';
import { quantile } from '../figures.ts';
import type { Bench, Figure } from '../figures.ts';
import { CHECK, failoverObjects, HOST, sliceOf } from './objects.ts';
import type { First } from './objects.ts';

/** How often each level fails and returns. */
const FORMS = { short: { Service: 10, device: 3 }, long: { Service: 100, device: 30 } } as const;

/** Measures how soon the first request is on another level, in a real cluster with a real tailnet. */
export const failover: Bench = {
  duration: part => {
    const { Service, device } = roundsOf(part);
    const { intervalSeconds, threshold } = CHECK;
    const seconds = 3 * intervalSeconds * (Service + device) + 2 * intervalSeconds * threshold * device;
    return { atLeastMs: 1000 * seconds };
  },
  run: failoverFigures,
};

function roundsOf(part = 'long') {
  if (part === 'short' || part === 'long') return FORMS[part];
  throw new Error(`name a part: ${Object.keys(FORMS).join(', ')}`);
}

async function failoverFigures(onStep: OnStep, part?: string): Promise<readonly Figure[]> {
  const rounds = roundsOf(part);
  const { cluster, end } = await useCluster({ user: 'npm run bench -- failover', onStep });
  try {
    return await withInstallation({ cluster, pathOf: locatePrograms(), onStep }, async installation => {
      await applyAll(installation.client, serviceObjects(installation.namespace));
      return [
        ...(await levelFigures(installation, 'Service', rounds.Service, onStep)),
        ...(await levelFigures(installation, 'device', rounds.device, onStep)),
      ];
    });
  } finally {
    await end();
  }
}

/** How the first level fails, and how it returns. */
type Fault = { readonly fail: () => Promise<unknown>; readonly restore: () => Promise<unknown> };

async function faultOf({ client, namespace, remote }: Installation, first: First): Promise<Fault> {
  const pod = { apiVersion: 'v1', kind: 'Pod', namespace, name: 'service' };
  await waitForCondition(client, pod, 'Ready');
  const { status } = await waitForObject(
    client,
    pod,
    'to have an address',
    each => each['status'] !== undefined,
  );
  const { podIP = '' } = status as { readonly podIP?: string };
  const pods = (...addresses: readonly string[]) => client.apply(sliceOf(namespace, addresses));
  if (first === 'Service') return { fail: () => pods(), restore: () => pods(podIP) };
  await pods(podIP);
  const set = (mode: 'failing' | 'healthy') => setService(remote.control, 'http', { mode });
  return { fail: () => set('failing'), restore: () => set('healthy') };
}

/** `refused` has the statuses of requests that were not answered with 200. */
type Times = { readonly awayMs: number[]; readonly backMs: number[]; readonly refused: number[] };

async function levelFigures(
  installation: Installation,
  first: First,
  rounds: number,
  onStep: OnStep,
): Promise<readonly Figure[]> {
  const { client, namespace, remote, gateway } = installation;
  await applyAll(client, failoverObjects(namespace, remote, first));
  const { fail, restore } = await faultOf(installation, first);
  const [preferred, next] = first === 'Service' ? ['service', remote.hostname] : [remote.hostname, 'service'];
  const envoy = new Client(`http://${gateway}`);
  const times: Times = { awayMs: [], backMs: [], refused: [] };
  try {
    await restore();
    await answerOf(envoy, preferred, []);
    for (let round = 0; round < rounds; round++) {
      if (round % 10 === 0) onStep(`${first} first, round ${round + 1} of ${rounds}`);
      // At any time between two checks.
      await sleep(1000 * CHECK.intervalSeconds * (1 + Math.random()));
      times.awayMs.push(await msUntil(fail, () => answerOf(envoy, next, times.refused)));
      await sleep(1000 * CHECK.intervalSeconds * (1 + Math.random()));
      times.backMs.push(await msUntil(restore, () => answerOf(envoy, preferred, times.refused)));
    }
  } finally {
    await restore();
    await envoy.close();
  }
  return figuresOf(first, times);
}

async function msUntil(act: () => Promise<unknown>, outcome: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  await outcome();
  return performance.now() - startedAt;
}

/** Sends requests on one connection, one after another, until this backend answers one. */
async function answerOf(envoy: Client, backend: string, refused: number[]): Promise<void> {
  await until(
    `an answer of ${backend}`,
    async note => {
      const { statusCode, body } = await envoy.request({
        method: 'GET',
        path: '/hello',
        headers: { host: HOST },
      });
      const text = await body.text();
      note(`${statusCode} ${text}`);
      if (statusCode !== 200) refused.push(statusCode);
      const isFound = statusCode === 200 && (JSON.parse(text) as { backend: string }).backend === backend;
      return isFound;
    },
    { everyMs: 1 },
  );
}

function figuresOf(first: First, { awayMs, backMs, refused }: Times): readonly Figure[] {
  const what =
    first === 'Service'
      ? { away: 'a Service without endpoints to the next level', back: 'its endpoint to the first level' }
      : { away: 'a failing device to the next level', back: 'a healthy device to the first level' };
  const detectionMs = 1000 * CHECK.intervalSeconds * CHECK.threshold;
  const figures = (name: string, ms: readonly number[]): readonly Figure[] => [
    { name: `${name}, p50 of ${ms.length}`, value: quantile(ms, 0.5), unit: 'ms' },
    {
      name: `${name}, p99 of ${ms.length}`,
      value: quantile(ms, 0.99),
      unit: 'ms',
      // Where EDS decides alone; with checks, what they need to detect it comes first.
      ...(first === 'Service' && { aim: 1000 }),
    },
  ];
  const detection = {
    name: 'of which checks need: interval x threshold, at most',
    value: detectionMs,
    unit: 'ms',
  };
  return [
    ...figures(what.away, awayMs),
    ...figures(what.back, backMs),
    ...(first === 'device' ? [detection] : []),
    { name: `requests not answered with 200, ${first} first`, value: refused.length, unit: '' },
  ];
}
