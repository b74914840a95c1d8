import { isEqual } from '../api/json.ts';

type ProblemReason =
  /** The text is not YAML. */
  | 'NotYaml'
  /** An object does not pass its schema. */
  | 'Invalid'
  /** Another file defines the same object, or mesh-gateway owns it. */
  | 'Duplicate'
  /** A file or folder cannot be read. */
  | 'Unreadable'
  /** A file is too large, or there are too many. */
  | 'TooMuch'
  /** The folder itself does not exist or cannot be read. */
  | 'FolderMissing'
  /** Some folders cannot be watched, so changes are found by rescans. */
  | 'NotWatched';

/** Something that a user should fix. It contains names and values of files, but no secrets. */
export type Problem = {
  readonly reason: ProblemReason;
  /** Relative to the folder. */
  readonly file: string;
  readonly line?: number;
  readonly message: string;
};

/** Per subject; the last one is the number of the others. */
const MAX_PROBLEMS = 100;

/** The current problems by subject, such as a file; each is reported once. */
export class ProblemList {
  readonly #report: (problem: Problem) => void;
  readonly #found = new Map<string, readonly Problem[]>();

  constructor(report: (problem: Problem) => void) {
    this.#report = report;
  }

  /** Replaces the problems of a subject. */
  replace(subject: string, problems: readonly Problem[]): void {
    const old = this.#found.get(subject) ?? [];
    const found = bounded(problems.map(shown));
    if (found.length > 0) this.#found.set(subject, found);
    else this.#found.delete(subject);
    for (const problem of found.filter(one => !old.some(other => isEqual(other, one)))) {
      this.#report(problem);
    }
  }

  list(): readonly Problem[] {
    return [...this.#found.values()].flat();
  }
}

function bounded(problems: readonly Problem[]): readonly Problem[] {
  const [first] = problems;
  if (problems.length <= MAX_PROBLEMS || !first) return problems;
  const rest = problems.length - MAX_PROBLEMS + 1;
  const { reason, file } = first;
  return [
    ...problems.slice(0, MAX_PROBLEMS - 1),
    { reason, file, message: `${rest} more problems are not listed` },
  ];
}

/** Control characters, which a terminal would interpret. */
const CONTROL = /\p{Cc}/gu;

const MAX_PATH_LENGTH = 512;

function shown(problem: Problem): Problem {
  const { file } = problem;
  const short = file.length <= MAX_PATH_LENGTH ? file : `...${file.slice(-MAX_PATH_LENGTH)}`;
  return { ...problem, file: short.replaceAll(CONTROL, '?') };
}
