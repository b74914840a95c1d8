/** Tells again what failed, adds up the reports of all stages and prints the closing line; exits with 1 if anything failed. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LINES_OF_A_FAILURE = 40;
const folder = process.argv[2];
const total = { passed: 0, failed: 0, skipped: 0 };

for (const file of readdirSync(folder).sort()) {
  const [, name, kind] = /^(.+)\.(check|suite)$/.exec(file) ?? [];
  if (!name) continue;
  const stage = kind === 'check' ? checkTotals(file) : suiteTotals(join(folder, `${name}.json`));
  for (const key of Object.keys(total)) total[key] += stage[key];
  for (const failure of stage.failures ?? []) console.log(`FAILED in ${name}: ${failure}`);
  console.log(`${name}: ${summary(stage)}${stage.note ? ` (${stage.note})` : ''}`);
}

console.log(summary(total));
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;

function checkTotals(file) {
  const hasPassed = readFileSync(join(folder, file), 'utf8').trim() === 'passed';
  return { passed: hasPassed ? 1 : 0, failed: hasPassed ? 0 : 1, skipped: 0 };
}

/** A suite that wrote no report, or one of whose files could not run or be set up, has failed whatever the results of its tests. */
function suiteTotals(report) {
  if (!existsSync(report)) return { passed: 0, failed: 1, skipped: 0, note: 'no report' };
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, success, testResults } = JSON.parse(
    readFileSync(report, 'utf8'),
  );
  const failed = numFailedTests + testResults.filter(hasFailedAsWhole).length;
  return {
    failures: testResults.flatMap(failuresIn),
    passed: numPassedTests,
    failed: failed === 0 && !success ? 1 : failed,
    skipped: numPendingTests + numTodoTests,
  };
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
