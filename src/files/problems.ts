import { isEqual } from '../api/json.ts';
import { formatProblem } from '../api/problem.ts';
import type { Problem } from '../api/problem.ts';
import type { Log } from '../telemetry/log.ts';

/** Something that a user should fix. It contains names and values of files, but no secrets. */
export type FileProblem = Problem & {
  /** Relative to the folder. */
  readonly file: string;
  readonly line?: number;
};

/** Logs each problem. */
export function logTo(log: Pick<Log, 'warn'>): (problem: FileProblem) => void {
  return problem => {
    const { reason, file, line } = problem;
    const place = line === undefined ? { file } : { file, line };
    log.warn('problem in a resource file', { reason, ...place, why: formatProblem(problem) });
  };
}

/** Per subject; the last one is the number of the others. */
const MAX_PROBLEMS = 100;

/** The current problems by subject, such as a file; each is reported once. */
export class ProblemList {
  readonly #report: (problem: FileProblem) => void;
  readonly #found = new Map<string, readonly FileProblem[]>();

  constructor(report: (problem: FileProblem) => void) {
    this.#report = report;
  }

  /** Replaces the problems of a subject. */
  replace(subject: string, problems: readonly FileProblem[]): void {
    const old = this.#found.get(subject) ?? [];
    const found = bounded(problems.map(shown));
    if (found.length > 0) this.#found.set(subject, found);
    else this.#found.delete(subject);
    for (const problem of found.filter(one => !old.some(other => isEqual(other, one)))) {
      this.#report(problem);
    }
  }

  list(): readonly FileProblem[] {
    return [...this.#found.values()].flat();
  }
}

function bounded(problems: readonly FileProblem[]): readonly FileProblem[] {
  const [first] = problems;
  if (problems.length <= MAX_PROBLEMS || !first) return problems;
  const rest = problems.length - MAX_PROBLEMS + 1;
  const { reason, file } = first;
  return [
    ...problems.slice(0, MAX_PROBLEMS - 1),
    { reason, file, text: `${rest} more problems are not listed` },
  ];
}

/** Control characters, which a terminal would interpret. */
const CONTROL = /\p{Cc}/gu;

const MAX_PATH_LENGTH = 512;

function shown(problem: FileProblem): FileProblem {
  const { file } = problem;
  const short = file.length <= MAX_PATH_LENGTH ? file : `...${file.slice(-MAX_PATH_LENGTH)}`;
  return { ...problem, file: short.replaceAll(CONTROL, '?') };
}
