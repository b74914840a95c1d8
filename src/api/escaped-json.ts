/** JSON in which characters that a pattern finds, one by one, stand as their numbers; it is the same value. */
export function escapedJson(value: unknown, characters: RegExp, indent = 0): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, undefined, indent).replace(characters, escaped);
}
