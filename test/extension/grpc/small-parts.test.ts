import { describe, expect, it } from 'vitest';
import { framed, detached } from '../../../src/extension/grpc/framing.ts';
import { encodeMessage, refusalOf, trailersOf } from '../../../src/extension/grpc/headers.ts';
import { Keepalive } from '../../../src/extension/grpc/keepalive.ts';
import { parseTimeout } from '../../../src/extension/grpc/timeout.ts';

describe('grpc-timeout', () => {
  it.each([
    ['1H', 3_600_000],
    ['2M', 120_000],
    ['3S', 3000],
    ['100m', 100],
    ['500u', 0.5],
    ['1000000n', 1],
    ['99999999H', 99_999_999 * 3_600_000],
  ])('%s is a time', (text, ms) => expect(parseTimeout(text)).toBeCloseTo(ms, 9));

  it.each(['', '1', 'S', '123456789S', '-1S', '1.5S', '1s', ' 1S', '1S ', '1S, 2S', '1constructor'])(
    '%j is none',
    text => expect(parseTimeout(text)).toBeUndefined(),
  );
});

describe('grpc-message', () => {
  it.each([
    ['all is well', 'all is well'],
    ['100%', '100%25'],
    ['two\r\nlines', 'two%0D%0Alines'],
    ['Größe ✓', 'Gr%C3%B6%C3%9Fe %E2%9C%93'],
    ['\ud800', '%EF%BF%BD'],
    ['\0\x7f~', '%00%7F~'],
  ])('%j is sent as %j', (text, sent) => {
    expect(encodeMessage(text)).toBe(sent);
    expect(decodeURIComponent(sent)).toBe(text.replace('\ud800', '\ufffd'));
  });

  it('is cut where it is long', () => expect(encodeMessage('ä'.repeat(9999))).toHaveLength(6 * 1024));
});

describe('trailers', () => {
  it('of a call that went well are the status alone', () =>
    expect(trailersOf({ code: 'OK', message: '' })).toEqual({ 'grpc-status': '0' }));
  it('of another say why', () =>
    expect(trailersOf({ code: 'UNAVAILABLE', message: 'not now' })).toEqual({
      'grpc-status': '14',
      'grpc-message': 'not now',
    }));
});

describe('a request', () => {
  const post = { ':method': 'POST' };
  it.each([
    ['application/grpc', undefined],
    ['application/grpc+proto', undefined],
    ['application/grpc;charset=utf-8', undefined],
    ['application/grpc-web', 415],
    ['application/json', 415],
    [undefined, 415],
  ])('with the content type %s is answered with %s', (type, httpStatus) => {
    const headers = type === undefined ? post : { ...post, 'content-type': type };
    expect(refusalOf(headers)?.httpStatus).toBe(httpStatus);
  });
  it('that is no POST is refused', () =>
    expect(refusalOf({ ':method': 'GET', 'content-type': 'application/grpc' })?.httpStatus).toBe(405));
});

describe('a message that is sent', () => {
  it.each([
    ['whole', Buffer.alloc(100, 'a'), 1],
    ['in parts', [Buffer.alloc(60, 'a'), Buffer.alloc(40, 'b')], 1],
    ['empty', [], 1],
    ['large', Buffer.alloc(100_000, 'a'), 2],
    ['large in parts', [Buffer.alloc(60_000, 'a'), Buffer.alloc(40_000, 'b')], 3],
  ])('%s has its prefix, and is copied only where it is small', (_, message, pieces) => {
    const parts = message instanceof Uint8Array ? [message] : message;
    const size = parts.reduce((sum, { length }) => sum + length, 0);
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(size, 1);
    expect(framed(message)).toHaveLength(pieces);
    expect(Buffer.concat(framed(message)).equals(Buffer.concat([prefix, ...parts]))).toBe(true);
  });
});

describe('a message that is kept', () => {
  it('is copied out of the memory that many share', () => {
    const slab = Buffer.alloc(64 * 1024, 'a');
    const kept = detached(slab.subarray(100, 300));
    expect(Buffer.from(kept).toString()).toBe('a'.repeat(200));
    expect(kept.buffer.byteLength).toBe(200);
  });
  it('is left where it has its memory for itself', () => {
    const own = new Uint8Array(1000);
    expect(detached(own)).toBe(own);
  });
});

describe('a silent caller', () => {
  const limits = { keepaliveMs: 30_000, keepaliveAnswerMs: 20_000 };
  it('is asked once, and gone when it does not answer', () => {
    const keepalive = new Keepalive(limits);
    const looks = [0, 29_999, 30_000, 31_000, 49_999, 50_000];
    const verdicts = looks.map(now => keepalive.look(now, 100));
    expect(verdicts).toEqual(['nothing', 'nothing', 'ask', 'nothing', 'nothing', 'gone']);
  });
  it('is there when anything comes', () => {
    const keepalive = new Keepalive(limits);
    const looks = [
      [0, 100],
      [30_000, 100],
      [40_000, 117],
      [69_999, 117],
      [70_000, 117],
    ] as const;
    const verdicts = looks.map(([now, bytes]) => keepalive.look(now, bytes));
    expect(verdicts).toEqual(['nothing', 'ask', 'nothing', 'nothing', 'ask']);
  });
});
