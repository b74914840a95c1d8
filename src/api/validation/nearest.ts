/** The choice that a misspelled word probably means, or undefined if none is similar. */
export function nearest(word: string, choices: readonly string[]): string | undefined {
  const ranked = choices
    .map(choice => ({ choice, edits: editsBetween(word.toLowerCase(), choice.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits);
  const [best] = ranked;
  return best && best.edits <= Math.max(1, Math.floor(best.choice.length / 3)) ? best.choice : undefined;
}

const MAX_WORD_LENGTH = 64;

/** The Levenshtein distance, where two letters in the wrong order are one edit; long words are never similar. */
function editsBetween(from: string, to: string): number {
  if (from.length > MAX_WORD_LENGTH || to.length > MAX_WORD_LENGTH) return Infinity;
  let before: readonly number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      const swapped = isSwapped ? (before[j - 2] ?? 0) + 1 : Infinity;
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    [before, row] = [row, next];
  }
  return row[to.length] ?? 0;
}
