import { describe, expect, it } from 'vitest';
import { CheckError, checkErrorOf, dialError, seconds } from '../../src/health/probe/check-error.ts';

const withCode = (code: string) => Object.assign(new Error('a message with Bearer secret'), { code });

describe('an error of Node', () => {
  it.each([
    ['ECONNREFUSED', 'unanswered', 'connection refused'],
    ['ENOTFOUND', 'unanswered', 'no such name'],
    ['ETIMEDOUT', 'unanswered', 'connection timeout'],
    ['EHOSTUNREACH', 'unanswered', 'host unreachable'],
    ['ENETUNREACH', 'unanswered', 'host unreachable'],
    ['ECONNRESET', 'unanswered', 'connection closed'],
    ['EPIPE', 'unanswered', 'connection closed'],
    ['EMFILE', 'unreached', 'this process has too many open files'],
    ['EADDRNOTAVAIL', 'unreached', 'no local port is free'],
    ['CERT_HAS_EXPIRED', 'answered', 'certificate expired'],
    ['CERT_NOT_YET_VALID', 'answered', 'certificate is not valid yet'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'answered', 'certificate is not valid for web.example.ts.net'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'answered', 'certificate is signed by an unknown authority'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'answered', 'certificate is signed by an unknown authority'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'answered', 'response is not TLS'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'answered', 'TLS handshake failed'],
    ['HPE_INVALID_CONSTANT', 'answered', 'response is not HTTP'],
    ['HPE_HEADER_OVERFLOW', 'answered', 'response headers are too large'],
    ['ENEW', 'unanswered', 'connection failed: ENEW'],
    ['what is no code', 'unanswered', 'connection failed'],
  ])('with the code %s is %s: %s', (code, reason, message) => {
    expect(checkErrorOf(withCode(code), 'web.example.ts.net')).toMatchObject({ reason, message });
  });

  it.each([[new Error('Bearer secret')], ['Bearer secret'], [undefined]])(
    'without a code is not quoted: %s',
    error => {
      expect(checkErrorOf(error)).toMatchObject({ reason: 'unanswered', message: 'connection failed' });
    },
  );

  it('that is one of a check stays', () => {
    const error = new CheckError('answered', 'got 503, expected 200');
    expect(checkErrorOf(error)).toBe(error);
  });
});

describe('the code of an error', () => {
  it.each([
    [
      'that ends a connection',
      ['ECONNRESET', 'EPIPE', 'ERR_SOCKET_CLOSED'].map(withCode).map(each => checkErrorOf(each)),
    ],
    [
      'of a refused connection, here or at the proxy',
      [checkErrorOf(withCode('ECONNREFUSED')), dialError('connection refused')],
    ],
    [
      'of a certificate of an unknown authority',
      [checkErrorOf(withCode('CERT_UNTRUSTED')), checkErrorOf(withCode('SELF_SIGNED_CERT_IN_CHAIN'))],
    ],
    [
      'of a dial that fails for an unknown reason',
      [dialError('one'), dialError('other'), dialError(undefined)],
    ],
  ])('is the same for each %s', (_what, errors) => {
    expect(new Set(errors.map(({ code }) => code)).size).toBe(1);
  });

  it('is another one for another cause', () => {
    const codes = [
      'ECONNREFUSED',
      'ECONNRESET',
      'CERT_HAS_EXPIRED',
      'HPE_HEADER_OVERFLOW',
      'HPE_INVALID_CONSTANT',
    ];
    expect(new Set(codes.map(withCode).map(each => checkErrorOf(each).code)).size).toBe(codes.length);
  });
});

describe('the text of an error', () => {
  it('has at most 256 characters', () => {
    expect(dialError('x'.repeat(10_000)).message.length).toBe(256);
  });
});

describe('the error text of a proxy', () => {
  it.each([
    ['dial tcp 100.64.0.1:80: connect: connection refused', 'connection refused'],
    ['connect tcp 100.64.0.1:80: connection was refused', 'connection refused'],
    ['dial tcp: lookup web.example.ts.net: no such host', 'no such name'],
    ['context deadline exceeded', 'connection timeout'],
    ['connect tcp 100.64.0.1:80: operation timed out', 'connection timeout'],
    ['connect tcp 100.64.0.1:80: i/o timeout', 'connection timeout'],
    ['connect tcp 100.64.0.1:80: no route to host', 'host unreachable'],
    ['connect tcp 100.64.0.1:80: connection reset by peer', 'connection closed'],
    ['two\r\n lines \u202e\x1b[31m', 'the proxy could not connect: two lines [31m'],
    [undefined, 'the proxy could not connect'],
  ])('%j is: %s', (text, expected) => {
    expect(dialError(text)).toMatchObject({ reason: 'unanswered', message: expected });
  });
});

describe('a time limit', () => {
  it.each([
    [10_000, '10s'],
    [1500, '1.5s'],
    [250, '250ms'],
  ])('of %d ms is %s', (ms, text) => {
    expect(seconds(ms)).toBe(text);
  });
});
