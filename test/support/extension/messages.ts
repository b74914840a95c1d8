import fc from 'fast-check';
import { bytesField, concat, varint } from '../../../src/extension/wire.ts';
import { varintField } from './varint-field.ts';

/** The same messages in every run; SEED=2 npm test tries others. */
export const seed = Number(process.env['SEED'] ?? 1);

/** The highest field number. */
const HIGHEST = 2 ** 29 - 1;

function fixed(number: number, wireType: 1 | 5, value: Uint8Array): Uint8Array {
  return concat([Uint8Array.from(varint(number * 8 + wireType)), value]);
}

/** A field of any number and wire type, some of whose values are messages. */
export function anyField(
  numbers: fc.Arbitrary<number> = fc.integer({ min: 1, max: HIGHEST }),
): fc.Arbitrary<Uint8Array> {
  const content = fc.oneof(
    { weight: 3, arbitrary: fc.uint8Array({ maxLength: 40 }) },
    { weight: 1, arbitrary: fc.uint8Array({ minLength: 120, maxLength: 300 }) },
    { weight: 1, arbitrary: fc.string().map(text => Buffer.from(text)) },
  );
  return numbers.chain(number =>
    fc.oneof(
      fc.maxSafeNat().map(value => varintField(number, value)),
      fc.uint8Array({ minLength: 8, maxLength: 8 }).map(value => fixed(number, 1, value)),
      fc.uint8Array({ minLength: 4, maxLength: 4 }).map(value => fixed(number, 5, value)),
      content.map(value => bytesField(number, value)),
      fc
        .array(content, { maxLength: 3 })
        .map(values => bytesField(number, concat(values.map(value => bytesField(1, value))))),
    ),
  );
}

/** A message of any fields. */
export function anyMessage(): fc.Arbitrary<Uint8Array> {
  return fc.array(anyField(), { maxLength: 12 }).map(concat);
}

/** Hostile bytes: a message that is mutated or truncated, or random bytes. */
export function hostileBytes(messages: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array> {
  const damaged = fc
    .tuple(messages, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }), fc.nat(), fc.boolean())
    .map(([message, changes, cut, isCut]) => {
      const bytes = Uint8Array.from(message);
      for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
      return isCut ? bytes.subarray(0, cut % (bytes.length + 1)) : bytes;
    });
  return fc.oneof(damaged, fc.uint8Array({ maxLength: 200 }));
}
