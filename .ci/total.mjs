/**
 * Repeats what failed, prints the seconds of each stage and the slowest files, adds up the reports of all stages and prints
 * the closing line; exits with 1 if anything failed. `total.mjs REPORTS CACHE STARTED`
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { isOfOwnTools, recordIn } from './own-tools.mjs';

const LINES_OF_A_FAILURE = 40;
const SLOWEST = 25;
/** The most seconds that a file should take, by the first word of its suite. */
const BUDGET = { fast: 10, api: 60, lab: 60, cluster: 90 };

const [folder, cache, started] = process.argv.slice(2);
const total = { passed: 0, failed: 0, skipped: 0 };
const stages = [];
const files = [];
/** How many tests of our own tools passed. */
let ofOwnTools = 0;

for (const name of readdirSync(folder).sort()) {
  const [, stage, kind] = /^(.+)\.(check|suite)$/.exec(name) ?? [];
  if (stage) addStage(stage, kind);
}
if (existsSync(join(folder, 'install.times'))) stages.push({ stage: 'install', ...timesOf('install') });
addOwnTools();
printTimes();
console.log(summary(total));
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;

function addStage(stage, kind) {
  const results = kind === 'check' ? checkTotals(stage) : suiteTotals(stage);
  for (const key of Object.keys(total)) total[key] += results[key];
  for (const failure of results.failures ?? []) console.log(`FAILED in ${stage}: ${failure}`);
  console.log(`${stage}: ${summary(results)}${results.note ? ` (${results.note})` : ''}`);
  const { passed, failed, skipped } = results;
  stages.push({ stage, ...timesOf(stage), passed, failed, skipped });
}

function checkTotals(stage) {
  const hasPassed = readFileSync(join(folder, `${stage}.check`), 'utf8').trim() === 'passed';
  if (hasPassed && stage.startsWith('go-')) ofOwnTools += 1;
  return { passed: hasPassed ? 1 : 0, failed: hasPassed ? 0 : 1, skipped: 0 };
}

/** A suite that wrote no report, or one of whose files could not run or be set up, has failed whatever the results of its tests. */
function suiteTotals(stage) {
  const report = join(folder, `${stage}.json`);
  if (!existsSync(report)) return { passed: 0, failed: 1, skipped: 0, note: 'no report' };
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, success, testResults } = JSON.parse(
    readFileSync(report, 'utf8'),
  );
  addFiles(stage);
  for (const { name, assertionResults } of testResults)
    if (isOfOwnTools(relative('', name)))
      ofOwnTools += assertionResults.filter(({ status }) => status === 'passed').length;
  const failed = numFailedTests + testResults.filter(hasFailedAsWhole).length;
  return {
    failures: testResults.flatMap(failuresIn),
    passed: numPassedTests,
    failed: failed === 0 && !success ? 1 : failed,
    skipped: numPendingTests + numTodoTests,
  };
}

function addFiles(stage) {
  const list = join(folder, `${stage}.seconds`);
  if (!existsSync(list)) return;
  const budget = BUDGET[stage.split('-')[0]];
  for (const { file, seconds } of JSON.parse(readFileSync(list, 'utf8')))
    files.push({ stage, file, seconds: rounded(seconds), budget });
}

/** Records that the tests of our own tools have passed, or counts them as skipped where they had. */
function addOwnTools() {
  const record = recordIn(cache);
  if (process.env['OWN_TOOLS'] === 'skip') {
    const { passed, commit } = JSON.parse(readFileSync(record, 'utf8'));
    total.skipped += passed;
    console.log(`tests of our own tools: ${passed} skipped, verified at ${commit} and unchanged since`);
  } else if (record !== undefined && total.failed === 0) {
    const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
    mkdirSync(dirname(record), { recursive: true });
    writeFileSync(record, JSON.stringify({ passed: ofOwnTools, commit }));
  }
}

/** The seconds of a stage, when it began, and the processor seconds of the processes that it waited for. */
function timesOf(stage) {
  const file = join(folder, `${stage}.times`);
  if (!existsSync(file)) return {};
  const [range, , ofChildren = ''] = readFileSync(file, 'utf8').trim().split('\n');
  const [begun, ended] = range.split(' ').map(Number);
  const cpu = [...ofChildren.matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, rest]) => minutes * 60 + Number(rest),
  );
  return {
    from: rounded(begun - started),
    seconds: rounded(ended - begun),
    cpuSeconds: rounded(cpu.reduce((sum, one) => sum + one, 0)),
  };
}

function printTimes() {
  stages.sort((a, b) => a.from - b.from);
  files.sort((a, b) => b.seconds - a.seconds);
  const seconds = rounded(Date.now() / 1000 - started);
  const cell = value => String(value ?? '').padStart(9);
  console.log(
    `\n${'stage'.padEnd(20)}${['from', 'seconds', 'CPU s', 'passed', 'failed'].map(cell).join('')}`,
  );
  for (const { stage, from, seconds: took, cpuSeconds, passed, failed } of stages)
    console.log(`${stage.padEnd(20)}${[from, took, cpuSeconds, passed, failed].map(cell).join('')}`);
  console.log(`${'all'.padEnd(20)}${cell(0)}${cell(seconds)}`);
  console.log(`\nThe ${SLOWEST} slowest files:`);
  for (const { file, seconds: took } of files.slice(0, SLOWEST)) console.log(`${cell(took)} s  ${file}`);
  const over = files.filter(file => file.seconds > file.budget);
  for (const { file, stage, seconds: took, budget } of over)
    console.log(`over its budget of ${budget} s: ${file} in ${stage}, ${took} s`);
  const report = JSON.stringify({ seconds, stages, files }, null, 1);
  writeFileSync(join(folder, 'times.json'), report);
  console.log(`\nThese times are in ${join(folder, 'times.json')}.\n`);
}

function rounded(seconds) {
  return Math.round(seconds * 10) / 10;
}

function hasFailedAsWhole(file) {
  return hasFailed(file) && !file.assertionResults.some(hasFailed);
}

function hasFailed({ status }) {
  return status === 'failed';
}

/** What failed in a file, with enough of the reason to begin with: a long run's own words may be cut off by who reads it. */
function failuresIn(file) {
  const { name, message, assertionResults } = file;
  if (hasFailedAsWhole(file)) return [`${name}\n${indented(message)}`];
  return assertionResults
    .filter(hasFailed)
    .map(test => `${name}: ${test.fullName}\n${indented(test.failureMessages.join('\n'))}`);
}

function indented(text) {
  const lines = text.split('\n').slice(0, LINES_OF_A_FAILURE);
  return lines.map(line => `    ${line.slice(0, 300)}`).join('\n');
}

function summary({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
