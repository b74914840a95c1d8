/** Halves of characters, which JSON can have and UTF-8 cannot. */
const HALVES = /\p{Surrogate}/gu;

/**
 * The first characters of a text, counted as an API server does, so that none is cut in two; half a character is U+FFFD, as it
 * is stored. A text that is cut has the ending in place of its last characters.
 */
export function cutText(text: string, maxLength: number, ending = ''): string {
  const whole = text.replace(HALVES, '\u{FFFD}');
  const characters = Array.from(whole);
  if (characters.length <= maxLength) return whole;
  return characters.slice(0, maxLength - ending.length).join('') + ending;
}

/** The name of a kind with its article, such as an HTTPRoute. */
export function withArticle(kind: string): string {
  return `${/^(HTTP|[AEIO])/.test(kind) ? 'an' : 'a'} ${kind}`;
}
