import { describe, expect, it } from 'vitest';
import { ERROR_CODES } from '../../../../src/extension/grpc/http2/errors.ts';
import type { Http2Reason } from '../../../../src/extension/grpc/http2/errors.ts';
import { eventually } from '../../../support/eventually.ts';
import { callHeaders, FRAMES, frame, header, RawConnection } from '../../../support/grpc/raw.ts';
import { servePages } from '../../../support/grpc/page.ts';

const END_STREAM = 1;
const END_HEADERS = 4;
const PRIORITY = 2;
const PUSH = 5;

const word = (number: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(number);
  return bytes;
};
const words = (...numbers: readonly number[]) => Buffer.concat(numbers.map(word));
const setting = (name: number, value: number) => Buffer.concat([Buffer.of(0, name), word(value)]);
const headers = (id: number, flags: number, more: Readonly<Record<string, string>> = {}) =>
  frame(FRAMES.headers, END_HEADERS | flags, id, callHeaders('/', more));
const complete = headers(1, END_STREAM);
const open = headers(1, 0);
const data = (id: number, bytes: number, flags = 0) => frame(FRAMES.data, flags, id, Buffer.alloc(bytes));

type Broken = readonly [what: string, bytes: Buffer, reason: Http2Reason];

async function sent(bytes: Buffer): Promise<RawConnection> {
  const { port } = await servePages();
  const raw = await RawConnection.open(port);
  raw.send(bytes);
  return raw;
}

const codeIn = (payload: Buffer | undefined, at: number) => payload?.readUInt32BE(at);

describe('a connection is given up, and told why, when it brings', () => {
  const cases: readonly Broken[] = [
    ['data of no stream', data(0, 1), 'protocol'],
    ['data of a stream that is to come', data(1, 1), 'protocol'],
    ['headers of no stream', headers(0, 0), 'protocol'],
    ['headers of a stream of ours', headers(2, 0), 'protocol'],
    ['an older stream', Buffer.concat([headers(5, 0), headers(3, 0)]), 'protocol'],
    ['something between headers', Buffer.concat([frame(FRAMES.headers, 0, 1), data(1, 1)]), 'protocol'],
    ['the rest of no headers', frame(FRAMES.more, END_HEADERS, 1), 'protocol'],
    [
      'the rest of other headers',
      Buffer.concat([frame(FRAMES.headers, 0, 1), frame(FRAMES.more, 0, 3)]),
      'protocol',
    ],
    ['headers that are none', frame(FRAMES.headers, END_HEADERS, 1, Buffer.of(0xff)), 'compression'],
    [
      'headers that are padding alone',
      frame(FRAMES.headers, END_HEADERS | 8, 1, Buffer.of(9, 0)),
      'protocol',
    ],
    ['headers without their priority', frame(FRAMES.headers, END_HEADERS | 32, 1, Buffer.of(0)), 'frameSize'],
    ['a stream that depends on itself', frame(FRAMES.headers, END_HEADERS | 32, 1, words(1, 0)), 'protocol'],
    ['a reset of a stream that is to come', frame(FRAMES.reset, 0, 1, words(8)), 'protocol'],
    ['a reset of another size', Buffer.concat([open, frame(FRAMES.reset, 0, 1, words(8, 8))]), 'frameSize'],
    ['settings of a stream', frame(FRAMES.settings, 0, 1), 'protocol'],
    ['settings of another size', frame(FRAMES.settings, 0, 0, Buffer.alloc(5)), 'frameSize'],
    ['an answer to settings with settings', frame(FRAMES.settings, 1, 0, setting(3, 1)), 'frameSize'],
    ['a push that is no yes or no', frame(FRAMES.settings, 0, 0, setting(2, 2)), 'protocol'],
    ['a window beyond all bounds', frame(FRAMES.settings, 0, 0, setting(4, 2 ** 31)), 'flowControl'],
    ['frames that are too small', frame(FRAMES.settings, 0, 0, setting(5, 16_383)), 'protocol'],
    ['frames that are too large', frame(FRAMES.settings, 0, 0, setting(5, 2 ** 24)), 'protocol'],
    ['a push', frame(PUSH, END_HEADERS, 1, words(2)), 'protocol'],
    ['a ping of a stream', frame(FRAMES.ping, 0, 1, words(0, 0)), 'protocol'],
    ['a ping of another size', frame(FRAMES.ping, 0, 0, words(0)), 'frameSize'],
    ['a farewell of a stream', frame(FRAMES.goaway, 0, 1, words(0, 0)), 'protocol'],
    ['a farewell that is too short', frame(FRAMES.goaway, 0, 0, words(0)), 'frameSize'],
    ['a window of nothing', frame(FRAMES.window, 0, 0, words(0)), 'protocol'],
    ['a window of another size', frame(FRAMES.window, 0, 0, Buffer.of(1)), 'frameSize'],
    ['a window of a stream that is to come', frame(FRAMES.window, 0, 1, words(1)), 'protocol'],
    ['windows that grow beyond all bounds', frame(FRAMES.window, 0, 0, words(2 ** 31 - 1)), 'flowControl'],
    [
      'windows of streams that do',
      Buffer.concat([
        open,
        frame(FRAMES.window, 0, 1, words(2 ** 30)),
        frame(FRAMES.settings, 0, 0, setting(4, 2 ** 31 - 1)),
      ]),
      'flowControl',
    ],
    ['a priority of no stream', frame(PRIORITY, 0, 0, Buffer.alloc(5)), 'protocol'],
    ['a priority of another size', frame(PRIORITY, 0, 1, Buffer.alloc(4)), 'frameSize'],
    ['a priority over itself', frame(PRIORITY, 0, 1, Buffer.concat([words(1), Buffer.of(0)])), 'protocol'],
    [
      'data behind a reset',
      Buffer.concat([open, frame(FRAMES.reset, 0, 1, words(8)), data(1, 1)]),
      'streamClosed',
    ],
    ['a frame that is too large', frame(FRAMES.data, 0, 1, Buffer.alloc(16_385)), 'frameSize'],
  ];

  it.each(cases)('%s', async (_, bytes, reason) => {
    const raw = await sent(bytes);
    await eventually(() => expect(raw.of('goaway')).toHaveLength(1));
    expect(codeIn(raw.of('goaway')[0]?.payload, 4)).toBe(ERROR_CODES[reason]);
    await raw.closed();
  });
});

describe('a connection is given up behind an answer, when it brings', () => {
  it.each([
    ['data', data(1, 1)],
    ['headers', complete],
  ])('%s', async (_, bytes) => {
    const raw = await sent(complete);
    await eventually(() => expect(raw.of('headers', 1)).toHaveLength(2));
    raw.send(bytes);
    await eventually(() => expect(codeIn(raw.of('goaway')[0]?.payload, 4)).toBe(ERROR_CODES.streamClosed));
    await raw.closed();
  });
});

describe('a stream is given up, and no other, when it brings', () => {
  const half = (id: number, more: Readonly<Record<string, string>>) => headers(id, 0, more);
  const cases: readonly Broken[] = [
    [
      'no method',
      frame(FRAMES.headers, 5, 1, Buffer.concat([header(':scheme', 'http'), header(':path', '/')])),
      'protocol',
    ],
    ['an empty path', frame(FRAMES.headers, 5, 1, callHeaders('')), 'protocol'],
    [
      'a method twice',
      frame(FRAMES.headers, 5, 1, Buffer.concat([callHeaders('/'), header(':method', 'POST')])),
      'protocol',
    ],
    [
      'a status',
      frame(FRAMES.headers, 5, 1, Buffer.concat([header(':status', '200'), callHeaders('/')])),
      'protocol',
    ],
    ['upper case', half(1, { 'X-Upper': 'a' }), 'protocol'],
    ['a name with a space', half(1, { 'x y': 'a' }), 'protocol'],
    ['no name', half(1, { '': 'a' }), 'protocol'],
    ['a value with two lines', half(1, { 'x-lines': 'a\nb' }), 'protocol'],
    ['a value with a space behind it', half(1, { 'x-space': 'a ' }), 'protocol'],
    ['a field of connections', half(1, { connection: 'close' }), 'protocol'],
    ['an encoding of connections', half(1, { te: 'gzip' }), 'protocol'],
    ['a length that is none', half(1, { 'content-length': '1e3' }), 'protocol'],
    [
      'more than its length',
      Buffer.concat([half(1, { 'content-length': '1' }), data(1, 2, END_STREAM)]),
      'protocol',
    ],
    [
      'less than its length',
      Buffer.concat([half(1, { 'content-length': '3' }), data(1, 2, END_STREAM)]),
      'protocol',
    ],
    ['nothing of its length', headers(1, END_STREAM, { 'content-length': '3' }), 'protocol'],
    ['headers in the midst', Buffer.concat([open, headers(1, 0)]), 'protocol'],
    ['a method at its end', Buffer.concat([open, headers(1, END_STREAM)]), 'protocol'],
    ['data behind its end', Buffer.concat([complete, data(1, 1)]), 'streamClosed'],
    ['headers behind its end', Buffer.concat([complete, complete]), 'streamClosed'],
    ['a window of nothing', Buffer.concat([open, frame(FRAMES.window, 0, 1, words(0))]), 'protocol'],
    [
      'a window beyond all bounds',
      Buffer.concat([open, frame(FRAMES.window, 0, 1, words(2 ** 31 - 1))]),
      'flowControl',
    ],
    ['more than its window', Buffer.concat([open, data(1, 11_000)]), 'flowControl'],
    [
      'too many headers',
      half(1, Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`x-${at}`, 'x'.repeat(390)]))),
      'calm',
    ],
  ];

  it.each(cases)('%s', async (_, bytes, reason) => {
    const { port } = await servePages({ window: 10_000 });
    const raw = await RawConnection.open(port);
    raw.send(bytes, headers(11, END_STREAM));
    await eventually(() => expect(raw.of('data', 11)).toHaveLength(1));
    expect(raw.of('reset').map(({ id, payload }) => [id, codeIn(payload, 0)])).toEqual([
      [1, ERROR_CODES[reason]],
    ]);
    expect(raw.of('goaway')).toEqual([]);
  });
});

describe('nothing is said against', () => {
  it.each([
    ['frames that nobody knows', frame(0x77, 0xff, 0, Buffer.from('what'))],
    ['settings that nobody knows', frame(FRAMES.settings, 0, 0, setting(0x77, 5))],
    ['a priority of a stream that is to come', frame(PRIORITY, 0, 7, Buffer.alloc(5))],
    ['data without data', Buffer.concat([headers(1, 0), data(1, 0), data(1, 0, END_STREAM)])],
    [
      'trailers',
      Buffer.concat([headers(1, 0), data(1, 5), frame(FRAMES.headers, 5, 1, header('x-end', 'yes'))]),
    ],
    ['a window of a stream that has ended', Buffer.concat([complete, frame(FRAMES.window, 0, 1, words(9))])],
    ['a reset of a stream that has ended', Buffer.concat([complete, frame(FRAMES.reset, 0, 1, words(8))])],
    ['a farewell', frame(FRAMES.goaway, 0, 0, words(0, 0))],
    [
      'headers in many frames',
      Buffer.concat([
        frame(FRAMES.headers, 1, 1),
        ...Array.from(callHeaders('/').subarray(0, 20), byte => frame(FRAMES.more, 0, 1, Buffer.of(byte))),
        frame(FRAMES.more, 4, 1, callHeaders('/').subarray(20)),
      ]),
    ],
  ])('%s', async (_, bytes) => {
    const raw = await sent(bytes);
    raw.send(headers(11, END_STREAM));
    await eventually(() => expect(raw.of('data', 11)).toHaveLength(1));
    expect([...raw.of('goaway'), ...raw.of('reset')]).toEqual([]);
  });

  it('what still comes for a stream that was given up', async () => {
    const raw = await sent(
      Buffer.concat([headers(1, 0, { te: 'gzip' }), data(1, 5), headers(1, END_STREAM), data(1, 5)]),
    );
    raw.send(headers(11, END_STREAM));
    await eventually(() => expect(raw.of('data', 11)).toHaveLength(1));
    expect(raw.of('reset')).toHaveLength(1);
    expect(raw.of('goaway')).toEqual([]);
  });
});

describe('one answer', () => {
  it('comes in one piece', async () => {
    const { port } = await servePages();
    const raw = await RawConnection.open(port);
    await eventually(() => expect(raw.of('settings')).toHaveLength(2));
    const pieces: Buffer[] = [];
    raw.socket.on('data', piece => void pieces.push(piece));
    raw.send(complete);
    await eventually(() => expect(raw.of('headers', 1)).toHaveLength(2));
    expect(pieces).toHaveLength(1);
  });

  it('waits for a window, its end with it', async () => {
    const { port } = await servePages();
    const raw = await RawConnection.open(port, [[4, 0]]);
    raw.send(complete);
    await eventually(() => expect(raw.of('headers', 1)).toHaveLength(1));
    raw.send(frame(FRAMES.window, 0, 1, words(3)));
    await eventually(() => expect(raw.of('data', 1).map(({ payload }) => payload.length)).toEqual([3]));
    raw.send(frame(FRAMES.settings, 0, 0, setting(4, 2)));
    await eventually(() => expect(raw.of('data', 1).map(({ payload }) => payload.length)).toEqual([3, 2]));
    raw.send(frame(FRAMES.settings, 0, 0, setting(4, 1)), frame(FRAMES.settings, 0, 0, setting(4, 3)));
    await eventually(() => expect(raw.of('data', 1).map(({ payload }) => payload.length)).toEqual([3, 2, 1]));
    raw.send(frame(FRAMES.settings, 0, 0, setting(4, 65_535)));
    await eventually(() => expect(raw.of('headers', 1)).toHaveLength(2));
    expect(Buffer.concat(raw.of('data', 1).map(({ payload }) => payload)).toString()).toBe(
      'a page with some words',
    );
  });
});
