import { parseArgs } from 'node:util';
import { formatProblem, severityOf } from '../api/problem.ts';
import { lint } from './lint-text.ts';
import type { Report } from './lint-text.ts';
import { plainText } from './plain-text.ts';
import { readSources } from './sources.ts';

/** What `mesh-gateway help lint` prints. */
export const LINT_HELP = `mesh-gateway lint [--strict] PATH...

Checks the objects of mesh-gateway's kinds, such as MeshEndpoints, in YAML or JSON files as the
API server would, without a cluster: every fault with its file, line, field and fix.
Objects of other groups are ignored, except a ConfigMap that tls.caRef in the same file names.
A note marks tagSelectors, whose devices only the tailnet knows.

  PATH       a file, a folder (all .yaml, .yml and .json files below it, but no hidden ones), or -
             for standard input
  --strict   unknown fields are errors too

Exit status: 0 every object is valid, 1 an object is invalid, 2 wrong usage or an unreadable file.
`;

/** Runs `mesh-gateway lint`; returns the exit code. */
export async function runLint(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { strict: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  if (positionals.length === 0) throw new Error('lint: name a file, a folder, or - for standard input');
  const reports: Report[] = [];
  let hasUnread = false;
  for await (const source of readSources(positionals)) {
    hasUnread ||= 'why' in source;
    const report = 'why' in source ? unread(source.why) : lint(source.text);
    printReport(source.name, report);
    reports.push(report);
  }
  const status = summarize(reports, values.strict);
  return hasUnread ? 2 : status;
}

function unread(why: string): Report {
  return {
    findings: [{ reason: 'Unreadable', text: why, line: 1, column: 1 }],
    objects: 0,
  };
}

function printReport(name: string, { findings }: Report): void {
  for (const finding of findings)
    console.log(`${name}:${finding.line}: ${severityOf(finding)}: ${plainText(formatProblem(finding))}`);
}

function summarize(reports: readonly Report[], isStrict: boolean): number {
  const findings = reports.flatMap(report => report.findings);
  const [errors = 0, warnings = 0] = ['error', 'warning'].map(
    wanted => findings.filter(finding => severityOf(finding) === wanted).length,
  );
  const objects = reports.reduce((sum, report) => sum + report.objects, 0);
  console.error(
    `${count(objects, 'object')} in ${count(reports.length, 'file')}: ${count(errors, 'error')}, ${count(warnings, 'warning')}`,
  );
  return errors > 0 || (isStrict && warnings > 0) ? 1 : 0;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
