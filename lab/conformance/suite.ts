import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import { promisify } from 'node:util';
import { ENVOY_GATEWAY } from '../cluster/envoy-gateway.ts';
import type { Implementation } from './modes.ts';

const run = promisify(execFile);

/** A test of the suite, with the features that it needs. */
export type SuiteTest = {
  readonly name: string;
  readonly features: readonly string[];
  readonly provisional: boolean;
};

/** The result of a test that ran. */
export type Result = { readonly name: string; readonly passed: boolean; readonly seconds: number };

/** Writes the manifests of the suite into a new folder, and returns its tests. */
export async function exportSuite(program: string, folder: string): Promise<readonly SuiteTest[]> {
  const { stdout } = await run(program, ['-export', folder], { maxBuffer: 16 * 1024 * 1024 });
  const tests = JSON.parse(stdout) as readonly SuiteTest[];
  return tests.filter(({ features }) => !features.some(feature => UNSUPPORTED.includes(feature)));
}

/** The features that Envoy Gateway does not claim to have. */
const UNSUPPORTED: readonly string[] = [
  'GatewayInfrastructurePropagation',
  'GatewayHTTPSListenerDetectMisdirectedRequests',
];

/** A run of the suite. */
export type SuiteRun = {
  readonly program: string;
  readonly kubeconfig: string;
  /** The folder of the run; it has the manifests, and gets the report and the log. */
  readonly folder: string;
  readonly mode: string;
  readonly implementation: Implementation;
  /** The tests to run; all if it is empty. */
  readonly tests: readonly string[];
  readonly skipped: readonly string[];
  readonly onResult: (result: Result) => void;
};

/** Where a run has its manifests, its report and its log. */
export function filesOf(folder: string) {
  return {
    manifests: join(folder, 'manifests'),
    options: join(folder, 'options.json'),
    report: join(folder, 'report.yaml'),
    log: join(folder, 'conformance.log'),
  };
}

/** Runs tests of the suite one after another; fails if the suite ended before its report. */
export async function runSuite(suite: SuiteRun): Promise<readonly Result[]> {
  const { manifests, options, report, log } = filesOf(suite.folder);
  writeFileSync(options, JSON.stringify(optionsOf(suite)));
  const args = ['-test.v=test2json', `-manifests=${manifests}`, `-conformance-options-file=${options}`];
  const child = spawn(suite.program, [...args, `-tests=${suite.tests.join()}`], {
    env: { KUBECONFIG: suite.kubeconfig, HOME: suite.folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const file = createWriteStream(log);
  child.stdout.pipe(file);
  const results: Result[] = [];
  createInterface(child.stdout).on('line', line => {
    const result = resultIn(line);
    if (!result) return;
    results.push(result);
    suite.onResult(result);
  });
  await once(child, 'close');
  await finished(file);
  if (!existsSync(report)) throw new Error(`the suite ended without a report:\n${lastLinesOf(log)}`);
  return results;
}

const TAIL_LINES = 20;

function lastLinesOf(file: string): string {
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
}

/** The result in a line of the log: `--- PASS: Conformance/HTTPRouteWeight (3.21s)`. Steps of a test have none. */
export function resultIn(line: string): Result | undefined {
  const [, verdict, name = '', seconds] =
    /^[\s\x16]*--- (PASS|FAIL): Conformance\/([^/ ]+) \(([\d.]+)s\)$/.exec(line) ?? [];
  return verdict === undefined ? undefined : { name, passed: verdict === 'PASS', seconds: Number(seconds) };
}

function optionsOf({ folder, mode, implementation, skipped }: SuiteRun) {
  return {
    gatewayClassName: ENVOY_GATEWAY.gatewayClass,
    cleanupBaseResources: true,
    cleanupTestResources: true,
    enableAllSupportedFeatures: true,
    exemptFeatures: UNSUPPORTED,
    conformanceProfiles: ['GATEWAY-HTTP', 'GATEWAY-GRPC', 'GATEWAY-TLS', 'GATEWAY-TCP', 'GATEWAY-UDP'],
    skipTests: skipped,
    mode,
    implementation,
    reportOutputPath: filesOf(folder).report,
    timeoutConfig: TIMEOUTS,
    usableNetworkAddresses: [{ type: 'IPAddress', value: USABLE }],
    unusableNetworkAddresses: [{ type: 'Hostname', value: 'unusable.example.com' }],
  };
}

/** For a slow and busy machine; only those for which the suite leaves an implementation as long as it needs. */
const TIMEOUTS = {
  getTimeout: '60s',
  deleteTimeout: '60s',
  gatewayStatusMustHaveListeners: '180s',
  gatewayListenersMustHaveConditions: '180s',
  httpRouteMustNotHaveParents: '180s',
  httpRouteMustHaveCondition: '180s',
  tlsRouteMustHaveCondition: '180s',
  tcpRouteMustHaveCondition: '180s',
  udpRouteMustHaveCondition: '180s',
  routeMustHaveParents: '180s',
  latestObservedGenerationSet: '180s',
  defaultTestTimeout: '180s',
};

/** A free address of the cluster's Services. */
const USABLE = '10.213.128.200';
