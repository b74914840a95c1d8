import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mesh-ci-'));
  mkdirSync(join(folder, 'reports'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Writes what a stage leaves behind. */
function report(files: Readonly<Record<string, unknown>>): void {
  for (const [name, content] of Object.entries(files))
    writeFileSync(
      join(folder, 'reports', name),
      typeof content === 'string' ? content : JSON.stringify(content),
    );
}

/** What vitest reports of one file. */
function vitestReport(file: string, statuses: readonly string[], project = process.cwd()) {
  const count = (wanted: string) => statuses.filter(status => status === wanted).length;
  const assertionResults = statuses.map(status => ({ status, fullName: 'does it', failureMessages: ['oh'] }));
  return {
    numPassedTests: count('passed'),
    numFailedTests: count('failed'),
    numPendingTests: count('pending'),
    numTodoTests: 0,
    success: count('failed') === 0,
    testResults: [{ name: join(project, file), status: 'passed', message: '', assertionResults }],
  };
}

/** The lines of the program, and its exit status. */
async function total({ ownTools = 'run', cwd = process.cwd() } = {}) {
  const args = [resolve('.ci/total.mjs'), join(folder, 'reports'), folder, String(Date.now() / 1000 - 60)];
  const env = { ...process.env, OWN_TOOLS: ownTools };
  return new Promise<{ readonly lines: readonly string[]; readonly code: unknown }>(settle => {
    execFile(process.execPath, args, { env, cwd }, (error, stdout, stderr) => {
      settle({ lines: `${stderr}${stdout}`.trimEnd().split('\n'), code: error ? error.code : 0 });
    });
  });
}

describe('the totals of all stages', () => {
  test('are the last line, in the form that is read by machines', async () => {
    report({
      'types.check': 'passed\n',
      'fast-node-24.suite': 'started\n',
      'fast-node-24.json': vitestReport('test/a.test.ts', ['passed', 'passed', 'pending']),
    });
    const { lines, code } = await total();
    expect(lines.at(-1)).toBe('3 passed, 0 failed, 1 skipped');
    expect(code).toBe(0);
  });

  test.each([
    { of: 'a check that failed', files: { 'types.check': 'failed\n' } },
    { of: 'a suite without a report', files: { 'lab.suite': 'started\n' } },
    {
      of: 'a test that failed',
      files: { 'lab.suite': 'started\n', 'lab.json': vitestReport('test/a.test.ts', ['failed']) },
    },
  ])('count $of', async ({ files }) => {
    report(files);
    const { lines, code } = await total();
    expect(lines.at(-1)).toBe('0 passed, 1 failed');
    expect(code).toBe(1);
  });

  test('come after the seconds of stages and files, which are kept as JSON', async () => {
    report({
      'lab.suite': 'started\n',
      'lab.json': vitestReport('test/lab/slow.test.ts', ['passed']),
      'lab.times': `${Date.now() / 1000 - 50} ${Date.now() / 1000 - 20}\n0m0.000s 0m0.000s\n1m2.500s 0m3.250s\n`,
      'lab.seconds': [
        { file: 'test/lab/slow.test.ts', seconds: 61 },
        { file: 'test/lab/quick.test.ts', seconds: 59 },
      ],
    });
    const { lines } = await total();
    expect(lines.filter(line => line.startsWith('over its budget'))).toEqual([
      'over its budget of 60 s: test/lab/slow.test.ts in lab, 61 s',
    ]);
    const times = JSON.parse(readFileSync(join(folder, 'reports/times.json'), 'utf8')) as object;
    expect(times).toMatchObject({ stages: [{ stage: 'lab', seconds: 30, cpuSeconds: 65.8, passed: 1 }] });
  });
});

describe('tests of our own tools', () => {
  test('are listed by files that exist', () => {
    const { tests } = JSON.parse(readFileSync('test/own-tools.json', 'utf8')) as { readonly tests: string[] };
    expect(tests.filter(file => !existsSync(file))).toEqual([]);
  });

  let project: string;
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { cwd: project });
  const mode = () =>
    execFileSync(process.execPath, [resolve('.ci/own-tools.mjs'), folder], {
      cwd: project,
      encoding: 'utf8',
    }).trim();
  beforeEach(() => {
    project = join(folder, 'project');
    for (const path of ['lab', 'test']) mkdirSync(join(project, path), { recursive: true });
    const lists = { tests: ['test/own.test.ts'], dependsOn: ['lab'] };
    writeFileSync(join(project, 'test/own-tools.json'), JSON.stringify(lists));
    writeFileSync(join(project, 'lab/lab.ts'), 'one');
    git('init', '--quiet');
    git('add', '.');
    git('commit', '--quiet', '--message', 'one');
    report({
      'go-backends.check': 'passed\n',
      'lab.suite': 'started\n',
      'lab.json': vitestReport('test/own.test.ts', ['passed', 'passed'], project),
    });
  });

  test('are skipped, and counted so, where they have passed for the same files', async () => {
    expect(mode()).toBe('run');
    await total({ cwd: project });
    expect(mode()).toBe('skip');
    rmSync(join(folder, 'reports/lab.suite'));
    const { lines } = await total({ ownTools: 'skip', cwd: project });
    expect(lines.at(-1)).toBe('1 passed, 0 failed, 3 skipped');
  });

  test('run again after a change, committed or not', async () => {
    await total({ cwd: project });
    writeFileSync(join(project, 'lab/lab.ts'), 'two');
    expect(mode()).toBe('run');
    git('commit', '--quiet', '--all', '--message', 'two');
    expect(mode()).toBe('run');
  });

  test('run again after a failure of any test', async () => {
    report({ 'types.check': 'failed\n' });
    await total({ cwd: project });
    expect(mode()).toBe('run');
  });
});
