import { describe, expect, it } from 'vitest';
import { cachedCaBundles, readCaBundle } from '../../src/traffic/upstream-tls.ts';
import { CERTIFICATE as ONE, OTHER_CERTIFICATE as TWO } from '../support/traffic/certificates.ts';

const KEY = '-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n';
const NONSENSE = '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n';
const DANGLING = 'a BEGIN line has no matching END line';

describe('a CA bundle', () => {
  it.each([
    ['one certificate', ONE, ONE],
    ['two certificates', ONE + TWO, ONE + TWO],
    ['text around them', `issued for tests\n${ONE}\n# the other\n${TWO}end`, ONE + TWO],
    ['no last line', ONE.trimEnd(), ONE],
    ['lines as another system ends them', ONE.replaceAll('\n', '\r\n'), ONE],
  ])('with %s is valid, in canonical form', (_, pem, read) => {
    expect(readCaBundle(pem)).toEqual({ is: 'valid', pem: read });
  });

  it.each([
    ['nothing in it', NONSENSE, 'certificate 1 is malformed'],
    ['nonsense after a valid one', ONE + NONSENSE, 'certificate 2 is malformed'],
    ['half a certificate', ONE.replace(/(?:.+\n){5}-----END/, '-----END'), 'certificate 1 is malformed'],
    ['no end', ONE.slice(0, -40), DANGLING],
    ['a second one without an end', `${ONE}-----BEGIN CERTIFICATE-----\nMIIB`, DANGLING],
    ['another END', ONE.replace('END CERTIFICATE', 'END KEY'), DANGLING],
    ['no block at all', 'MIIB', DANGLING],
    ['a key', ONE + KEY, 'block 2 is not a CERTIFICATE'],
    ['revocations', ONE + NONSENSE.replaceAll('CERTIFICATE', 'X509 CRL'), 'block 2 is not a CERTIFICATE'],
  ])('with %s is invalid', (_, pem, why) => {
    expect(readCaBundle(pem)).toEqual({ is: 'invalid', why });
  });

  it('is cached, and evicted after many others', () => {
    const trust = cachedCaBundles();
    const first = trust(ONE);
    for (let at = 0; at < 200; at++) trust(`${at}`);
    expect(trust(ONE)).toBe(first);
    for (let at = 0; at < 300; at++) trust(`${at}`);
    expect(trust(ONE)).not.toBe(first);
    expect(trust(ONE)).toEqual(first);
  });
});
