import type { ConditionUpdate } from './conditions.ts';
import { PLACES, REASONS } from './reasons.ts';
import type { Place, Reason, ReasonAt, Severity } from './reasons.ts';
import type { Declaration } from './reasons/declare.ts';
import { cutText } from './text.ts';

/** The steps from an object to a field of it: names, and indexes of lists. */
export type Steps = readonly (string | number)[];

/** An object that a problem is about; without a name all of its kind. */
export type Subject = { readonly kind: string; readonly namespace?: string; readonly name?: string };

/** Where a problem is. */
type ProblemPlace = {
  /** Absent for what is about no object. */
  readonly about?: Subject;
  /** The field. */
  readonly at?: Steps;
  /** The name of the endpoint that it is about, if it is about one of the field's object. */
  readonly endpoint?: string;
};

/** What is wrong, where, and how to correct it. Machines read all but the texts, which are for users. */
export type Problem<R extends Reason = Reason> = ProblemPlace & {
  readonly reason: R;
  /** Only where it is another than that of the reason. */
  readonly mattersAs?: Severity;
  /** What is wrong. */
  readonly text: string;
  /** What to do. */
  readonly fix?: string;
  /** To apply or copy, such as YAML. */
  readonly example?: string;
};

/** What is wrong and what to do, for a problem to have. */
export type Why = Pick<Problem, 'text' | 'fix' | 'example'>;

/** The same, after the words that it explains. */
export function within(words: string, { text, ...rest }: Why): Why {
  return { ...rest, text: text === '' ? words : `${words}: ${text}` };
}

/** The text of a path: spec.endpoints[2].metadata["a.b"]. */
export function pathOf(steps: Steps): string {
  const texts = steps.map((step, index) => {
    if (typeof step === 'number') return `[${step}]`;
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(step)) return `[${JSON.stringify(step.slice(0, MAX_KEY_LENGTH))}]`;
    return index === 0 ? step : `.${step}`;
  });
  return texts.join('');
}

const MAX_KEY_LENGTH = 64;

/** A problem for users: the field, what is wrong, and the fix. */
export function formatProblem({ at = [], text, fix }: Omit<Problem, 'reason'>): string {
  return [pathOf(at), text, fix ?? ''].filter(part => part !== '').join(': ');
}

/** A problem for users, after its reason. */
export function formatWithReason(problem: Problem): string {
  return `${problem.reason}: ${formatProblem(problem)}`;
}

/** A problem for users, and below it what to apply. */
export function formatWithExample(problem: Omit<Problem, 'reason'>): string {
  const { example } = problem;
  return `${formatProblem(problem)}${example === undefined ? '' : `\n\n${example}`}`;
}

/** The object of a problem for users, such as MeshEndpoints default/web. */
export function titleOfSubject({ kind, namespace = '', name = '' }: Subject): string {
  return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
}

/** How much a problem matters. */
export function severityOf({ reason, mattersAs }: Pick<Problem, 'reason' | 'mattersAs'>): Severity {
  return mattersAs ?? REASONS[reason].severity;
}

/** Whether two are one problem, whatever their texts are. */
export function isSameProblem(one: Problem, other: Problem): boolean {
  return identityOf(one) === identityOf(other);
}

/** The problems without repetitions, in their order. */
export function distinct<P extends Problem>(problems: readonly P[]): readonly P[] {
  const seen = new Set<string>();
  return problems.filter(problem => {
    const { size } = seen;
    return seen.add(identityOf(problem)).size > size;
  });
}

function identityOf({ reason, about = { kind: '' }, at, endpoint }: Problem): string {
  const { kind, namespace, name } = about;
  return JSON.stringify([reason, kind, namespace, name, at, endpoint]);
}

const ORDER: readonly Severity[] = ['error', 'unknown', 'warning', 'note'];

/** The problems that matter most first; those that matter as much in their order. */
export function inOrder<P extends Problem>(problems: readonly P[]): readonly P[] {
  const rank = (problem: Problem) => ORDER.indexOf(severityOf(problem));
  return [...problems].sort((one, other) => rank(one) - rank(other));
}

/** A problem that a place can have. */
export type ProblemAt<P extends Place> = Problem<ReasonAt<P>>;

/**
 * The condition of a kind, such as `MeshTailnet Ready`, that is True without problems. With some it has the reason and the texts
 * of the one that matters most there: False for an error, Unknown where it is not known; warnings and notes leave it True.
 */
export function conditionOf<P extends Place>(
  place: P,
  problems: readonly (ProblemAt<P> | undefined)[],
  ifNone: { readonly reason: ReasonAt<P>; readonly message: string },
): ConditionUpdate {
  const declared: Readonly<Record<string, Declaration>> = PLACES[place];
  const [, type = ''] = place.split(' ');
  const present = problems.flatMap(each =>
    each
      ? [{ ...each, mattersAs: each.mattersAs ?? declared[each.reason]?.severity ?? 'error' } as const]
      : [],
  );
  const [first] = inOrder(present);
  const status = first && STATUSES[first.mattersAs];
  const shown = first && status ? { reason: first.reason, message: formatProblem(first) } : ifNone;
  return { type, status: status ?? 'True', ...shown, message: cutText(shown.message, MAX_MESSAGE_LENGTH) };
}

const MAX_MESSAGE_LENGTH = 2000;

const STATUSES = { error: 'False', unknown: 'Unknown', warning: undefined, note: undefined } as const;
