import { formatProblem, formatWithReason } from '../../api/problem.ts';
import type { Problem } from '../../api/problem.ts';

type PlannedStep = 'gateway' | 'listener' | 'rule' | 'backend' | 'endpoint' | 'mesh pod' | 'device';

/** A step of a request on its way: the request gets further, does not, or that is not known from these objects. */
export type Step = {
  readonly name: PlannedStep | 'answer' | 'envoy';
  /** For people, without the fix. */
  readonly text: string;
} & (
  | { readonly is: 'ok' | 'unknown'; readonly problem?: Problem }
  | { readonly is: 'broken'; readonly problem: Problem }
);

/** A step that is broken by a problem. */
export function brokenBy(name: Step['name'], problem: Problem, text = textWithoutFix(problem)): Step {
  return { is: 'broken', name, text, problem };
}

function textWithoutFix({ fix: _fix, ...problem }: Problem): string {
  return formatProblem(problem);
}

/** A problem for users after its reason, without its fix, which the step has beside it. */
export function textWithReason({ fix: _fix, ...problem }: Problem): string {
  return formatWithReason(problem);
}
