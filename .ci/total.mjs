/** Adds up the reports of all stages and prints the closing line; exits with 1 if anything failed. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
const total = { passed: 0, failed: 0, skipped: 0 };

for (const file of readdirSync(folder).sort()) {
  const [, name, kind] = /^(.+)\.(check|suite)$/.exec(file) ?? [];
  if (!name) continue;
  const stage = kind === 'check' ? checkTotals(file) : suiteTotals(join(folder, `${name}.json`));
  for (const key of Object.keys(total)) total[key] += stage[key];
  console.log(`${name}: ${summary(stage)}${stage.note ? ` (${stage.note})` : ''}`);
}

console.log(summary(total));
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;

function checkTotals(file) {
  const hasPassed = readFileSync(join(folder, file), 'utf8').trim() === 'passed';
  return { passed: hasPassed ? 1 : 0, failed: hasPassed ? 0 : 1, skipped: 0 };
}

/** A suite that wrote no report, or whose files could not run, has failed whatever its tests say. */
function suiteTotals(report) {
  if (!existsSync(report)) return { passed: 0, failed: 1, skipped: 0, note: 'no report' };
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, success, testResults } = JSON.parse(
    readFileSync(report, 'utf8'),
  );
  const unrunnable = testResults.filter(
    file => file.status === 'failed' && file.assertionResults.length === 0,
  );
  const failed = numFailedTests + unrunnable.length;
  return {
    passed: numPassedTests,
    failed: failed === 0 && !success ? 1 : failed,
    skipped: numPendingTests + numTodoTests,
  };
}

function summary({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
