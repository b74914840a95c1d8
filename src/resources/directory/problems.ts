import { isEqual } from '../../api/json.ts';

/** What sort of problem it is. */
type ProblemReason =
  /** The text is not YAML. */
  | 'NotYaml'
  /** An object does not pass its schema. */
  | 'Invalid'
  /** Another file defines the same object, or the object is ours alone. */
  | 'Duplicate'
  /** A file or folder cannot be read. */
  | 'Unreadable'
  /** A file is too large, or there are too many. */
  | 'TooMuch'
  /** The folder itself does not exist or cannot be read. */
  | 'FolderMissing'
  /** Some folders cannot be watched, so that changes are only found by reading everything from time to time. */
  | 'NotWatched';

/** Something that a user should mend. No text of it repeats more of a file than names and values that are no secrets. */
export type Problem = {
  readonly reason: ProblemReason;
  /** As users know it: below the folder. */
  readonly file: string;
  readonly line?: number;
  readonly message: string;
};

/** More are not reported of one subject; the last says how many more there are. */
const MOST_OF_ONE = 100;

/** The problems that exist now, by what they are about; each is reported when it is new. */
export class ProblemList {
  readonly #report: (problem: Problem) => void;
  readonly #reportFailure: (failure: unknown) => void;
  readonly #found = new Map<string, readonly Problem[]>();

  /** What `report` throws is handed to `reportFailure`. */
  constructor(report: (problem: Problem) => void, reportFailure: (failure: unknown) => void) {
    this.#report = report;
    this.#reportFailure = reportFailure;
  }

  /** Sets which problems a subject has from now on. */
  replace(subject: string, problems: readonly Problem[]): void {
    const old = this.#found.get(subject) ?? [];
    const found = bounded(problems.map(shown));
    if (found.length > 0) this.#found.set(subject, found);
    else this.#found.delete(subject);
    for (const problem of found.filter(one => !old.some(other => isEqual(other, one)))) {
      try {
        this.#report(problem);
      } catch (failure) {
        this.#reportFailure(failure);
      }
    }
  }

  list(): readonly Problem[] {
    return [...this.#found.values()].flat();
  }
}

function bounded(problems: readonly Problem[]): readonly Problem[] {
  const [first] = problems;
  if (problems.length <= MOST_OF_ONE || !first) return problems;
  const rest = problems.length - MOST_OF_ONE + 1;
  const { reason, file } = first;
  return [
    ...problems.slice(0, MOST_OF_ONE - 1),
    { reason, file, message: `${rest} more problems are not listed` },
  ];
}

/** What a terminal or a log could take for a command. */
const CONTROL = /\p{Cc}/gu;

const LONGEST_FILE = 512;

function shown(problem: Problem): Problem {
  const { file } = problem;
  const short = file.length <= LONGEST_FILE ? file : `...${file.slice(-LONGEST_FILE)}`;
  return { ...problem, file: short.replaceAll(CONTROL, '?') };
}
