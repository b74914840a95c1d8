/** Control characters but line ends, and those that change the direction of text: a terminal or a CI system interprets them. */
const CONTROL = /[^\P{Cc}\n]|\p{Bidi_Control}|[\u2028\u2029]/gu;

/** A text for a terminal. Names and messages are what others wrote: none may move the cursor or hide what is around it. */
export function plainText(text: string): string {
  return text.replaceAll(CONTROL, '?');
}

/** A value as JSON, which a terminal may show: readers decode the same value. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, undefined, 2).replaceAll(
    CONTROL,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
