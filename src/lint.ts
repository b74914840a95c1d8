import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { lint } from './lint/lint.ts';
import type { Report } from './lint/lint.ts';

/** What `mesh-gateway help lint` prints. */
export const LINT_HELP = `mesh-gateway lint [--strict] PATH...

Checks MeshEndpoints, MeshTailnet and MeshBinding objects in YAML or JSON files as the
API server would, without a cluster: every fault with its file, line, field and fix.
Objects of other groups are left alone.

  PATH       a file, a folder (all .yaml, .yml and .json files below it), or - for standard input
  --strict   unknown fields are errors too

Exit status: 0 all is well, 1 something is wrong with an object, 2 wrong usage or an unreadable file.
`;

/** Runs `mesh-gateway lint`; gives the exit status. */
export async function runLint(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { strict: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  if (positionals.length === 0) throw new UsageError('lint: name a file, a folder, or - for standard input');
  const sources = (await Promise.all(positionals.map(findSources))).flat();
  const reports = await Promise.all(
    sources.map(async name => ({ name, report: lint(await readSource(name)) })),
  );
  for (const { name, report } of reports) printReport(name, report);
  return summarize(
    reports.map(({ report }) => report),
    values.strict,
  );
}

/** The command line asks for something that there is not. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const STANDARD_INPUT = '-';

async function findSources(path: string): Promise<readonly string[]> {
  if (path === STANDARD_INPUT || !(await stat(path)).isDirectory()) return [path];
  const entries = await readdir(path, { recursive: true });
  return entries
    .filter(entry => /\.(ya?ml|json)$/.test(entry))
    .sort()
    .map(entry => join(path, entry));
}

function readSource(name: string): Promise<string> {
  return name === STANDARD_INPUT ? readAll(process.stdin) : readFile(name, 'utf8');
}

function printReport(name: string, { findings }: Report): void {
  const shown = name === STANDARD_INPUT ? 'standard input' : name;
  for (const { severity, line, message } of findings)
    console.log(`${shown}:${line}: ${severity}: ${message}`);
}

function summarize(reports: readonly Report[], isStrict: boolean): number {
  const findings = reports.flatMap(report => report.findings);
  const errors = findings.filter(finding => finding.severity === 'error').length;
  const warnings = findings.length - errors;
  const objects = reports.reduce((sum, report) => sum + report.objects, 0);
  console.error(
    `${count(objects, 'object')} in ${count(reports.length, 'file')}: ${count(errors, 'error')}, ${count(warnings, 'warning')}`,
  );
  return errors > 0 || (isStrict && warnings > 0) ? 1 : 0;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
