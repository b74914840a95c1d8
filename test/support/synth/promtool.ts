import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { stringify } from 'yaml';

const run = promisify(execFile);

const promtool = ['/usr/bin/promtool', '/usr/local/bin/promtool'].find(path => existsSync(path));

/** Whether tests that need promtool are skipped; in CI a missing tool is a failure. */
export const lacksPromtool = promtool === undefined && process.env['CI'] === undefined;

if (lacksPromtool)
  console.warn("promtool is missing: the alerts are not tested; install Debian's prometheus");

/** Series and their values in promtool's notation, one value every 30 s from the start. */
export type Series = Readonly<Record<string, string>>;

/** Runs promtool on temporary files; returns its output, and throws if it fails. */
export async function runPromtool(
  files: Readonly<Record<string, object>>,
  args: readonly string[],
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'promtool-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), stringify(content));
  const { stdout } = await run(promtool ?? 'promtool', args, { cwd: folder });
  return stdout;
}

/** Throws unless an alert fires, or does not, at a time. */
export async function expectAlert(
  rules: object,
  series: Series,
  { alert, at, times }: { readonly alert: string; readonly at: string; readonly times: number },
): Promise<void> {
  const fires = `count(ALERTS{alertname="${alert}", alertstate="firing"})`;
  const test = {
    rule_files: ['rules.yaml'],
    evaluation_interval: '30s',
    tests: [
      {
        interval: '30s',
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        promql_expr_test: [
          { expr: fires, eval_time: at, exp_samples: times === 0 ? [] : [{ labels: '{}', value: times }] },
        ],
      },
    ],
  };
  await runPromtool({ 'rules.yaml': rules, 'test.yaml': test }, ['test', 'rules', 'test.yaml']);
}
