import { parseArgs } from 'node:util';
import { severityOf } from '../../api/problem.ts';
import type { Severity } from '../../api/reasons.ts';
import { CONFIGURATION, CONFIGURATION_HELP, configuredBy } from '../configuration.ts';
import { readSources } from '../sources.ts';
import { COLOR_HELP, lookOf } from '../terminal.ts';
import { check } from './check.ts';
import { readCluster } from './cluster.ts';
import { readObjects } from './objects.ts';
import type { Finding, SourceFile } from './objects.ts';
import { formatFindings, OUTPUTS } from './output.ts';
import type { TrafficSettings } from './traffic.ts';

/** What `mesh-gateway help check` prints. */
export const CHECK_HELP = `mesh-gateway check [options] [PATH...]

Checks objects together, as mesh-gateway and Envoy Gateway use them:
mesh-gateway's kinds, and the routes, Gateways and grants around them. Each
fault has its place, field and fix.

With PATH it reads YAML or JSON files. Of a kind that is in no file, all objects
may be elsewhere, so nothing is reported that depends on one. Without PATH it
reads the cluster, and reports what RBAC did not let it read. It changes
nothing, and reads neither Secrets nor ConfigMaps.

  PATH          a file, a folder (all .yaml, .yml and .json files below it, but
                no hidden ones), or - for standard input
  --strict      warnings, such as of unknown fields, are errors too
  --output      text, which is the default, json, sarif (for code scanning) or
                github (annotations)
${COLOR_HELP}
${CONFIGURATION_HELP}
  --kubeconfig  the file of the cluster (default: $KUBECONFIG, or
                ~/.kube/config)
  --context     the context in it (default: the current one)
  --namespace   report only objects of this namespace

Examples:
  mesh-gateway check my-objects
  kustomize build | mesh-gateway check -
  mesh-gateway check --namespace shop

Exit status: 0 all is well, 1 something is wrong, 2 wrong usage, or a file could
not be read.
`;

type Checked = {
  readonly findings: readonly Finding[];
  readonly objects: number;
  readonly files: readonly SourceFile[];
  /** Such as 3 files. */
  readonly source: string;
};

/** Runs `mesh-gateway check`; returns the exit code. */
export async function runCheck(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      strict: { type: 'boolean', default: false },
      color: { type: 'string', default: 'auto' },
      output: { type: 'string', default: 'text' },
      kubeconfig: { type: 'string' },
      context: { type: 'string' },
      namespace: { type: 'string' },
      ...CONFIGURATION,
    },
    allowPositionals: true,
  });
  const output = OUTPUTS.find(form => form === values.output);
  if (output === undefined)
    throw new Error(`check: --output ${JSON.stringify(values.output)} is none of ${OUTPUTS.join(', ')}`);
  const look = lookOf('check', values.color, environment);
  const ofCluster = (['kubeconfig', 'context', 'namespace'] as const).find(
    name => values[name] !== undefined,
  );
  if (positionals.length > 0 && ofCluster)
    throw new Error(`check: --${ofCluster} is about a cluster: remove it, or the names of files`);
  const { kubeconfig, context, namespace } = values;
  const settings = configuredBy('check', values);
  const {
    findings: found,
    objects,
    files,
    source,
  } = positionals.length > 0
    ? await checkFiles(positionals, settings)
    : await checkCluster({ kubeconfig, context, namespace, environment }, settings);
  const findings = values.strict ? found.map(strictly) : found;
  const printed = formatFindings(output, findings, files, look);
  if (printed !== '') console.log(printed);
  console.error(summaryOf(findings, objects, source));
  if (findings.some(({ reason }) => reason === 'Unreadable')) return 2;
  return findings.some(finding => severityOf(finding) !== 'note') ? 1 : 0;
}

function strictly(finding: Finding): Finding {
  return severityOf(finding) === 'warning' ? { ...finding, mattersAs: 'error' } : finding;
}

async function checkFiles(paths: readonly string[], settings: TrafficSettings): Promise<Checked> {
  const files: SourceFile[] = [];
  const unread: Finding[] = [];
  for await (const source of readSources(paths)) {
    const { name } = source;
    if ('text' in source) {
      files.push({ name, text: source.text });
      continue;
    }
    const place = { file: name, line: 1, column: 1 };
    unread.push({ reason: 'Unreadable', text: source.why, ...place });
  }
  showProgress(`checking ${count(files.length, 'file')} ...`);
  const { findings, objects } = check(readObjects(files), settings);
  showProgress('');
  // What was not read may hold the objects.
  const own = unread.length === 0 ? findings : findings.filter(({ reason }) => reason !== 'NothingToCheck');
  return { findings: [...unread, ...own], objects, files, source: count(files.length, 'file') };
}

async function checkCluster(
  options: Omit<Parameters<typeof readCluster>[0], 'onKind'>,
  settings: TrafficSettings,
): Promise<Checked> {
  const { namespace } = options;
  const declarations = await readCluster({ ...options, onKind: kind => showProgress(`reading ${kind} ...`) });
  showProgress('');
  const { findings, objects } = check(declarations, settings);
  const isWanted = ({ about }: Finding) =>
    namespace === undefined || about?.name === undefined || about.namespace === namespace;
  return { findings: findings.filter(isWanted), objects, files: [], source: 'the cluster' };
}

/** Shows what is done on a terminal, in place of what was shown before. */
function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function summaryOf(findings: readonly Finding[], objects: number, source: string): string {
  const of = (wanted: Severity) => findings.filter(finding => severityOf(finding) === wanted).length;
  return `${count(objects, 'object')} in ${source}: ${count(of('error'), 'error')}, ${count(of('warning'), 'warning')}, ${count(of('note'), 'note')}`;
}
