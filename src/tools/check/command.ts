import { parseArgs } from 'node:util';
import { findSources, readText, shownName } from '../sources.ts';
import { check } from './check.ts';
import type { Finding, SourceFile } from './objects.ts';
import { formatFindings, OUTPUTS } from './output.ts';

/** What `mesh-gateway help check` prints. */
export const CHECK_HELP = `mesh-gateway check [--output FORM] PATH...

Checks the objects in YAML or JSON files together, without a cluster, as mesh-gateway and Envoy
Gateway would use them: mesh-gateway's kinds, and the routes, Gateways and grants around them. Each
fault has its file, line, column, field and fix. Of a kind that is in no file, all objects may be
elsewhere, so nothing is reported that depends on one.

  PATH       a file, a folder (all .yaml, .yml and .json files below it), or - for standard input
  --output   text, which is the default, json, sarif (for code scanning) or github (annotations)

Examples:
  mesh-gateway check my-objects
  kubectl get mep,meshtailnets,httproutes,gateways,services -A -o yaml | mesh-gateway check -

Exit status: 0 all is well, 1 something is wrong, 2 wrong usage or an unreadable file.
`;

/** Runs `mesh-gateway check`; returns the exit code. */
export async function runCheck(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { output: { type: 'string', default: 'text' } },
    allowPositionals: true,
  });
  const output = OUTPUTS.find(form => form === values.output);
  if (output === undefined)
    throw new Error(`check: --output ${JSON.stringify(values.output)} is none of ${OUTPUTS.join(', ')}`);
  if (positionals.length === 0) throw new Error('check: name a file, a folder, or - for standard input');
  const names = (await Promise.all(positionals.map(findSources))).flat();
  const files: SourceFile[] = [];
  const unread: Finding[] = [];
  for (const name of new Set(names)) {
    const text = await readText(name);
    if ('text' in text) files.push({ name: shownName(name), text: text.text });
    else {
      const place = { file: shownName(name), line: 1, column: 1 };
      unread.push({ ...place, severity: 'error', rule: 'Unreadable', message: text.why });
    }
  }
  const { findings, objects } = check(files);
  const all = [...unread, ...findings];
  const printed = formatFindings(output, all, files);
  if (printed !== '') console.log(printed);
  console.error(summaryOf(all, objects, files.length));
  if (unread.length > 0) return 2;
  return all.some(({ severity }) => severity !== 'note') ? 1 : 0;
}

function summaryOf(findings: readonly Finding[], objects: number, files: number): string {
  const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`;
  const of = (wanted: Finding['severity']) => findings.filter(({ severity }) => severity === wanted).length;
  return `${count(objects, 'object')} in ${count(files, 'file')}: ${count(of('error'), 'error')}, ${count(of('warning'), 'warning')}, ${count(of('note'), 'note')}`;
}
