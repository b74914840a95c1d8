import type { OnStep } from '../../lab/process/steps.ts';
import { until } from '../../lab/process/wait.ts';
import { median } from '../figures.ts';
import type { Bench, Figure } from '../figures.ts';
import { withCluster } from './cluster.ts';
import type { BenchCluster, Extension, Metrics } from './cluster.ts';
import { startWorld } from './objects.ts';
import type { Kind, World } from './objects.ts';

const EDITS = 15;
const NEW_ROUTES = 6;
const TURNS = 2;

/** An edit causes one translation; after a new route the operator causes another, 2 s later. */
const REST_MS = { edited: 700, created: 2_700, filled: 5_000 } as const;

/**
 * Measures how long Envoy Gateway translates with and without our hook, how often it translates, and how long a user
 * waits for a new route, on a real cluster with all routes on one Gateway.
 */
export const translation: Bench = {
  duration: () => ({
    atLeastMs:
      (2 + 2 * 3 * TURNS) * (REST_MS.filled + 2 * EDITS * REST_MS.edited) +
      2 * (REST_MS.filled + 2 * NEW_ROUTES * REST_MS.created),
  }),
  run: translationFigures,
};

async function translationFigures(onStep: OnStep): Promise<readonly Figure[]> {
  return await withCluster({ user: 'npm run bench -- translation', onStep }, async bench => {
    const world = await startWorld(bench);
    const editedWith = async (service: number, mesh: number) => {
      onStep(`edits among ${service} routes to Services and ${mesh} to MeshEndpoints`);
      await world.setCounts({ service, mesh });
      return await edited(bench, world);
    };
    // In turns, so that other load of the machine affects all.
    const editedByEach = async (service: number, mesh: number) => {
      const edits: Record<Exclude<Extension, 'none'>, Edited[]> = {
        hooks: [],
        'without routes': [],
        'with the Route hook': [],
      };
      for (let turn = 0; turn < TURNS; turn++)
        for (const extension of ['hooks', 'without routes', 'with the Route hook'] as const) {
          await bench.configure(extension);
          edits[extension].push(...(await editedWith(service, mesh)));
        }
      return edits;
    };
    try {
      await bench.configure('none');
      const half = await editedWith(500, 0);
      const baseline = await editedWith(1_000, 0);
      const one = await editedByEach(1_000, 1);
      const many = await editedByEach(500, 500);
      await bench.configure('hooks');
      await world.setCounts({ service: 500, mesh: 500 });
      onStep('new routes among these');
      const amongMany = await created(bench, world);
      await world.setCounts({ service: 5, mesh: 5 });
      onStep('new routes among ten');
      const amongTen = await created(bench, world);
      return [
        { name: '500 Services, no extension', value: middle(half).ms, unit: 'ms' },
        { name: '1,000 Services, no extension: the baseline', value: middle(baseline).ms, unit: 'ms' },
        ...editedFigures('1,000 Services + 1 mesh', one.hooks, baseline, 1.9),
        ...editedFigures('500 Services + 500 mesh', many.hooks, baseline, 2.4),
        ...otherFigures('1,000 Services + 1 mesh', one),
        ...otherFigures('500 Services + 500 mesh', many),
        ...createdFigures('ten routes around', amongTen),
        ...createdFigures('500 + 500 around', amongMany),
      ];
    } finally {
      await world.end();
    }
  });
}

/** The durations of one edit of a route to a Service: of Envoy Gateway's translation, and of our part of it. */
type Edited = {
  readonly ms: number;
  readonly oursMs: number;
  readonly calls: number;
  readonly translations: number;
};

function editedFigures(
  name: string,
  edits: readonly Edited[],
  without: readonly Edited[],
  aim: number,
): readonly Figure[] {
  const [edit, baseline] = [middle(edits), middle(without)];
  return [
    { name, value: edit.ms, unit: 'ms' },
    { name: `${name}, to the baseline`, value: edit.ms / baseline.ms, unit: 'x', aim },
    { name: `${name}, our answer`, value: edit.oursMs, unit: 'ms' },
    { name: `${name}, calls for a translation`, value: edit.calls, unit: '', aim: 1 },
    { name: `${name}, translations for an edit`, value: edit.translations, unit: '' },
  ];
}

/** What it costs to edit routes: all of them in the one call, as the product configures, and by a call for each mesh route. */
function otherFigures(
  name: string,
  edits: Readonly<Record<Exclude<Extension, 'none'>, readonly Edited[]>>,
): readonly Figure[] {
  const [routes, without, hook] = [
    middle(edits.hooks).ms,
    middle(edits['without routes']).ms,
    middle(edits['with the Route hook']).ms,
  ];
  return [
    { name: `${name}, without routes`, value: without, unit: 'ms' },
    { name: `${name}, with routes, to without`, value: routes / without, unit: 'x' },
    { name: `${name}, with the Route hook`, value: hook, unit: 'ms' },
    { name: `${name}, with the Route hook, to without`, value: hook / without, unit: 'x' },
  ];
}

type Created = Readonly<Record<Kind, { readonly ms: number; readonly translations: number }>> & {
  readonly timedOut: number;
};

function createdFigures(where: string, { service, mesh, timedOut }: Created): readonly Figure[] {
  return [
    { name: `new route to a Service to its first 200, ${where}`, value: service.ms, unit: 'ms' },
    { name: `new route to MeshEndpoints to its first 200, ${where}`, value: mesh.ms, unit: 'ms' },
    { name: `the latter to the former, ${where}`, value: mesh.ms / service.ms, unit: 'x', aim: 1.5 },
    { name: `translations for a new route to a Service, ${where}`, value: service.translations, unit: '' },
    { name: `translations for a new route to MeshEndpoints, ${where}`, value: mesh.translations, unit: '' },
    { name: `waits for a revision that time out, ${where}`, value: timedOut, unit: '', aim: 0 },
  ];
}

/** The stage of Envoy Gateway that makes clusters and listeners, and calls the hooks. */
const XDS_COUNT = /^watchable_subscribe_duration_seconds_count\{.*runner="xds"/;
const XDS_SECONDS = /^watchable_subscribe_duration_seconds_sum\{.*runner="xds"/;
const CALLS = /^grpc_server_requests_total\{.*method="[^"]*\/?Post/;
const CALL_SECONDS = /^grpc_server_request_duration_seconds_sum\{.*method="[^"]*\/?Post/;
const MESH_CLUSTERS = /^mesh_gateway_mesh_clusters_total\{.*hook="translation"/;
const TIMED_OUT = /^mesh_gateway_revision_waits_total\{.*end="timeout"/;

/** Waits until no translation has run for some time. */
async function atRest({ envoyGateway }: BenchCluster, restMs: number): Promise<Metrics> {
  let [seen, since] = [NaN, NaN];
  const check = async () => {
    const metrics = await envoyGateway();
    const count = metrics.sum(XDS_COUNT);
    if (count !== seen) [seen, since] = [count, performance.now()];
    return performance.now() - since > restMs ? metrics : undefined;
  };
  return await until('Envoy Gateway to be idle', check, { everyMs: 100 });
}

/**
 * Edits a route to a Service repeatedly; fails if a translation returned another number of mesh clusters than there
 * are mesh routes.
 */
async function edited(bench: BenchCluster, world: World): Promise<readonly Edited[]> {
  const { mesh } = world.counts;
  const edits: Edited[] = [];
  await atRest(bench, REST_MS.filled);
  for (let edit = 0; edit < EDITS; edit++) {
    const before = await atRest(bench, REST_MS.edited);
    const serverBefore = await bench.extensionServer();
    await world.put('service', 'service-1', `/edit-${edit}`);
    const isTranslated = async () => (await bench.envoyGateway()).sum(XDS_COUNT) > before.sum(XDS_COUNT);
    await until('a translation', isTranslated);
    const after = await atRest(bench, REST_MS.edited);
    const now = await bench.extensionServer();
    const translations = after.sum(XDS_COUNT) - before.sum(XDS_COUNT);
    const since = (series: RegExp) => now.sum(series) - serverBefore.sum(series);
    const calls = since(CALLS);
    if (since(MESH_CLUSTERS) !== mesh * translations)
      throw new Error(`${since(MESH_CLUSTERS)} mesh clusters in ${translations} translations of ${mesh}`);
    edits.push({
      ms: ((after.sum(XDS_SECONDS) - before.sum(XDS_SECONDS)) * 1000) / translations,
      oursMs: (since(CALL_SECONDS) * 1000) / translations,
      calls: calls / translations,
      translations,
    });
  }
  await world.put('service', 'service-1');
  return edits;
}

function middle(edits: readonly Edited[]): Edited {
  const of = (read: (edit: Edited) => number) => median(edits.map(read));
  return {
    ms: of(({ ms }) => ms),
    oursMs: of(({ oursMs }) => oursMs),
    calls: of(({ calls }) => calls),
    translations: of(({ translations }) => translations),
  };
}

/** Creates routes of both kinds in turns, so that other load of the machine affects both. */
async function created(bench: BenchCluster, world: World): Promise<Created> {
  const made: Record<Kind, { ms: number; translations: number }[]> = { service: [], mesh: [] };
  const names = Array.from({ length: 2 * NEW_ROUTES }, (_, at) => `new-${at}`);
  let before = await atRest(bench, REST_MS.filled);
  const serverBefore = await bench.extensionServer();
  for (const [at, name] of names.entries()) {
    const kind = at % 2 === 0 ? 'service' : 'mesh';
    const startedAt = performance.now();
    await world.put(kind, name);
    await world.untilAnswered(name);
    const ms = performance.now() - startedAt;
    const after = await atRest(bench, REST_MS.created);
    made[kind].push({ ms, translations: after.sum(XDS_COUNT) - before.sum(XDS_COUNT) });
    before = after;
  }
  const timedOut = (await bench.extensionServer()).sum(TIMED_OUT) - serverBefore.sum(TIMED_OUT);
  for (const name of names) await world.remove(name);
  const figures = (kind: Kind) => ({
    ms: median(made[kind].map(({ ms }) => ms)),
    translations: median(made[kind].map(({ translations }) => translations)),
  });
  return { service: figures('service'), mesh: figures('mesh'), timedOut };
}
