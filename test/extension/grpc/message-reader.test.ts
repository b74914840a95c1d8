import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Budget } from '../../../src/extension/grpc/budget.ts';
import { framed } from '../../../src/extension/grpc/framing.ts';
import { MessageReader } from '../../../src/extension/grpc/message-reader.ts';

/** The same messages in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const MIB = 1024 * 1024;

function reading(most = 100 * MIB, budget = new Budget(256 * MIB)) {
  const taken: Buffer[] = [];
  const reader = new MessageReader({ most, budget, take: message => void taken.push(Buffer.from(message)) });
  return { reader, taken, budget };
}

const wire = (...messages: readonly Uint8Array[]) => Buffer.concat(messages.flatMap(framed));

function cut(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const cuts = [0, ...places.map(place => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end));
}

describe('messages', () => {
  it('are the same wherever what carries them is cut', () => {
    const messages = fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 });
    const property = fc.property(messages, fc.array(fc.nat(), { maxLength: 30 }), (sent, places) => {
      const { reader, taken, budget } = reading();
      for (const piece of cut(wire(...sent), places)) reader.read(piece);
      expect(taken).toEqual(sent.map(bytes => Buffer.from(bytes)));
      expect(reader.isWithin).toBe(false);
      expect(budget.held).toBe(0);
    });
    fc.assert(property, { seed, numRuns: 500 });
  });

  it.each([0, 1, 5, 16_384, 4 * MIB, 4 * MIB + 1, 9 * MIB])('of %i bytes come whole', size => {
    const { reader, taken, budget } = reading();
    const message = Buffer.alloc(size, 'mesh');
    const bytes = wire(message, Buffer.from('next'));
    for (let at = 0; at < bytes.length; at += 16_384) reader.read(bytes.subarray(at, at + 16_384));
    expect(taken.map(({ length }) => length)).toEqual([size, 4]);
    expect(taken[0]?.equals(message)).toBe(true);
    expect(budget.held).toBe(0);
  });

  it('are unfinished for as long as the rest does not come', () => {
    const { reader } = reading();
    const bytes = wire(Buffer.from('one'), Buffer.from('two'));
    reader.read(bytes.subarray(0, 6));
    expect(reader.unfinishedFor(1000)).toBe(0);
    expect(reader.unfinishedFor(3000)).toBe(2000);
    reader.read(bytes.subarray(6, 10));
    expect(reader.unfinishedFor(4000)).toBe(0);
    reader.read(bytes.subarray(10));
    expect(reader.unfinishedFor(9000)).toBe(0);
  });
});

describe('a sieve', () => {
  /** Keeps of each byte so many. */
  const keeping = (copies: number) => () => ({
    pass: (piece: Uint8Array) => Buffer.concat(Array.from(piece, byte => Buffer.alloc(copies, byte))),
  });

  it.each([0, 1, 3])('that keeps %i of a byte decides what is held, and what is taken', copies => {
    const budget = new Budget(MIB);
    const taken: Buffer[] = [];
    const take = (message: Uint8Array) => void taken.push(Buffer.from(message));
    const reader = new MessageReader({ most: MIB, budget, sieve: keeping(copies), take });
    const bytes = wire(Buffer.alloc(1000, 'mesh'), Buffer.alloc(500, 'next'));
    for (const at of Array.from({ length: 75 }, (_, index) => index * 10))
      reader.read(bytes.subarray(at, at + 10));
    expect(budget.held === 0).toBe(copies === 0);
    for (let at = 750; at < bytes.length; at += 10) reader.read(bytes.subarray(at, at + 10));
    expect(taken.map(({ length }) => length)).toEqual([1000 * copies, 500 * copies]);
    expect(budget.held).toBe(0);
  });

  it('is not asked about what comes in one piece', () => {
    const taken: Uint8Array[] = [];
    const reader = new MessageReader({
      most: MIB,
      budget: new Budget(MIB),
      sieve: keeping(0),
      take: message => void taken.push(message),
    });
    reader.read(wire(Buffer.alloc(1000)));
    expect(taken.map(({ length }) => length)).toEqual([1000]);
  });
});

describe('what is no message', () => {
  it('is refused by its size before anything is set aside for it', () => {
    const { reader, budget } = reading(1000);
    const prefix = Buffer.of(0, 0, 0, 0x03, 0xe9);
    expect(() => reader.read(prefix)).toThrow('a message of 1001 bytes is larger than 1000');
    expect(budget.held).toBe(0);
  });

  it.each([
    [1, 'compressed messages are not understood'],
    [2, 'what was sent is not a message'],
    [255, 'what was sent is not a message'],
  ])('is refused by its flag %i', (flag, says) => {
    expect(() => reading().reader.read(Buffer.of(flag))).toThrow(says);
  });
});

describe('memory for messages', () => {
  it('is not much more than what has come, and is given back when it is dropped', () => {
    const { reader, budget } = reading();
    const bytes = wire(Buffer.alloc(2 * MIB));
    reader.read(bytes.subarray(0, 5));
    expect(budget.held).toBe(0);
    reader.read(bytes.subarray(5, 1005));
    expect(budget.held).toBe(4000);
    reader.drop();
    expect(budget.held).toBe(0);
  });

  it('is bounded where a message comes in the smallest pieces', () => {
    const { reader, taken, budget } = reading();
    const sent = Buffer.alloc(300_000, 'mesh');
    let most = 0;
    for (const byte of wire(sent)) {
      reader.read(Buffer.of(byte));
      most = Math.max(most, budget.held);
    }
    expect(taken[0]?.equals(sent)).toBe(true);
    expect(most).toBeLessThanOrEqual(300_000);
    expect(budget.held).toBe(0);
  });

  it('is refused where there is none', () => {
    const whole = new Budget(MIB);
    const budget = new Budget(100 * MIB, whole);
    whole.take(MIB - 9);
    expect(() => reading(100 * MIB, budget).reader.read(wire(Buffer.alloc(20)).subarray(0, 15))).toThrow(
      'too many unfinished requests are held',
    );
    expect([budget.held, whole.held]).toEqual([0, MIB - 9]);
  });
});
