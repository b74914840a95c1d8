import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { ControlError } from '../../../src/control/control.ts';
import { isClearText } from '../../../src/controllers/mesh-tailnet/clear-text.ts';
import { authenticatedOf } from '../../../src/controllers/mesh-tailnet/authenticated.ts';
import { named } from '../../support/declared.ts';
import { meshTailnet } from '../../support/objects.ts';
import { resourceOf } from '../../support/store/resources.ts';

const CLEAR = 'the secret is sent in clear text';

/** The condition of a MeshTailnet whose control API has this URL, and the last error of it. */
function authenticatedBy(controlURL: string, error?: ControlError) {
  return authenticatedOf({
    tailnet: resourceOf(named(meshTailnet({ controlURL }), 'example')) as Kinds['MeshTailnet'],
    olderName: undefined,
    problem: undefined,
    origin: 'Secret mesh-oauth',
    secretVersion: '1',
    trimmed: [],
    view: {
      devices: [],
      isStale: false,
      lastSuccess: undefined,
      nextMs: 30_000,
      error,
      missing: new Map<string, number>(),
      expected: new Set<string>(),
      hasServices: undefined,
      token: undefined,
    },
    controlServer: { controlURL, ca: undefined },
    now: new Date(0),
  });
}

describe('what is sent to a control API', () => {
  it.each([
    'http://headscale.example.com',
    'http://headscale.example.com:8080/',
    'http://HEADSCALE.example.com.',
    'http://192.0.2.1',
    'http://172.32.0.1:8080',
    'http://[2001:db8::1]:8080',
    'http://[::ffff:10.0.0.1]',
    'http://svc.example.com',
    'http://localhost.example.com',
  ])('by %s can be read on the way', url => {
    expect(isClearText(url)).toBe(true);
  });

  it.each([
    'https://headscale.example.com',
    'https://192.0.2.1',
    'http://localhost:8080',
    'http://127.0.0.1:8080',
    'http://[::1]:8080',
    'http://10.1.2.3',
    'http://172.31.0.1',
    'http://192.168.1.1',
    'http://169.254.1.1',
    'http://100.64.0.1',
    'http://[fd7a:115c:a1e0::1]',
    'http://[fe80::1]',
    'http://[1.2]',
    'http://headscale',
    'http://headscale.mesh.svc',
    'http://headscale.mesh.svc.cluster.local.:8080',
    'http://headscale.mesh.svc.corp.example',
  ])('by %s cannot', url => {
    expect(isClearText(url)).toBe(false);
  });

  it('is reported where it can be read, in a condition that is True nevertheless', () => {
    const condition = authenticatedBy('http://headscale.example.com');
    expect(condition).toMatchObject({ status: 'True', reason: 'Authenticated' });
    expect(condition.message).toContain(CLEAR);
    expect(authenticatedBy('https://headscale.example.com').message).not.toContain(CLEAR);
  });

  it('is reported as well where the control API refuses it', () => {
    const condition = authenticatedBy('http://192.0.2.1', new ControlError('CredentialsInvalid', 'no'));
    expect(condition).toMatchObject({ status: 'False', reason: 'CredentialsInvalid' });
    expect(condition.message).toContain(CLEAR);
  });

  it('is refused with words of any length, of which no character is cut in two', () => {
    const error = new ControlError('CredentialsInvalid', '\u{1F6AB}'.repeat(3000));
    const { message } = authenticatedBy('https://headscale.example.com', error);
    expect(message).not.toMatch(/\p{Surrogate}/u);
    expect(Array.from(message)).toHaveLength(2000);
  });
});
