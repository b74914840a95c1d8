import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withLogTail } from '../../../lab/process/process.ts';
import { until } from '../../../lab/process/wait.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import {
  hostOf,
  placesOf,
  routeWithEndpointHeader,
  untilEndpoints,
  writeHealth,
} from '../../support/lab/traffic/changing-world.ts';
import { startComposed } from '../../support/lab/traffic/composed.ts';
import type { Composed } from '../../support/lab/traffic/composed.ts';
import { activeCluster } from '../../support/lab/traffic/gateway-reads.ts';
import { answersOf, startLoad } from '../../support/lab/traffic/load.ts';
import type { Load } from '../../support/lab/traffic/load.ts';
import { clusterOf, meshTailnet } from '../../support/lab/traffic/objects.ts';
import { startWatched } from '../../support/lab/traffic/watched.ts';
import type { Watched } from '../../support/lab/traffic/watched.ts';

const PER_SECOND = 200;
const CHECK = { enabled: true, type: 'HTTP', path: '/status/200', interval: '5s', timeout: '5s' };

let system: Composed<Watched>;
let load: Load;
beforeAll(async () => {
  system = await startComposed(startWatched);
  const { lab, gateway } = system;
  const [one, two] = [remoteOf(lab, 'web-1'), remoteOf(lab, 'web-2')];
  system.put('tailnet', [meshTailnet(lab, [lab.proxy])]);
  const places = [
    { name: 'a', on: one, healthCheck: CHECK },
    { name: 'b', on: two, healthCheck: CHECK },
  ];
  system.put('web', [placesOf(lab, 'web', 'http', one, places)]);
  putRoutes(8);
  await withLogTail(gateway, Promise.all(namesOf(8).map(untilAnswered)));
  await writeHealth(system, 'web', { a: 'Healthy', b: 'Healthy' });
  await untilEndpoints(gateway, clusterOf(route('r0')), ({ health }) => health, ['HEALTHY', 'HEALTHY']);
  load = startLoad({
    listener: gateway.listeners.http,
    targets: namesOf(6).map(name => ({ host: hostOf(name) })),
    perSecond: PER_SECOND,
  });
});
afterAll(async () => {
  try {
    await load.stop();
  } finally {
    await system.end();
  }
});

const route = (name: string) => ({ kind: 'HTTPRoute', name }) as const;
const namesOf = (count: number) => Array.from({ length: count }, (_, at) => `r${at}`);

function putRoutes(count: number): void {
  const { lab, gateway } = system;
  const refs = [{ name: 'web', port: portOf(lab) }];
  system.put(
    'routes',
    namesOf(count).map(name => routeWithEndpointHeader(gateway, { name, refs })),
  );
}

function portOf(lab: Composed<Watched>['lab']): number {
  return remoteOf(lab, 'web-1').ports['http'] ?? 0;
}

async function untilAnswered(name: string): Promise<void> {
  const send = async () =>
    (await answersOf(system.gateway.listeners.http, { host: hostOf(name) }, 1, ({ backend }) => backend))
      .size;
  await until(`an answer of ${name}`, send);
}

/** Waits until the first of `count` clusters of Envoy have, or lack, a health check, and each has answered. */
async function untilChecked(count: number, by: 'Envoy' | 'the operator alone'): Promise<void> {
  const checked = async (note: (seen: string) => void) => {
    const clusters = await Promise.all(
      namesOf(count).map(name => activeCluster(system.gateway, clusterOf(route(name)))),
    );
    const checks = clusters.map(cluster => JSON.stringify(cluster).includes('"health_checks"'));
    note(checks.join(' '));
    return checks.every(each => each === (by === 'Envoy'));
  };
  await withLogTail(system.gateway, until(`${by} to check`, checked));
  await Promise.all(namesOf(count).map(untilAnswered));
}

/** Sends as much load as a cluster that Envoy replaces too soon, or too late, would fail. */
async function untilLoaded(): Promise<void> {
  const enough = load.answered() + 5 * PER_SECOND;
  await until('more requests', () => load.answered() > enough);
}

const bindingNow = () => {
  const { namespace, name } = system.gateway;
  return system.operator.read.get({ kind: 'MeshBinding', namespace, name })?.spec;
};

describe('without a MeshGateway, under load', () => {
  it('Envoy checks a service in 8 clusters, and no MeshBinding has settings', async () => {
    await untilChecked(8, 'Envoy');
    expect(bindingNow()).not.toHaveProperty('settings');
  });

  it('the operator alone checks it in 9, and no request fails at the switch', async () => {
    putRoutes(9);
    await untilChecked(9, 'the operator alone');
    await untilLoaded();
    expect(bindingNow()?.settings).toEqual({ checkedByOperator: [`default/web:${portOf(system.lab)}`] });
    expect(load.failures()).toEqual([]);
  });

  it('the operator goes on alone with 7', async () => {
    const before = bindingNow()?.revision;
    putRoutes(7);
    await until('a new revision', () => bindingNow()?.revision !== before);
    await untilLoaded();
    await untilChecked(7, 'the operator alone');
    expect(bindingNow()?.settings).toHaveProperty('checkedByOperator');
  });

  it('Envoy checks it again with 6, and no request fails at the switch', async () => {
    putRoutes(6);
    await untilChecked(6, 'Envoy');
    await untilLoaded();
    expect(bindingNow()).not.toHaveProperty('settings');
    expect(load.failures()).toEqual([]);
  });
});
