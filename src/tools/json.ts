import { pathOf, severityOf } from '../api/problem.ts';
import type { Problem } from '../api/problem.ts';
import type { Finding } from './check/objects.ts';
import { jsonText } from './plain-text.ts';

/** The version of docs/output.schema.json, which describes what tools print with --output json. */
const VERSION = 'v1';

/** What a tool prints with --output json. */
export function outputJson(output: Readonly<Record<string, unknown>>): string {
  return jsonText({ version: VERSION, ...output });
}

/** A problem as JSON: machines read its reason and place, users its text and fix. */
export function problemJson(problem: Problem | Finding) {
  const { reason, about, at, endpoint, text, fix, example } = problem;
  return {
    severity: severityOf(problem),
    reason,
    ...(about && { about }),
    ...(at && at.length > 0 && { at: pathOf(at) }),
    ...(endpoint !== undefined && { endpoint }),
    text,
    ...(fix !== undefined && { fix }),
    ...(example !== undefined && { example }),
    ...('file' in problem && placeOf(problem)),
  };
}

function placeOf(finding: Finding) {
  return finding.file === undefined ? {} : { file: finding.file, line: finding.line, column: finding.column };
}
