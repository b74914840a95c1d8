import { describe, expect, it } from 'vitest';
import type { Way } from '../../support/controllers/faults/calls.ts';
import { differencesAfter, differencesWithLag, tellingCalls } from '../../support/controllers/faults/runs.ts';
import type { Scenario } from '../../support/controllers/faults/runs.ts';
import { TailnetRun } from '../../support/controllers/faults/tailnet-run.ts';

const kinds = ['MeshTailnet', 'Pod'] as const;

/** Fewer lists are faster. */
const RARELY = { syncInterval: '20s' };

/** Its mesh pods join, and one of two leaves again. */
const joins: Scenario<TailnetRun> = {
  start: run => TailnetRun.start(run, ({ installation }) => installation.put(RARELY)),
  kinds,
  disturbed: calls => tellingCalls(calls),
  changes: [({ installation }) => installation.put({ ...RARELY, pool: { replicas: 1 } })],
};

const losesItsDevice: Scenario<TailnetRun> = {
  start: run =>
    TailnetRun.start(run, ({ installation }) => installation.put({ ...RARELY, pool: { replicas: 1 } })),
  kinds,
  disturbed: tellingCalls,
  changes: [({ scene }) => scene.api.removeDevice(scene.joined()[0]?.nodeId ?? '')],
};

const isDeleted: Scenario<TailnetRun> = {
  start: joins.start,
  kinds,
  disturbed: tellingCalls,
  changes: [({ installation }) => installation.remove()],
};

/** It is deleted while no process runs. */
const crashesAndIsDeleted: Scenario<TailnetRun> = {
  start: run =>
    TailnetRun.start(run, ({ installation }) => {
      installation.beforeRestart = () => installation.remove();
      installation.put(RARELY);
    }),
  kinds,
  disturbed: (calls, before) => tellingCalls(calls.slice(0, before)),
  changes: isDeleted.changes,
};

const OF_OBJECT = /^(apply|remove|addFinalizer|removeFinalizer) MeshTailnet|^secret mesh-oauth/;

/** MeshEndpoints need it, are deleted, and need it again. */
const isCreated: Scenario<TailnetRun> = {
  start: run =>
    TailnetRun.start(run, ({ installation, scene }) => {
      scene.api.addDevice({ hostname: 'web' });
      installation.putEndpoints('web', 'TCP');
    }),
  kinds: [...kinds, 'MeshEndpoints'],
  disturbed: calls => tellingCalls(calls).filter(index => OF_OBJECT.test(calls[index] ?? '')),
  changes: [
    ({ installation }) => installation.removeEndpoints('web'),
    ({ installation }) => installation.putEndpoints('web', 'TCP'),
  ],
};

describe('cluster and tailnet are the same in the end, whatever happens to any one call, for a MeshTailnet that', () => {
  it.each<[string, Scenario<TailnetRun>, readonly Way[]]>([
    ['joins', joins, ['is followed by a crash', 'loses its response', 'gets an error response']],
    ['loses its device', losesItsDevice, ['is followed by a crash']],
    ['is deleted', isDeleted, ['is followed by a crash', 'gets an error response']],
    ['is deleted after a crash', crashesAndIsDeleted, ['is followed by a crash']],
    ['is created', isCreated, ['is followed by a crash', 'gets an error response']],
  ])('%s', async (_, scenario, ways) => {
    expect(await differencesAfter(ways, scenario)).toEqual([]);
  });
});

describe('cluster and tailnet are the same in the end, however late the caches, for a MeshTailnet that', () => {
  it.each([
    ['joins', joins],
    ['is deleted', isDeleted],
    ['is created', isCreated],
  ])('%s', async (_, scenario) => {
    expect(await differencesWithLag(2, scenario)).toEqual([]);
  });
});
