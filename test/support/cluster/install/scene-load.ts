import { until } from '../../../../lab/process/wait.ts';
import { printLogsOnFailure } from '../logs.ts';
import { startLoad } from './load.ts';
import type { LoadResult } from './load.ts';
import { PLACE } from './scene.ts';
import type { InstallScene } from './scene.ts';

const MIN_LOAD = { requests: 100, changes: 1 };

/**
 * Calls a function while requests go through the Gateway and hosts are added to the route; returns the failures. The function
 * gets another that waits until a host that is added from then on has answered.
 */
export async function failuresUnderLoad(
  scene: InstallScene,
  what: string,
  work: (hostIsAdded: () => Promise<unknown>) => Promise<unknown>,
): Promise<readonly string[]> {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  const requests = startLoad(4, async () => {
    const { status, body } = await scene.request();
    if (status !== 200) throw new Error(`${status} ${body}`);
  });
  const changes = startLoad(1, () => scene.addHost(`new-${crypto.randomUUID()}.example.com`));
  const isEnough = () => requests.attempts() > MIN_LOAD.requests && changes.attempts() > MIN_LOAD.changes;
  // On a slow machine the work may be done before.
  const loaded = () => until('more load', () => isEnough());
  const hostIsAdded = async () => {
    // One may be under way, and has perhaps been answered already.
    const wanted = changes.attempts() + 2;
    await until('a new host to answer', () => changes.attempts() >= wanted);
  };
  const wentWell = work(hostIsAdded).then(loaded);
  await wentWell.catch(() => undefined);
  const [requested, changed] = await Promise.all([requests.end(), changes.end()]);
  await wentWell;
  const summaryOf = ({ tookMs, failures }: LoadResult) =>
    `${tookMs.length} went well, ${failures.length} failed, the slowest took ${Math.max(...tookMs)} ms`;
  console.log(`${what}\nrequests: ${summaryOf(requested)}\nnew hosts: ${summaryOf(changed)}`);
  const isLoad = requested.tookMs.length > MIN_LOAD.requests && changed.tookMs.length > MIN_LOAD.changes;
  return [...requested.failures, ...changed.failures, ...(isLoad ? [] : ['this was no load'])];
}
