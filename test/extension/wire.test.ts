import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyEdits,
  setField,
  updateField,
  bytesField,
  bytesOf,
  Fields,
  isMessage,
  concat,
  messageOf,
  textOf,
  valuesOf,
  varint,
} from '../../src/extension/wire.ts';
import { varintField } from '../support/extension/varint-field.ts';
import { anyField, anyMessage, hostileBytes, seed } from '../support/extension/messages.ts';

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'));

function fieldsOf(bytes: Uint8Array): readonly (readonly number[])[] {
  const fields = new Fields(bytes);
  const found: number[][] = [];
  while (fields.next())
    found.push([fields.number, fields.wireType, fields.start, fields.tagEnd, fields.valueStart, fields.end]);
  return found;
}

describe('the fields of a message', () => {
  it.each([
    ['an empty message', '', []],
    ['a varint', '08 96 01', [[1, 0, 0, 1, 1, 3]]],
    ['bytes', '12 03 01 02 03', [[2, 2, 0, 1, 2, 5]]],
    ['eight bytes', '19 01 02 03 04 05 06 07 08', [[3, 1, 0, 1, 1, 9]]],
    ['four bytes', '25 01 02 03 04', [[4, 5, 0, 1, 1, 5]]],
    ['a field number of two bytes', 'a2 02 01 ff', [[36, 2, 0, 2, 3, 4]]],
    ['the highest field number', 'fa ff ff ff 0f 00', [[2 ** 29 - 1, 2, 0, 5, 6, 6]]],
    ['an overlong tag', '8a 00 01 07', [[1, 2, 0, 2, 3, 4]]],
    ['a varint of ten bytes', '08 ff ff ff ff ff ff ff ff ff 01', [[1, 0, 0, 1, 1, 11]]],
    [
      'several',
      '08 01 0a 00 08 02',
      [
        [1, 0, 0, 1, 1, 2],
        [1, 2, 2, 3, 4, 4],
        [1, 0, 4, 5, 5, 6],
      ],
    ],
  ])('are found: %s', (_, bytes, expected) => {
    expect(fieldsOf(hex(bytes))).toEqual(expected);
    expect(isMessage(hex(bytes))).toBe(true);
  });

  it.each([
    ['an unterminated tag', '80'],
    ['an unterminated varint', '08 ff'],
    ['a varint of eleven bytes', '08 ff ff ff ff ff ff ff ff ff ff 01'],
    ['no value', '08'],
    ['no length', '0a'],
    ['a length beyond the end', '0a 02 01'],
    ['a length beyond any message', '0a ff ff ff ff 0f 01'],
    ['a length of more than 32 bits', '0a 80 80 80 80 80 01 01'],
    ['a length of 32 bits and one', '0a ff ff ff ff 1f 01'],
    ['a truncated fixed64', '09 01 02'],
    ['a truncated fixed32', '0d 01 02'],
    ['field number zero', '02 01 01'],
    ['the beginning of a group', '0b 0c'],
    ['the end of a group', '0c'],
    ['an unknown wire type', '0e 01'],
    ['a field number beyond the highest', 'fa ff ff ff 1f 00'],
    ['a valid field before an invalid one', '08 01 0a 05 01'],
  ])('are not found in malformed bytes: %s', (_, bytes) => {
    expect(isMessage(hex(bytes))).toBe(false);
    expect(valuesOf(hex(bytes), 1, 9)).toEqual([]);
    expect(applyEdits(hex(bytes), [{ number: 1, replaces: () => true, fields: [hex('0a 00')] }])).toEqual(
      hex(bytes),
    );
  });

  it('are those of a range', () => {
    const fields = new Fields(hex('ff 08 01 ff'), 1, 3);
    expect([fields.next(), fields.number, fields.end, fields.next(), fields.isMalformed]).toEqual([
      true,
      1,
      3,
      false,
      false,
    ]);
  });

  it('are contiguous in any message', () => {
    fc.assert(
      fc.property(fc.array(anyField(), { maxLength: 12 }), fields => {
        const ends = fieldsOf(concat(fields)).map(([, , start = 0, , , end = 0]) => end - start);
        expect(ends).toEqual(fields.map(({ length }) => length));
      }),
      { seed },
    );
  });

  it('are read from any bytes without an error', () => {
    fc.assert(
      fc.property(hostileBytes(anyMessage()), bytes => {
        for (const [, , start = 0, , valueStart = 0, end = 0] of fieldsOf(bytes)) {
          expect(start).toBeLessThan(valueStart);
          expect(valueStart).toBeLessThanOrEqual(end);
          expect(end).toBeLessThanOrEqual(bytes.length);
        }
      }),
      { seed, numRuns: 2000 },
    );
  });
});

describe('a varint', () => {
  it.each([
    [0, '00'],
    [127, '7f'],
    [128, '80 01'],
    [300, 'ac 02'],
    [2 ** 32 - 1, 'ff ff ff ff 0f'],
    [2 ** 53 - 1, 'ff ff ff ff ff ff ff 0f'],
  ])('%d is encoded as protobuf does', (value, bytes) => {
    expect(Uint8Array.from(varint(value))).toEqual(hex(bytes));
  });
});

describe('a value', () => {
  it('is the last of several', () => {
    expect(bytesOf(hex('0a 01 01 0a 01 02'), 1)).toEqual(hex('02'));
    expect(textOf(hex('0a 01 61'), 1)).toBe('a');
  });

  it('is the last one that satisfies the predicate', () => {
    const message = hex('0a 01 01 0a 01 02 0a 01 03');
    expect(bytesOf(message, 1, ([byte = 0]) => byte < 3)).toEqual(hex('02'));
    expect(bytesOf(message, 1, () => false)).toBeUndefined();
  });

  it('is one of at most the wanted number', () => {
    const message = hex('0a 01 01 12 00 0a 01 02 0a 01 03');
    expect(valuesOf(message, 1, 2)).toEqual([hex('01'), hex('02')]);
    expect(valuesOf(message, 1, 9)).toEqual([hex('01'), hex('02'), hex('03')]);
  });

  it.each([
    ['nothing', '12 00', undefined],
    ['one piece', '0a 01 01', '01'],
    ['pieces with others between them', '12 01 07 0a 01 01 12 01 08 0a 00 0a 02 02 03 08 01', '01 02 03'],
    ['empty pieces', '0a 00 0a 00', ''],
    ['a piece, and then what is broken', '0a 01 01 0a', undefined],
    ['pieces, and then what is broken', '0a 01 01 0a 01 02 0a', undefined],
  ])('of a message is merged: %s', (_, bytes, expected) => {
    expect(messageOf(hex(bytes), 1)).toEqual(expected === undefined ? undefined : hex(expected));
  });

  it('is undefined for a missing field or another wire type', () => {
    expect(bytesOf(hex('08 01'), 1)).toBeUndefined();
    expect(textOf(hex('12 01 61'), 1)).toBeUndefined();
  });

  it('is a string even for invalid UTF-8', () => {
    expect(textOf(hex('0a 01 ff'), 1)).toBe('\ufffd');
  });

  it('is set in the first position, and is the only one', () => {
    expect(setField(hex('08 07 0a 01 01 10 08 0a 01 02'), 1, hex('03'))).toEqual(hex('0a 01 03 10 08'));
    expect(setField(hex('10 08 0a 01 01 18 09'), 1, hex('03'))).toEqual(hex('10 08 0a 01 03 18 09'));
    expect(setField(hex('10 08'), 1, hex('03'))).toEqual(hex('10 08 0a 01 03'));
  });

  it('is updated only if it exists', () => {
    expect(updateField(hex('0a 01 01'), 1, value => concat([value, hex('05')]))).toEqual(hex('0a 02 01 05'));
    expect(updateField(hex('10 01'), 1, () => hex('05'))).toEqual(hex('10 01'));
  });
});

describe('an edit', () => {
  const replaces = (value: Uint8Array) => value[0] === 1;

  it('is put at the first value that it replaces', () => {
    const message = hex('0a 01 02 10 01 0a 01 01 0a 01 01 18 01');
    expect(
      applyEdits(message, [{ number: 1, replaces, fields: [hex('0a 01 09'), hex('0a 01 08')] }]),
    ).toEqual(hex('0a 01 02 10 01 0a 01 09 0a 01 08 18 01'));
  });

  it('is put before other values of its number if it replaces none', () => {
    expect(applyEdits(hex('10 01 0a 01 02'), [{ number: 1, replaces, fields: [hex('0a 01 09')] }])).toEqual(
      hex('10 01 0a 01 09 0a 01 02'),
    );
  });

  it('is put at the end, in the order of edits, if there is no field of its number', () => {
    const edits = [5, 4].map(number => ({ number, replaces, fields: [varintField(number, 1)] }));
    expect(applyEdits(hex('08 01'), edits)).toEqual(hex('08 01 28 01 20 01'));
  });

  it('keeps all other fields of any message, and their order', () => {
    const others = fc.array(anyField(fc.integer({ min: 10, max: 5000 })), { maxLength: 6 });
    const own = fc.array(anyField(fc.constant(7)), { maxLength: 2 });
    fc.assert(
      fc.property(others, own, others, (before, ours, after) => {
        const field = bytesField(7, hex('01'));
        const whole = applyEdits(concat([...before, ...ours, ...after]), [
          { number: 7, replaces: () => true, fields: [field] },
        ]);
        const expected = ours.length > 0 ? [...before, field, ...after] : [...before, ...after, field];
        expect(whole).toEqual(concat(expected));
      }),
      { seed },
    );
  });
});
