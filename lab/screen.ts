/** Where text is written. `columns` and `rows` are read before each drawing, since a terminal can be resized. */
export type Output = {
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly rows: number;
  readonly write: (text: string) => void;
};

/** The least size of a terminal in which sections are redrawn. */
const MIN = { columns: 40, rows: 8 } as const;

/** Whether sections can be redrawn: one of unknown size has 0 rows, and one that is tiny shows nothing whole. */
export function isLargeEnough({
  columns,
  rows,
}: {
  readonly columns: number;
  readonly rows: number;
}): boolean {
  return columns >= MIN.columns && rows >= MIN.rows;
}

/** The standard output of this process. */
export const standardOutput: Output = {
  isTerminal: process.stdout.isTTY && isLargeEnough(process.stdout),
  get columns() {
    return process.stdout.columns;
  },
  get rows() {
    return process.stdout.rows;
  },
  write: text => void process.stdout.write(text),
};

/**
 * Printed text scrolls; below it, on a terminal, named sections are redrawn in place. A file or a pipe gets only what
 * is printed.
 */
export class Screen {
  readonly isTerminal: boolean;
  readonly #output: Output;
  readonly #sections = new Map<string, string>();
  #drawnRows = 0;

  constructor(output: Output) {
    this.#output = output;
    this.isTerminal = output.isTerminal;
  }

  /** Writes text that stays, above all sections. */
  print(text: string): void {
    if (this.isTerminal) this.#redraw(`${text}\n`);
    else this.#output.write(`${text}\n`);
  }

  /** Replaces the text of a section, without effect where there is no terminal. Sections keep the order in which they came. */
  draw(section: string, text: string): void {
    if (!this.isTerminal || this.#sections.get(section) === text) return;
    this.#sections.set(section, text);
    this.#redraw('');
  }

  #redraw(printed: string): void {
    const erase = this.#drawnRows > 0 ? `\u001b[${this.#drawnRows}A\u001b[J` : '';
    const lines = this.#fitting(
      [...this.#sections.values()].filter(Boolean).flatMap(text => text.split('\n')),
    );
    this.#drawnRows = this.#rowsOf(lines);
    this.#output.write(erase + printed + lines.map(line => `${line}\n`).join(''));
  }

  /** The cursor cannot move above the first row of a terminal: of more lines than fit, the first ones are left out. */
  #fitting(lines: readonly string[]): readonly string[] {
    const rows = this.#output.rows - 1;
    if (this.#rowsOf(lines) <= rows) return lines;
    let from = 1;
    while (from < lines.length && this.#rowsOf(lines.slice(from)) >= rows) from++;
    return [`(${from} lines more: make the window larger)`, ...lines.slice(from)];
  }

  /** A line that is wider than the terminal is wrapped by it. */
  #rowsOf(lines: readonly string[]): number {
    return lines.reduce(
      (rows, { length }) => rows + Math.max(1, Math.ceil(length / this.#output.columns)),
      0,
    );
  }
}
