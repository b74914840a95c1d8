import { describe, expect, it } from 'vitest';
import { formatTrust, parseTrust } from '../../src/api/trust.ts';
import type { Trust } from '../../src/api/trust.ts';
import { CERTIFICATE, OTHER_CERTIFICATE } from '../support/traffic/certificates.ts';

const trust: Trust = new Map([
  ['shop/ca/ca.crt', { is: 'found', pem: CERTIFICATE }],
  ['shop/other/ca.crt', { is: 'found', pem: OTHER_CERTIFICATE }],
  ['bank/ca/root.pem', { is: 'found', pem: CERTIFICATE, isOutdated: true }],
  ['bank//', { is: 'missing', reason: 'TooManyTlsSettings', why: { text: 'no room for others' } }],
  [
    'bank/none/ca.crt',
    {
      is: 'missing',
      reason: 'CertificateNotFound',
      why: { text: 'no ConfigMap bank/none', fix: 'create it' },
    },
  ],
]);

describe('the data of mesh-trust', () => {
  it('has everything that is trusted, and why other references have nothing', () => {
    expect(parseTrust(formatTrust(trust))).toEqual(new Map([...trust].sort()));
  });

  it('has equal certificates once, and does not depend on the order of references', () => {
    const data = formatTrust(trust);
    expect(Object.keys(data)).toHaveLength(3);
    expect(formatTrust(new Map([...trust].reverse()))).toEqual(data);
  });

  it('has no lines but one for each reference, whatever a message has', () => {
    const why = { text: 'one\nshop/ca/ca.crt CertificateNotFound two' };
    const data = formatTrust(new Map([['a/b/c', { is: 'missing', reason: 'InvalidCertificate', why }]]));
    expect([...parseTrust(data).keys()]).toEqual(['a/b/c']);
  });

  it('is readable as kubectl prints it, so it has no control characters but ends of lines', () => {
    const { references = '' } = formatTrust(trust);
    expect(references).toContain('bank/none/ca.crt CertificateNotFound no ConfigMap bank/none | create it\n');
    expect(references).not.toMatch(/[^\P{Cc}\n]/u);
  });

  it.each([
    ['without references', {}],
    ['with a hash of nothing', { references: 'a/b/c 0123\n' }],
    ['with the references as certificates', { references: 'a/b/c references\n' }],
    ['with an unknown reason', { references: 'a/b/c Forbidden why\n' }],
    ['with half a line', { references: 'a/b/c\n' }],
  ])('is nothing where it is damaged: %s', (_, data) => {
    expect(parseTrust(data)).toEqual(new Map());
  });
});
