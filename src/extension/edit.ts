import { bytesField, bytesOf, Fields, GrowingBytes, isMessage } from './wire.ts';

/** Fields that come into a message, and which values of the same number go for them. */
export type Edit = {
  readonly number: number;
  readonly replaces: (value: Uint8Array) => boolean;
  readonly fields: readonly Uint8Array[];
};

/**
 * A message after edits, of which no two have the same number. New fields stand where the first of those stood that they
 * replace, else before others of their number, else at the end. All other bytes stay; a broken message stays whole.
 */
export function edited(message: Uint8Array, edits: readonly Edit[]): Uint8Array {
  if (!isMessage(message)) return message;
  const places = edits.map(edit => placeOf(message, edit));
  const added = edits.flatMap(({ fields }) => fields).reduce((sum, { length }) => sum + length, 0);
  const whole = new GrowingBytes(message.length + added);
  const fields = new Fields(message);
  let kept = 0;
  while (fields.next()) {
    const at = edits.findIndex(({ number }) => number === fields.number);
    const edit = edits[at];
    if (!edit) continue;
    whole.add(message, kept, fields.start);
    if (places[at] === fields.start) for (const field of edit.fields) whole.add(field);
    kept = edit.replaces(message.subarray(fields.valueStart, fields.end)) ? fields.end : fields.start;
  }
  whole.add(message, kept);
  for (const [at, edit] of edits.entries()) {
    if (places[at] === undefined) for (const field of edit.fields) whole.add(field);
  }
  return whole.whole();
}

function placeOf(message: Uint8Array, { number, replaces }: Edit): number | undefined {
  const fields = new Fields(message);
  let first: number | undefined;
  while (fields.next()) {
    if (fields.number !== number) continue;
    if (replaces(message.subarray(fields.valueStart, fields.end))) return fields.start;
    first ??= fields.start;
  }
  return first;
}

/** A message in which a field has one value. */
export function withField(message: Uint8Array, number: number, value: Uint8Array): Uint8Array {
  return edited(message, [{ number, replaces: () => true, fields: [bytesField(number, value)] }]);
}

/** A message in which the last value of a field is changed; one that lacks the field stays as it is. */
export function within(
  message: Uint8Array,
  number: number,
  change: (value: Uint8Array) => Uint8Array,
): Uint8Array {
  const value = bytesOf(message, number);
  return value ? withField(message, number, change(value)) : message;
}
