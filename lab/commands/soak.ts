/** `npm run soak [-- --list | --only NAME | --from NAME] [--again]`: runs the long forms, and records their results. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PROJECT } from '../install/image.ts';
import { elapsed } from '../parts/progress.ts';
import { FORMS } from '../soak/forms.ts';
import type { Form } from '../soak/forms.ts';
import { countsInReport, countsInTable, formsToRun, isCurrent, pageOf } from '../soak/record.ts';
import type { Counts, Run, SoakRecord } from '../soak/record.ts';
import { sourceOf } from '../soak/source.ts';
import { EXIT, runMain, stopOnSignals } from './run-main.ts';

const [RECORD, PAGE] = ['docs/soak.json', 'docs/soak.md'].map(file => join(PROJECT, file)) as [
  string,
  string,
];
const REPORT = join(PROJECT, '.cache', 'soak', 'report.json');

function readRecord(): SoakRecord {
  return JSON.parse(readFileSync(RECORD, 'utf8')) as SoakRecord;
}

function write(record: SoakRecord): void {
  writeFileSync(RECORD, `${JSON.stringify(record, null, 2)}\n`);
  writeFileSync(PAGE, pageOf(FORMS, record));
}

function list(): number {
  const [record, source] = [readRecord(), sourceOf(PROJECT)];
  for (const { name } of FORMS) {
    const run = record[name];
    const state = isCurrent(run, source) ? 'passed' : run ? `stale, ${run.date}` : 'not run yet';
    console.log(`${name.padEnd(48)}${state}${run ? `, took ${elapsed(run.seconds * 1000)}` : ''}`);
  }
  return EXIT.done;
}

/** Runs a form to its end; nothing is recorded of one that a signal has stopped. */
async function runForm({ command, counts }: Form): Promise<Run> {
  mkdirSync(join(REPORT, '..'), { recursive: true });
  const file = counts === 'vitest' ? REPORT : join(PROJECT, counts.table);
  const before = sourceOf(PROJECT);
  const startMs = performance.now();
  // What an earlier run has written does not count.
  const writtenMs = existsSync(file) ? statSync(file).mtimeMs : 0;
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${REPORT}`];
  const [program = '', ...args] = [...command, ...(counts === 'vitest' ? reporters : [])];
  const env = { ...process.env, MESH_GATEWAY_FORM: 'long' };
  const child = spawn(program, args, { cwd: PROJECT, env, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = (await once(child, 'close')) as [number | null];
  const after = sourceOf(PROJECT);
  const read = counts === 'vitest' ? countsInReport : countsInTable;
  const none: Counts = { passed: 0, failed: 0, skipped: 0 };
  const found =
    existsSync(file) && statSync(file).mtimeMs > writtenMs ? read(readFileSync(file, 'utf8')) : none;
  return {
    ...before,
    isDirty: before.isDirty || after.isDirty || after.sources !== before.sources,
    date: new Date().toISOString(),
    seconds: Math.round((performance.now() - startMs) / 1000),
    ok: code === 0 && found.passed > 0,
    ...found,
  };
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      list: { type: 'boolean' },
      again: { type: 'boolean' },
      only: { type: 'string', multiple: true, default: [] },
      from: { type: 'string' },
    },
  });
  if (values.list) return list();
  const selection = {
    only: values.only,
    from: values.from,
    passed: values.again ? 'again' : 'skip',
  } as const;
  const forms = formsToRun(FORMS, readRecord(), sourceOf(PROJECT), selection);
  console.error(`${forms.length} of ${FORMS.length} long forms are to run`);
  const stop = stopOnSignals();
  const failed: string[] = [];
  for (const [at, form] of forms.entries()) {
    const last = readRecord()[form.name];
    const took = last ? `, took ${elapsed(last.seconds * 1000)} last time` : '';
    console.error(`\n${at + 1} of ${forms.length}: ${form.name}${took}`);
    const run = await runForm(form);
    if (stop.aborted) return EXIT.interrupted;
    write({ ...readRecord(), [form.name]: run });
    if (!run.ok) failed.push(form.name);
    console.error(`${form.name} ${run.ok ? 'passed' : 'FAILED'} after ${elapsed(run.seconds * 1000)}`);
  }
  if (failed.length > 0) console.error(`failed: ${failed.join(', ')}`);
  return failed.length > 0 ? EXIT.notDone : EXIT.done;
}

await runMain('soak', main);
