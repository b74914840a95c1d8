/**
 * The first characters of a text, counted as an API server does, so that none is cut in two. A text that is cut has the
 * ending in place of its last characters.
 */
export function cutText(text: string, maxLength: number, ending = ''): string {
  const characters = Array.from(text);
  if (characters.length <= maxLength) return text;
  return characters.slice(0, maxLength - ending.length).join('') + ending;
}
