import { formatWithExample, severityOf } from '../../../src/api/problem.ts';
import { check } from '../../../src/tools/check/check.ts';
import type { CheckResult } from '../../../src/tools/check/check.ts';
import { readObjects } from '../../../src/tools/check/objects.ts';
import type { Finding } from '../../../src/tools/check/objects.ts';

/** What `mesh-gateway check` finds in a file. */
export function checkText(text: string): CheckResult {
  return check(readObjects([{ name: 'objects.yaml', text }]));
}

/** A finding with its severity, reason and message. */
export function findingText(finding: Finding): string {
  return `${severityOf(finding)} ${finding.reason}: ${formatWithExample(finding)}`;
}
