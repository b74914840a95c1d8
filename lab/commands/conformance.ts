/** `npm run conformance -- --mode MODE [--run TEST]`: the conformance suite of Gateway API in the cluster, as root. */
import { chmodSync, copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { useCluster } from '../cluster/use-cluster.ts';
import { MODES } from '../conformance/modes.ts';
import type { Mode } from '../conformance/modes.ts';
import { runConformance } from '../conformance/run.ts';
import type { Conformance } from '../conformance/run.ts';
import { tableOf, unexplainedIn } from '../conformance/table.ts';
import { PROJECT } from '../install/image.ts';
import { locateBinaries } from '../parts/locate.ts';
import { printSteps } from '../process/steps.ts';
import { EXIT, runMain } from './run-main.ts';

const USAGE = `npm run conformance -- --mode MODE [--run TEST]...

  --mode envoy-gateway   Envoy Gateway alone: the baseline
  --mode installed       the same, with mesh-gateway installed
  --mode mesh-endpoints  MeshEndpoints of devices in place of Services
  --run TEST             only this test, and write nothing to docs/conformance; may be repeated
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { mode: { type: 'string' }, run: { type: 'string', multiple: true, default: [] } },
  });
  const mode = MODES.find(name => name === values.mode);
  if (mode === undefined) throw new Error(`--mode is missing or unknown\n${USAGE}`);
  const pathOf = locateBinaries(process.env);
  const onStep = printSteps();
  onStep('the cluster');
  const { cluster, end } = await useCluster({ user: 'npm run conformance', onStep });
  try {
    const run = await runConformance({ cluster, pathOf, mode, tests: values.run, onStep });
    const baseline = mode === 'envoy-gateway' ? undefined : readIfExists(recordOf('envoy-gateway').report);
    const table = tableOf(run, baseline);
    console.log(`\n${table}`);
    console.log(`log: ${run.log}`);
    if (values.run.length === 0) record(run, table);
    const unexplained = mode === 'envoy-gateway' ? [] : unexplainedIn(run, baseline);
    if (unexplained.length > 0) console.error(`failed without a known cause: ${unexplained.join(', ')}`);
    return unexplained.length === 0 ? EXIT.done : EXIT.notDone;
  } finally {
    await end();
  }
}

/** The files of a mode in the documentation. */
function recordOf(mode: Mode) {
  const folder = join(PROJECT, 'docs', 'conformance');
  return { report: join(folder, `${mode}.yaml`), table: join(folder, `${mode}.txt`) };
}

function readIfExists(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** Keeps the report as the suite wrote it, and the table. */
function record(run: Conformance, table: string): void {
  const files = recordOf(run.mode);
  copyFileSync(run.report, files.report);
  chmodSync(files.report, 0o644);
  writeFileSync(files.table, table);
}

await runMain('conformance', main);
