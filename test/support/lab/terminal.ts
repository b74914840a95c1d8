import type { Output } from '../../../lab/screen.ts';

/** An output that records what is written to it. */
export type RecordedOutput = Output & {
  /** Everything that was written. */
  readonly written: () => string;
  /** The lines that are on the terminal, those that have scrolled out included. */
  readonly lines: () => readonly string[];
};

/** A terminal of 80 columns and 24 rows unless stated otherwise, or a file. It knows the sequences that a Screen uses. */
export function recordedOutput({ isTerminal = true, columns = 80, rows = 24 } = {}): RecordedOutput {
  let written = '';
  return {
    isTerminal,
    columns,
    rows,
    write: text => void (written += text),
    written: () => written,
    lines: () => {
      const shown = [''];
      for (const piece of written.split(/(\u001b\[\d+A\u001b\[J|\n)/)) {
        const up = /\[(\d+)A/.exec(piece)?.[1];
        if (up !== undefined) shown.splice(-1 - Number(up), Infinity, '');
        else if (piece === '\n') shown.push('');
        else
          for (let at = 0; at < piece.length; at += columns) wrap(shown, piece.slice(at, at + columns), at);
      }
      return shown.slice(0, -1);
    },
  };
}

function wrap(shown: string[], row: string, at: number): void {
  if (at === 0) shown.push(`${shown.pop() ?? ''}${row}`);
  else shown.push(row);
}
