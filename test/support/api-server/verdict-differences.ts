import { isDeepStrictEqual } from 'node:util';
import type { Fault } from '../../../src/api/validation/fault.ts';
import { formatFault, valueAt } from '../../../src/api/validation/fault.ts';
import type { Verdict } from '../../../src/api/validation/validate.ts';
import type { KubeCause } from '../../../lab/kube/error.ts';
import type { Judgement } from './api-server-verdict.ts';

type Fields = Readonly<Record<string, unknown>>;

/** How our verdict on an object differs from the API server's; undefined if they agree. */
export function disagreement(object: Fields, ours: Verdict<unknown>, theirs: Judgement): string | undefined {
  return verdictDisagreement(ours, theirs) ?? pathDisagreement(object, ours, theirs);
}

/** The same without the paths of faults: of several faults the server reports only some. */
export function verdictDisagreement(ours: Verdict<unknown>, theirs: Judgement): string | undefined {
  if (ours.valid && theirs.valid) return storedDifference(ours.object as Fields, theirs.object);
  return ours.valid === theirs.valid ? undefined : `only one accepts it${showBoth(ours, theirs)}`;
}

function pathDisagreement(object: Fields, ours: Verdict<unknown>, theirs: Judgement): string | undefined {
  if (ours.valid || theirs.valid) return undefined;
  const paths = new Set(ours.faults.map(fault => pathAsTheServerReports(fault, object)));
  if (isDeepStrictEqual(paths, new Set(pathsOf(theirs.causes)))) return undefined;
  return `the paths at fault differ${showBoth(ours, theirs)}`;
}

function showBoth(ours: Verdict<unknown>, theirs: Judgement): string {
  return `\n    ours:   ${showVerdict(ours)}\n    server: ${showJudgement(theirs)}`;
}

function showVerdict(ours: Verdict<unknown>): string {
  return ours.valid ? 'accepted' : ours.faults.map(formatFault).join('\n            ');
}

function showJudgement(theirs: Judgement): string {
  if (theirs.valid) return 'accepted';
  const causes = theirs.causes.map(({ reason, field, message }) => `${field}: ${reason}: ${message}`);
  return causes.length === 0 ? theirs.message : causes.join('\n            ');
}

/** The paths that the server reports, sorted: several causes may be about one path. */
function pathsOf(causes: readonly KubeCause[]): readonly string[] {
  return causes.filter(cause => !isAboutSkippedRules(cause)).map(pathOfCause);
}

/** After a wrong type, a missing field or an extra one the server evaluates no rules, which it reports as a cause. */
function isAboutSkippedRules({ field, message }: KubeCause): boolean {
  return field === '<nil>' && message.includes('some validation rules were not checked');
}

/** The server reports a number outside of its format for the whole object, or its status; the message has the path. */
function pathOfCause({ field, message }: KubeCause): string {
  const found = /Checked value must be of type integer with format int(?:32|64) in (.+)$/.exec(message)?.[1];
  if (found === undefined) return field;
  return field === 'status' ? `status.${found}` : found;
}

/** The server never quotes keys of maps, and does not name the key of a label with an invalid value. */
function pathAsTheServerReports({ steps }: Fault, object: Fields): string {
  if (steps[0] === 'metadata' && steps[1] === 'labels') return 'metadata.labels';
  return steps
    .map((step, at) => {
      if (Array.isArray(valueAt(object, steps.slice(0, at)))) return `[${step}]`;
      return at === 0 ? step : `.${step}`;
    })
    .join('');
}

/** The server fills in much of metadata; what users write must be equal. */
function storedDifference(ours: Fields, theirs: Fields): string | undefined {
  const differences = differencesIn(withoutServersOwn(ours), withoutServersOwn(theirs), '');
  return differences.length === 0 ? undefined : `it is stored otherwise\n    ${differences.join('\n    ')}`;
}

function withoutServersOwn({ metadata, ...rest }: Fields): Fields {
  const { name, labels, annotations } = metadata as Fields;
  return { ...rest, metadata: { name, labels: filled(labels), annotations: filled(annotations) } };
}

/** The server leaves out labels and annotations that are empty. */
function filled(value: unknown): unknown {
  return isBranch(value) && Object.keys(value).length === 0 ? undefined : value;
}

function differencesIn(ours: unknown, theirs: unknown, path: string): readonly string[] {
  if (isDeepStrictEqual(ours, theirs)) return [];
  if (!isBranch(ours) || !isBranch(theirs) || Array.isArray(ours) !== Array.isArray(theirs)) {
    return [`${path}: ours ${JSON.stringify(ours)}, server ${JSON.stringify(theirs)}`];
  }
  const keys = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  return [...keys].flatMap(key =>
    differencesIn(ours[key], theirs[key], path === '' ? key : `${path}.${key}`),
  );
}

function isBranch(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}
