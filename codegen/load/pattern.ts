/**
 * Patterns are evaluated twice: by RE2 in the API server and by JavaScript in the validator. Only what means
 * the same in both is allowed; this returns what is not, or undefined.
 */
export function differsBetweenEngines(pattern: string): string | undefined {
  const problem = tokens(pattern).find(token => token.why !== undefined);
  return problem ? `${JSON.stringify(problem.text)} ${problem.why}` : compileFault(pattern);
}

type Token = { readonly text: string; readonly why?: string | undefined };

const TOKEN = {
  outside: /\\.|\\$|\[\^?\]?|\(\?.?|\{\d+(?:,\d*)?\}|./gsuy,
  inside: /\\.|\\$|\[:|./gsuy,
} as const;

/** Each construct of a pattern in order, with what is wrong with it. */
function tokens(pattern: string): readonly Token[] {
  const found: Token[] = [];
  const repeats = new Repetitions();
  let isInClass = false;
  for (let at = 0; at < pattern.length;) {
    const text = nextToken(pattern, at, isInClass ? TOKEN.inside : TOKEN.outside);
    found.push({ text, why: isInClass ? insideClass(text) : outsideClass(text, repeats) });
    isInClass = isInClass ? text !== ']' : text.startsWith('[');
    at += text.length;
  }
  return found;
}

function nextToken(pattern: string, at: number, form: RegExp): string {
  form.lastIndex = at;
  return form.exec(pattern)?.[0] ?? pattern.slice(at);
}

function insideClass(text: string): string | undefined {
  if (text === '[:') return 'is a POSIX class in RE2 only';
  return text.startsWith('\\') ? escapeFault(text) : undefined;
}

function outsideClass(text: string, repeats: Repetitions): string | undefined {
  const count = repeats.see(text);
  if (text.startsWith('\\')) return escapeFault(text);
  if (text === '[]' || text === '[^]') return 'is a whole class in JavaScript and the start of one in RE2';
  if (text === '.') return 'matches different characters in RE2 and JavaScript: list the characters';
  if (text.startsWith('(?') && text !== '(?:') {
    return 'is not in both RE2 and JavaScript: use (...) or (?:...)';
  }
  return count > MAX_REPETITIONS
    ? 'repeats more often than RE2 can (1000): bound the length with maxLength'
    : undefined;
}

const MAX_REPETITIONS = 1000;

/** Counts how often repetitions inside repeated groups come to repeat. */
class Repetitions {
  /** The highest repetition count in each open group, and that of the group closed last. */
  readonly #open: number[] = [1];
  #last = 1;

  /** Reads the next construct; returns how often it repeats the one before it. */
  see(text: string): number {
    if (text.startsWith('(')) this.#open.push(1);
    else if (text === ')') this.#last = this.#open.length > 1 ? (this.#open.pop() ?? 1) : 1;
    else if (/^\{\d/.test(text)) return this.#repeat(Math.max(...(text.match(/\d+/g) ?? []).map(Number)));
    else this.#last = 1;
    this.#remember(this.#last);
    return 1;
  }

  #repeat(count: number): number {
    const total = this.#last * Math.max(count, 1);
    this.#remember(total);
    return total;
  }

  #remember(count: number): void {
    const top = this.#open.length - 1;
    this.#open[top] = Math.max(this.#open[top] ?? 1, count);
  }
}

const ESCAPES = /^\\(?:[dDtnrfv]|[^A-Za-z0-9])$/;

function escapeFault(text: string): string | undefined {
  return ESCAPES.test(text) ? undefined : 'is not the same escape in RE2 and JavaScript: list the characters';
}

function compileFault(pattern: string): string | undefined {
  try {
    new RegExp(pattern, 'u');
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : 'is not a regular expression';
  }
}
