import { parseManifests } from '../kube/manifests.ts';
import type { Conformance } from './run.ts';
import type { SuiteTest } from './suite.ts';

/** What a report has about tests; of those that passed, it has the number only. */
type Report = {
  readonly profiles?: readonly {
    readonly core?: Verdicts;
    readonly extended?: Verdicts;
  }[];
};

type Verdicts = { readonly failedTests?: readonly string[]; readonly skippedTests?: readonly string[] };

/** The tests that failed or were skipped in a report. */
function notPassedIn(report: string): ReadonlySet<string> {
  const [{ profiles = [] } = {}] = parseManifests(report, 'the report of the baseline') as readonly Report[];
  const verdicts = profiles.flatMap(({ core, extended }) => [core, extended]);
  return new Set(verdicts.flatMap(found => [...(found?.failedTests ?? []), ...(found?.skippedTests ?? [])]));
}

/** The features that a profile requires; all others are extended ones. */
const CORE = ['Gateway', 'ReferenceGrant', 'HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'];

function isCore({ features }: SuiteTest): boolean {
  return features.every(feature => CORE.includes(feature));
}

/** The result of a run as a table: core, extended, each feature, what differs from the report of the baseline. */
export function tableOf(run: Conformance, baseline: string | undefined): string {
  const features = [...new Set(run.tests.flatMap(test => test.features))].sort();
  const rows = [
    ['core', run.tests.filter(isCore)],
    ['extended', run.tests.filter(test => !isCore(test))],
    ...features.map(feature => [feature, run.tests.filter(test => test.features.includes(feature))] as const),
  ] as const;
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    `commit: ${run.commit}`,
    '',
    `${''.padEnd(width)}  passed  failed`,
    ...rows.map(([name, tests]) => {
      const passed = tests.filter(test => hasPassed(run, test.name)).length;
      const counts = [passed, tests.length - passed].map(count => `${count}`.padStart(6));
      return `${name.padEnd(width)}  ${counts.join('  ')}`;
    }),
    ...section(
      'failed',
      failedIn(run).map(name => (run.limits[name] === undefined ? name : `${name}: ${run.limits[name]}`)),
    ),
    ...(baseline === undefined
      ? []
      : section('different from Envoy Gateway alone', differences(run, baseline))),
    ...section(
      'excluded',
      Object.entries(run.excluded).map(([name, reason]) => `${name}: ${reason}`),
    ),
    '',
  ].join('\n');
}

function hasPassed({ results }: Conformance, test: string): boolean {
  return results.some(({ name, passed }) => name === test && passed);
}

function failedIn(run: Conformance): readonly string[] {
  return run.tests.map(({ name }) => name).filter(name => !hasPassed(run, name));
}

/** The tests that failed without a known cause, and not in the baseline. */
export function unexplainedIn(run: Conformance, baseline: string | undefined): readonly string[] {
  const notPassed = baseline === undefined ? new Set<string>() : notPassedIn(baseline);
  return failedIn(run).filter(name => run.limits[name] === undefined && !notPassed.has(name));
}

function differences(run: Conformance, baseline: string): readonly string[] {
  const notPassed = notPassedIn(baseline);
  return run.tests.flatMap(({ name }) => {
    const passed = hasPassed(run, name);
    if (passed !== notPassed.has(name)) return [];
    return `${name}: ${passed ? 'passes here' : 'fails here'}`;
  });
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return ['', `${title}: ${lines.length === 0 ? 'none' : lines.length}`, ...lines.map(line => `  ${line}`)];
}
