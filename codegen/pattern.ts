/**
 * Patterns are evaluated twice: by RE2 in the API server and by JavaScript in the validator. Only what means
 * the same in both is allowed; this says what is not, or nothing.
 */
export function differsBetweenEngines(pattern: string): string | undefined {
  const problem = tokens(pattern).find(token => token.why !== undefined);
  return problem ? `${JSON.stringify(problem.text)} ${problem.why}` : compileFault(pattern);
}

type Token = { readonly text: string; readonly why?: string | undefined };

/** Each construct of a pattern in order, with what is wrong with it. */
function tokens(pattern: string): readonly Token[] {
  const found: Token[] = [];
  let isInClass = false;
  for (const [text] of pattern.matchAll(/\\.|\[:|\(\?.|\{[^}]*\}|./gsu)) {
    if (!isInClass && text.startsWith('[')) isInClass = true;
    else if (isInClass && text === ']') isInClass = false;
    found.push({ text, why: text === '[:' ? POSIX : isInClass ? insideClass(text) : outsideClass(text) });
  }
  return found;
}

const POSIX = 'is a POSIX class in RE2 only';
const ESCAPES = /^\\(?:[dDtnrfv]|[^A-Za-z0-9])$/;

function insideClass(text: string): string | undefined {
  return text.startsWith('\\') ? escapeFault(text) : undefined;
}

function outsideClass(text: string): string | undefined {
  if (text.startsWith('\\')) return escapeFault(text);
  if (text === '.') return 'matches different characters in RE2 and JavaScript: list the characters';
  if (text.startsWith('(?') && text !== '(?:')
    return 'is not in both RE2 and JavaScript: use (...) or (?:...)';
  const isTooOften = text.startsWith('{') && text.match(/\d+/g)?.some(count => Number(count) > 1000);
  return isTooOften ? 'repeats more often than RE2 can (1000): bound the length with maxLength' : undefined;
}

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
