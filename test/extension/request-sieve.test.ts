import { fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requestSieve } from '../../src/extension/eds/request-sieve.ts';
import { DeltaDiscoveryRequestSchema } from '../../src/extension/proto/envoy/service/discovery/v3_pb.ts';
import { bytesField, joined } from '../../src/extension/wire.ts';
import { anyField, hostileBytes, seed } from '../support/extension/messages.ts';

const text = (number: number, value: string) => bytesField(number, Buffer.from(value));
const hex = (digits: string) => Uint8Array.from(Buffer.from(digits.replaceAll(' ', ''), 'hex'));

/** What passes the sieve of a request that comes in these pieces. */
function sieved(pieces: readonly Uint8Array[]): Uint8Array {
  const sieve = requestSieve(pieces.reduce((sum, { length }) => sum + length, 0));
  return joined(pieces.map(piece => sieve.pass(piece)));
}

function cut(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const cuts = [0, ...places.map(place => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end));
}

const bytewise = (bytes: Uint8Array) => Array.from(bytes, byte => Uint8Array.of(byte));

/** All that a request says to us, or that it cannot be read. */
function readingOf(request: Uint8Array): string {
  try {
    const message = fromBinary(DeltaDiscoveryRequestSchema, request, { readUnknownFields: false });
    return Buffer.from(toBinary(DeltaDiscoveryRequestSchema, message)).toString('hex');
  } catch {
    return 'unreadable';
  }
}

/** What an Envoy tells of itself, with its id and cluster anywhere among it. */
const node = fc
  .array(
    fc.oneof(
      fc.string().map(id => text(1, id)),
      fc.string().map(cluster => text(2, cluster)),
      anyField(fc.integer({ min: 3, max: 40 })),
    ),
    { maxLength: 8 },
  )
  .map(fields => bytesField(1, joined(fields)));

const versions = fc
  .tuple(fc.string(), fc.string())
  .map(([key, value]) => bytesField(5, joined([text(1, key), text(2, value)])));

const request = fc
  .array(
    fc.oneof(
      node,
      versions,
      fc.tuple(fc.constantFrom(2, 3, 4, 6), fc.string()).map(([number, value]) => text(number, value)),
      anyField(fc.integer({ min: 8, max: 2000 })),
    ),
    { maxLength: 8 },
  )
  .map(joined);

const cuts = fc.array(fc.nat(), { maxLength: 20 });

describe('a request that passes the sieve', () => {
  it('says the same to us, wherever it is cut', () => {
    const property = fc.property(request, cuts, (bytes, places) => {
      expect(readingOf(bytes)).not.toBe('unreadable');
      expect(readingOf(sieved(cut(bytes, places)))).toBe(readingOf(bytes));
      expect(readingOf(sieved(bytewise(bytes)))).toBe(readingOf(bytes));
    });
    fc.assert(property, { seed, numRuns: 500 });
  });

  it('is the same wherever it is cut, and not much longer, whatever it is', () => {
    const property = fc.property(hostileBytes(request), cuts, (bytes, places) => {
      const kept = sieved([bytes]);
      expect(sieved(cut(bytes, places))).toEqual(kept);
      expect(sieved(bytewise(bytes))).toEqual(kept);
      expect(kept.length).toBeLessThanOrEqual(2 * bytes.length);
    });
    fc.assert(property, { seed, numRuns: 2000 });
  });

  it('has lost what an Envoy tells of itself', () => {
    const extensions = Array.from({ length: 800 }, () => bytesField(9, new Uint8Array(70)));
    const told = bytesField(1, joined([text(1, 'envoy-1'), text(2, 'shop/web'), ...extensions]));
    const rest = joined([text(2, 'type'), text(3, 'a cluster')]);
    const kept = sieved(cut(joined([told, rest]), [16_384, 32_768, 49_152]));
    expect(told.length).toBeGreaterThan(50_000);
    expect(kept.length).toBeLessThan(rest.length + 40);
    expect(readingOf(kept)).toBe(readingOf(joined([told, rest])));
  });
});

describe('what is kept', () => {
  it('does not lie in the memory of the pieces', () => {
    const piece = joined([text(2, 'type'), text(3, 'a cluster')]);
    const kept = requestSieve(piece.length + 10).pass(piece);
    expect(kept).toEqual(piece);
    expect(kept.buffer).not.toBe(piece.buffer);
    expect(kept.buffer.byteLength).toBe(kept.length);
  });

  it.each([
    ['a node that is longer than the request', '0a 7f 12 01 61'],
    ['a field that is longer than its node', '0a 03 12 05 61'],
    ['a field that is longer than its node, and is not kept', '0a 04 4a 7f 00 00 1a 01 61'],
    ['a node that ends within the tag of a field', '0a 01 92 1a 01 61'],
    ['a node that ends within the length of a field', '0a 02 12 80 1a 01 61'],
    ['an id that is a number', '0a 02 08 01 1a 01 61'],
    ['a field with the number 0 in a node', '0a 02 02 00'],
    ['a group in a node', '0a 02 4b 4c'],
    ['a length that no message has', '0a 07 4a ff ff ff ff ff 01'],
    ['a length that does not end', '0a 0c 4a ff ff ff ff ff ff ff ff ff ff ff'],
    ['a request that ends within a tag', '1a 01 61 8a'],
    ['a request that ends within the length of a node', '1a 01 61 0a 80'],
    ['a request that ends within a value', '1a 05 61'],
  ])('of %s cannot be read', (_, digits) => {
    expect(readingOf(sieved(bytewise(hex(digits))))).toBe('unreadable');
    expect(readingOf(sieved([hex(digits)]))).toBe('unreadable');
  });

  it('of many bytes is no more than they are', () => {
    const bytes = hex('0a 02 08 01'.padEnd(200_000, ' ff'));
    expect(sieved([bytes]).length).toBeLessThan(10);
    const odd = hex('1a 01 61 00'.padEnd(3000, ' 0a'));
    expect(sieved(bytewise(odd))).toEqual(odd);
  });
});
