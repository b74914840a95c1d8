import { once } from 'node:events';
import { connect } from 'node:http2';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HeaderDecoder } from '../../../../src/extension/grpc/http2/hpack/decoder.ts';
import { encodeHeaders } from '../../../../src/extension/grpc/http2/hpack/encode.ts';
import { FrameReader } from '../../../../src/extension/grpc/http2/frame-reader.ts';
import { FRAMES } from '../../../../src/extension/grpc/http2/frames.ts';
import { header } from '../../../support/grpc/raw.ts';

/** The same headers in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

type Pairs = readonly (readonly [string, string])[];

function decoded(decoder: HeaderDecoder, block: Buffer): Pairs {
  const pairs: [string, string][] = [];
  decoder.decode(block, ({ name, value }) => pairs.push([name, value]));
  return pairs;
}

const KEPT = 0x40;

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

const FIRST: Pairs = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'www.example.com'],
];
const SECOND: Pairs = [...FIRST, ['cache-control', 'no-cache']];
const THIRD: Pairs = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/index.html'],
  [':authority', 'www.example.com'],
  ['custom-key', 'custom-value'],
];

describe('blocks of headers', () => {
  it.each([
    [
      'literal',
      '828684410f7777772e6578616d706c652e636f6d',
      '828684be58086e6f2d6361636865',
      '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565',
    ],
    [
      'coded',
      '828684418cf1e3c2e5f23a6ba0ab90f4ff',
      '828684be5886a8eb10649cbf',
      '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf',
    ],
  ])('are read one after another as RFC 7541 shows in C.3 and C.4, %s', (_, ...blocks) => {
    const decoder = new HeaderDecoder();
    expect(blocks.map(block => decoded(decoder, hex(block)))).toEqual([FIRST, SECOND, THIRD]);
  });

  it.each<[string, string, Pairs]>([
    [
      'that are kept',
      '400a637573746f6d2d6b65790d637573746f6d2d686561646572',
      [['custom-key', 'custom-header']],
    ],
    ['that are not', '040c2f73616d706c652f70617468', [[':path', '/sample/path']]],
    ['that nobody may keep', '100870617373776f726406736563726574', [['password', 'secret']]],
    ['that everybody has', '82', [[':method', 'GET']]],
  ])('have fields %s, as RFC 7541 shows in C.2', (_, block, pairs) => {
    expect(decoded(new HeaderDecoder(), hex(block))).toEqual(pairs);
  });

  it('forget the oldest fields where the table is full', () => {
    const decoder = new HeaderDecoder();
    const field = (name: string) => {
      const bytes = header(name, 'x'.repeat(1024 - 32 - name.length));
      bytes[0] = KEPT;
      return bytes;
    };
    const block = Buffer.concat(['a', 'b', 'c', 'd'].map(field));
    expect(() => decoded(decoder, block)).not.toThrow();
    expect(decoded(decoder, Buffer.of(0xbe)).map(([name]) => name)).toEqual(['d']);
    decoded(decoder, field('e'));
    expect(decoded(decoder, Buffer.of(0xc0)).map(([name]) => name)).toEqual(['c']);
    expect(() => decoded(decoder, Buffer.of(0xc2))).toThrow('an index has no field');
  });

  it('may make the table smaller, and as large again', () => {
    const decoder = new HeaderDecoder();
    decoded(decoder, hex('400161 0162'));
    expect(decoded(decoder, hex('be'))).toEqual([['a', 'b']]);
    expect(decoded(decoder, hex('20 3fe11f 82'))).toEqual([[':method', 'GET']]);
    expect(() => decoded(decoder, hex('be'))).toThrow('an index has no field');
  });

  it.each([
    ['an index of zero', '80'],
    ['an index that nobody has', 'be'],
    ['a name that nobody has', '7f 00 01 61'],
    ['a number without an end', 'ff ff'],
    ['a number beyond all bounds', 'ff ff ff ff ff ff ff 01'],
    ['a text without an end', '40 05 61'],
    ['a text that is missing', '40 01 61'],
    ['no text at all', '40'],
    ['a text with eight bits of padding', '40 81 ff 01 61'],
    ['a text with a padding of zeros', '40 81 18 01 61'],
    ['a text with the end in it', '40 84 ff ff ff ff 01 61'],
    ['a table that is too large', '3f e2 1f'],
    ['a table that changes behind a field', '82 20'],
  ])('are refused for %s', (_, block) => {
    expect(() => decoded(new HeaderDecoder(), hex(block))).toThrow(
      expect.objectContaining({ reason: 'compression' }),
    );
  });

  it('are never read as anything but headers or a mistake, whatever they are', () => {
    const property = fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 }), blocks => {
      const decoder = new HeaderDecoder();
      for (const block of blocks) {
        try {
          decoded(decoder, Buffer.from(block));
        } catch (error) {
          expect(error).toMatchObject({ reason: 'compression' });
          return;
        }
      }
    });
    fc.assert(property, { seed, numRuns: 5000 });
    expect.hasAssertions();
  });
});

const NAMES = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/).map(name => `x-${name}`);
const VALUES = fc.stringMatching(/^[!-~]([ -~]{0,60}[!-~])?$/);

describe('headers that are sent', () => {
  it('are those that are read', () => {
    const property = fc.property(fc.dictionary(NAMES, VALUES), headers => {
      const all = { ':status': '200', 'content-type': 'application/grpc', ...headers };
      expect(decoded(new HeaderDecoder(), encodeHeaders(all))).toEqual(Object.entries(all));
    });
    fc.assert(property, { seed, numRuns: 300 });
  });

  it.each([126, 127, 128, 254, 255, 6000])('may have %i bytes', bytes => {
    const headers = { 'grpc-message': 'm'.repeat(bytes) };
    expect(decoded(new HeaderDecoder(), encodeHeaders(headers))).toEqual(Object.entries(headers));
  });
});

/** The headers that an encoder which is not ours sends for requests, one block each. */
async function blocksOf(requests: readonly Readonly<Record<string, string>>[]): Promise<readonly Buffer[]> {
  const blocks: Buffer[] = [];
  const server = createServer(socket => {
    const reader = new FrameReader({
      frame: ({ type }, payload) => {
        if (type === FRAMES.headers) blocks.push(Buffer.from(payload));
      },
      dataBegins: () => undefined,
      data: () => undefined,
      dataEnds: () => undefined,
    });
    let isFirst = true;
    socket.on('data', piece => {
      reader.read(isFirst ? piece.subarray(24) : piece);
      isFirst = false;
    });
    socket.write(Buffer.from('000000040000000000', 'hex'));
    socket.on('error', () => undefined);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  client.on('error', () => undefined);
  await once(client, 'remoteSettings');
  for (const headers of requests) client.request(headers, { endStream: true }).on('error', () => undefined);
  await expect.poll(() => blocks.length).toBe(requests.length);
  client.destroy();
  server.close();
  return blocks;
}

it('headers of an encoder that is not ours are read as it was given them', async () => {
  const sets = fc.sample(fc.dictionary(NAMES, VALUES, { maxKeys: 12 }), { seed, numRuns: 400 });
  const decoder = new HeaderDecoder();
  const read = (await blocksOf(sets)).map(block =>
    decoded(decoder, block).filter(([name]) => !name.startsWith(':')),
  );
  expect(read).toEqual(sets.map(headers => Object.entries(headers)));
});
