import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { NODE_FLAGS } from '../../lab/cluster/images/product.ts';
import type { OnStep } from '../../lab/process/steps.ts';
import { builtProduct, bundled } from '../bundled.ts';
import { median } from '../figures.ts';
import type { Bench, Figure } from '../figures.ts';
import { onApiServer } from './api-server.ts';
import type { Answers, Measured, Phase } from './figures.ts';

const MANY = 10_000;
const STORM_EDITS_PER_SECOND = 20;

/**
 * Measures what one namespace's edits cost where many share a Gateway, and what others wait for meanwhile: all controllers in
 * one process, with an API server in memory; with the part `api-server` an operator on a real one.
 */
export const tenants: Bench = {
  duration: () => ({ aboutMs: 400_000 }),
  run: async (onStep, part) => {
    if (part === 'api-server') return await onApiServer(onStep);
    if (part !== undefined) throw new Error('tenants has one part: api-server');
    builtProduct();
    const bundle = bundled('tenants/operator');
    const few = await measure(bundle, 100, 'edits', onStep);
    const more = await measure(bundle, 1_000, 'edits', onStep);
    const many = await measure(bundle, MANY, 'storm', onStep);
    const translations = bundled('tenants/translations');
    const some = await run<Answers>([translations, '500']);
    const all = await run<Answers>([translations, '5000']);
    return [
      ...editFigures(100, few),
      ...editFigures(1_000, more),
      ...editFigures(MANY, many),
      ...stormFigures(many),
      ...coldFigures(many),
      ...answerFigures(500, some),
      ...answerFigures(5_000, all),
      {
        name: 'what an edit adds to an answer, 5000 mesh routes to 500',
        value: all.editMs / some.editMs,
        unit: 'x',
        aim: 2,
      },
    ];
  },
};

async function measure(bundle: string, routes: number, phase: Phase, onStep: OnStep): Promise<Measured> {
  onStep(`${routes} routes on one Gateway: ${phase}`);
  return await run<Measured>([bundle, String(routes), phase]);
}

/** Runs a bundle as the product runs in its image. */
async function run<T>(args: readonly string[]): Promise<T> {
  const env = { MALLOC_MMAP_THRESHOLD_: '32768' };
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [...NODE_FLAGS, '--expose-gc', ...args],
    { env },
  );
  if (stderr !== '') throw new Error(stderr);
  return JSON.parse(stdout) as T;
}

function answerFigures(
  routes: number,
  { firstMs, copiedMs, unchangedMs, editMs, editRevisionMs }: Answers,
): readonly Figure[] {
  const what = `CPU of the answer to a translation of ${routes} mesh routes`;
  return [
    { name: `${what}, the first`, value: firstMs, unit: 'ms' },
    { name: `${what}, reading and copying it`, value: copiedMs, unit: 'ms' },
    { name: `${what}, nothing has changed`, value: unchangedMs, unit: 'ms' },
    { name: `${what}, what an edit of a route adds`, value: editMs, unit: 'ms' },
    { name: `${what}, of that the revision of its Gateway`, value: editRevisionMs, unit: 'ms' },
  ];
}

function editFigures(routes: number, { edits: { weightMs, routeMs } }: Measured): readonly Figure[] {
  const figure = (what: string, values: readonly number[]): Figure => ({
    name: `CPU of an edit of ${what}, ${routes} routes`,
    value: median(values),
    unit: 'ms',
    aim: 5,
  });
  return [figure('a weight', weightMs), figure('a route', routeMs)];
}

function stormFigures({ storm }: Measured): readonly Figure[] {
  if (!storm) throw new Error('no storm was measured');
  const { idle, during, editsPerSecond, cpuShare, longestMs } = storm;
  return [
    { name: 'status of another namespace, idle, p50', value: median(idle), unit: 'ms' },
    { name: 'during a storm, p50', value: median(during), unit: 'ms' },
    { name: 'during a storm, p50, to idle', value: median(during) / median(idle), unit: 'x', aim: 2 },
    { name: 'during a storm, p99', value: p99(during), unit: 'ms', aim: 1_000 },
    {
      name: 'edits of the storm',
      value: editsPerSecond,
      unit: '/s',
      aim: 0.9 * STORM_EDITS_PER_SECOND,
      good: 'high',
    },
    { name: 'CPU during a storm, of one core', value: 100 * cpuShare, unit: '%' },
    { name: 'longest delay of the event loop during a storm', value: longestMs, unit: 'ms', aim: 50 },
  ];
}

function p99(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(0.99 * sorted.length) - 1] ?? NaN;
}

function coldFigures({ cold }: Measured): readonly Figure[] {
  const { cpuMs, apiServerMs, endedMs, longestMs, rssMegabytes, heapMegabytes } = cold;
  const what = `cold start with ${MANY} MeshEndpoints and routes`;
  return [
    { name: `${what}, CPU`, value: cpuMs / 1_000, unit: 's', aim: 5 },
    { name: `${what}, CPU of the API server in memory beside it`, value: apiServerMs / 1_000, unit: 's' },
    { name: `${what}, until all is written`, value: endedMs / 1_000, unit: 's' },
    { name: `${what}, longest delay of the event loop`, value: longestMs, unit: 'ms', aim: 50 },
    { name: `${what}, resident memory`, value: rssMegabytes, unit: 'MB', aim: 250 },
    { name: `${what}, heap after collection`, value: heapMegabytes, unit: 'MB' },
  ];
}
