import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/api/problem.ts';
import { createGuard } from '../../src/traffic/address-guard.ts';
import type { GuardOptions } from '../../src/traffic/address-guard.ts';

/** The problems of a guard, as users read them. */
function guardWith(options: GuardOptions) {
  const { meshProblem, targetProblem } = createGuard(options);
  return {
    meshProblem: (meshIP: string) => textOf(meshProblem(meshIP)),
    targetProblem: (host: string, addresses: readonly string[]) => textOf(targetProblem(host, addresses)),
  };
}

function textOf(why: ReturnType<ReturnType<typeof createGuard>['meshProblem']>): string | undefined {
  return why && formatProblem(why);
}

const { targetProblem: strict } = guardWith({
  allow: [],
  refuse: [],
  apiServer: ['10.96.0.1', 'api.cluster.example', '8.8.4.4'],
});
const { targetProblem: everything } = guardWith({
  refuse: [],
  allow: ['0.0.0.0/0', '::/0', '127.0.0.1', '169.254.169.254/32', 'evil.example.com', '10.96.0.1/32'],
  apiServer: ['10.96.0.1'],
});

describe('the guard of externalTargets', () => {
  it.each(['8.8.8.8', '1.1.1.1', '223.255.255.255', '2606:4700::1111', '64:ff9b::808:808'])(
    'allows the public address %s',
    address => {
      expect(strict('db.example.com', [address])).toBeUndefined();
    },
  );

  it.each([
    ...['10.0.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', '192.0.0.1', '192.0.2.1', '198.18.0.1'],
    ...['198.51.100.1', '203.0.113.1', '192.88.99.1', '240.0.0.1', 'fd00::1', 'fec0::1', '2001:db8::1'],
    ...[
      '2002:808:808::1',
      '2001::1',
      '3fff::1',
      '64:ff9b::a00:1',
      '64:ff9b:1::808:808',
      '::808:808',
      '4000::1',
    ],
  ])('refuses %s, which is not public, unless a CIDR allows it', address => {
    expect(strict('db.example.com', [address])).toBe(
      `${address}, an address of db.example.com, is not public: add db.example.com or a CIDR with the address to EXTERNAL_TARGETS_ALLOW`,
    );
    expect(everything('db.example.com', [address])).toBeUndefined();
  });

  it.each([
    ['127.0.0.1', 'a loopback address'],
    ['127.255.255.254', 'a loopback address'],
    ['::1', 'a loopback address'],
    ['64:ff9b::7f00:1', 'a loopback address'],
    ['0.0.0.0', 'an unspecified address'],
    ['0.1.2.3', 'an unspecified address'],
    ['::', 'an unspecified address'],
    ['169.254.169.254', 'a link-local address'],
    ['169.254.170.2', 'a link-local address'],
    ['64:ff9b::a9fe:a9fe', 'a link-local address'],
    ['fe80::1', 'a link-local address'],
    ['224.0.0.1', 'a multicast address'],
    ['239.255.255.255', 'a multicast address'],
    ['ff02::1', 'a multicast address'],
    ['255.255.255.255', 'the broadcast address'],
    ['100.100.100.200', 'the address of a metadata service'],
    ['168.63.129.16', 'the address of a metadata service'],
    ['192.0.0.192', 'the address of a metadata service'],
    ['fd00:ec2::254', 'the address of a metadata service'],
    ['fd20:ce::254', 'the address of a metadata service'],
    ['::ffff:127.0.0.1', 'an IPv4-mapped address'],
    ['::ffff:7f00:1', 'an IPv4-mapped address'],
    ['::ffff:169.254.169.254', 'an IPv4-mapped address'],
    ['::ffff:8.8.8.8', 'an IPv4-mapped address'],
    ['10.96.0.1', 'an address of the API server'],
    ['64:ff9b::a60:1', 'an address of the API server'],
  ])('never allows %s: it is %s', (address, what) => {
    const message = `${address}, an address of evil.example.com, is ${what}, which is never allowed: name another service`;
    expect(everything('evil.example.com', ['8.8.8.8', address])).toBe(message);
    expect(strict('evil.example.com', [address])).toBe(message);
  });

  it('refuses the host and a public address of the API server', () => {
    expect(strict('api.cluster.example', ['8.8.8.8'])).toBe(
      'api.cluster.example is the API server: name another service',
    );
    expect(strict('8.8.4.4', ['8.8.4.4'])).toBe('8.8.4.4 is the API server: name another service');
    expect(strict('db.example.com', ['8.8.4.4'])).toContain('an address of the API server');
  });

  it('allows what is listed by host, address and CIDR, and nothing beside it', () => {
    const allow = ['DB.corp.example', '10.1.2.3', '10.2.0.0/16', 'fd12::/16'];
    const { targetProblem: guard } = guardWith({ allow, refuse: [], apiServer: [] });
    expect(guard('db.corp.example', ['10.9.9.9', 'fd99::1'])).toBeUndefined();
    expect(
      guard('other.example', ['10.1.2.3', '10.2.255.255', 'fd12:1::1', '64:ff9b::a02:1']),
    ).toBeUndefined();
    expect(guard('a.db.corp.example', ['10.9.9.9'])).toContain('10.9.9.9');
    expect(guard('other.example', ['10.2.0.1', '10.1.2.4'])).toContain('10.1.2.4');
    expect(guard('10.1.2.4', ['10.1.2.4'])).toBe(
      '10.1.2.4 is not public: add 10.1.2.4 or a CIDR with the address to EXTERNAL_TARGETS_ALLOW',
    );
    expect(guard('other.example', ['fd13::1'])).toContain('fd13::1');
  });
});

describe('the guard of addresses in a tailnet', () => {
  const { meshProblem, targetProblem } = guardWith({
    allow: ['0.0.0.0/0', '::/0'],
    refuse: ['100.64.0.0/12', 'fd7a:115c:a1e0:ab::/64', '100.100.0.7'],
    apiServer: ['100.96.0.1', 'api.cluster.example', 'FD7A:115C:A1E0:0000::0001'],
  });

  it.each([
    ...['100.96.0.1', '::ffff:100.96.0.1', '::FFFF:6460:1'],
    ...['fd7a:115c:a1e0::1', 'fd7a:115c:a1e0:0:0:0:0:1', 'FD7A:115C:A1E0:0000:0000:0000:0000:0001'],
    'fd7a:115c:a1e0::0.0.0.1',
  ])('refuses %s, which is the API server', address => {
    expect(meshProblem(address)).toBe(
      `meshIP ${address} is an address of the API server: name a device of the tailnet`,
    );
  });

  it.each([
    ['100.64.0.0', '100.64.0.0/12'],
    ['100.79.255.255', '100.64.0.0/12'],
    ['::ffff:100.64.0.1', '100.64.0.0/12'],
    ['FD7A:115C:A1E0:00AB::1', 'fd7a:115c:a1e0:ab::/64'],
    ['100.100.0.7', '100.100.0.7'],
  ])('refuses %s, which the configuration refuses, also as an externalTarget', (address, range) => {
    const why = `in ${range} of REFUSED_ADDRESSES`;
    expect(meshProblem(address)).toBe(`meshIP ${address} is ${why}: name a device of the tailnet`);
    expect(targetProblem('db.example.com', [address])).toBe(
      `${address}, an address of db.example.com, is ${why}, which is never allowed: name another service`,
    );
  });

  it.each(['100.96.0.2', '100.80.0.0', 'fd7a:115c:a1e0:ac::1', 'fd7a:115c:a1e0::2', '100.100.0.8'])(
    'lets %s have traffic',
    address => {
      expect(meshProblem(address)).toBeUndefined();
    },
  );
});
