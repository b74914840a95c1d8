import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { startHttpService } from '../../support/lab/health/services.ts';
import type { HttpService } from '../../support/lab/health/services.ts';
import { checkedSystem, httpCluster } from '../../support/lab/health/world.ts';
import type { CheckedSystem } from '../../support/lab/health/world.ts';
import { startLoad } from '../../support/lab/traffic/load.ts';
import { startSystem } from '../../support/lab/traffic/system.ts';
import type { System } from '../../support/lab/traffic/system.ts';

let system: System;
let checked: CheckedSystem;
let good: HttpService;
let bad: HttpService;
beforeAll(async () => {
  [system, good, bad] = await Promise.all([startSystem(), startHttpService(), startHttpService()]);
  checked = checkedSystem(system);
  await bad.set('failing');
  checked.putChecked('good', good.port);
  checked.putChecked('bad', bad.port);
  await untilDecided();
  await eventually(async () => expect(await inEnvoy()).toEqual({ good: true, bad: false }));
});
afterAll(async () => {
  await system.end();
  await good.close();
  await bad.close();
});

async function untilDecided(): Promise<void> {
  const decided = async () => ({ good: await checked.gauge('good'), bad: await checked.gauge('bad') });
  await eventually(async () => expect(await decided()).toEqual({ good: 1, bad: 0 }));
}

/** Whether Envoy uses each endpoint. */
async function inEnvoy(): Promise<Readonly<Record<string, boolean | undefined>>> {
  const [forGood, forBad] = await Promise.all([
    checked.usable(httpCluster('good'), good.port),
    checked.usable(httpCluster('bad'), bad.port),
  ]);
  return { good: forGood, bad: forBad };
}

/** Collects what Envoy uses until the returned function is called, and leaves time for the checks that this process answers. */
function watchEnvoy(): () => Promise<readonly string[]> {
  const seen = new Set<string>();
  let isWatching = true;
  const watch = async () => {
    while (isWatching) {
      seen.add(JSON.stringify(await inEnvoy()));
      await sleep(20);
    }
  };
  const watching = watch();
  return async () => {
    isWatching = false;
    await watching;
    return [...seen];
  };
}

it('standalone that is killed and started again changes the health of no endpoint, and no request fails', async () => {
  const stopWatching = watchEnvoy();
  const load = startLoad({
    listener: system.listeners['http'] ?? '',
    targets: [{ host: 'good.test' }],
    perSecond: 50,
  });
  await system.standalone.kill();
  await system.standalone.start();
  await untilDecided();
  await load.stop();
  expect(await stopWatching()).toEqual([JSON.stringify({ good: true, bad: false })]);
  expect(load.failures()).toEqual([]);
  expect(load.answered()).toBeGreaterThan(50);
});
