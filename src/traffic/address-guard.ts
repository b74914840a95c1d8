import { containsAddress, familyOf, isAddressOrRange, rangesOf } from '../api/ip.ts';
import type { Why } from '../api/problem.ts';

/** Decides to which addresses traffic may be sent; each returns why it may not, and undefined where it may. */
export type AddressGuard = {
  /** For an address in a tailnet, in any spelling. */
  readonly meshProblem: (meshIP: string) => Why | undefined;
  /** For a host outside of the tailnets, in lower case, with these addresses. */
  readonly targetProblem: (host: string, addresses: readonly string[]) => Why | undefined;
};

export type GuardOptions = {
  /** Host names, addresses and CIDRs that externalTarget may name although they are not public. */
  readonly allow: readonly string[];
  /** Addresses and CIDRs that get no traffic, whatever is allowed. */
  readonly refuse: readonly string[];
  /** Host names and addresses of the API server. */
  readonly apiServer: readonly string[];
};

/** Ranges that no configuration allows: the machine of Envoy itself, its link, and metadata services. */
const NEVER: Readonly<Record<string, readonly string[]>> = {
  'an unspecified address': ['0.0.0.0/8', '::/128'],
  'a loopback address': ['127.0.0.0/8', '::1/128'],
  'a link-local address': ['169.254.0.0/16', 'fe80::/10'],
  'a multicast address': ['224.0.0.0/4', 'ff00::/8'],
  'the broadcast address': ['255.255.255.255/32'],
  'the address of a metadata service': [
    '100.100.100.200/32',
    '168.63.129.16/32',
    '192.0.0.192/32',
    'fd00:ec2::/32',
    'fd20:ce::254/128',
  ],
};

/** The ranges of IANA's registry of special addresses that are not global; of IPv6, what lies in 2000::/3. */
const SPECIAL = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
];

/**
 * Creates the guard. The API server and what the configuration refuses never get traffic. Each address of an externalTarget
 * must also be public, or be allowed by its host, itself, or a CIDR; and some are never allowed.
 */
export function createGuard({ allow, refuse, apiServer }: GuardOptions): AddressGuard {
  const hosts = new Set(allow.map(entry => entry.toLowerCase()));
  const allowed = rangesOf(allow.filter(isAddressOrRange));
  const serverHosts = new Set(apiServer.map(entry => entry.toLowerCase()));
  const server = rangesOf(apiServer.filter(isAddressOrRange));
  const refused = refuse.map(text => ({ text, ranges: rangesOf([text]) }));
  const whyRefused = (address: string) => {
    if (containsAddress(server, address)) return 'an address of the API server';
    const found = refused.find(({ ranges }) => containsAddress(ranges, address));
    return found && `in ${found.text} of REFUSED_ADDRESSES`;
  };
  const meshProblem: AddressGuard['meshProblem'] = meshIP => {
    const why = whyRefused(meshIP);
    return why === undefined
      ? undefined
      : { text: `meshIP ${meshIP} is ${why}`, fix: 'name a device of the tailnet' };
  };
  const targetProblem: AddressGuard['targetProblem'] = (host, addresses) => {
    const fix = 'name another service';
    if (serverHosts.has(host)) return { text: `${host} is the API server`, fix };
    const problems = addresses.flatMap((address): readonly Why[] => {
      const named = address === host ? address : `${address}, an address of ${host},`;
      const what = whyRefused(address) ?? neverAllowed(address);
      if (what !== undefined) return [{ text: `${named} is ${what}, which is never allowed`, fix }];
      if (isPublic(address) || hosts.has(host) || containsAddress(allowed, address)) return [];
      const allowing = `add ${host} or a CIDR with the address to EXTERNAL_TARGETS_ALLOW`;
      return [{ text: `${named} is not public`, fix: allowing }];
    });
    return problems[0];
  };
  return { meshProblem, targetProblem };
}

/** The guard where nothing is configured. */
export const DEFAULT_GUARD = createGuard({ allow: [], refuse: [], apiServer: [] });

const neverRanges = Object.entries(NEVER).map(([what, texts]) => ({ what, ranges: rangesOf(texts) }));

function neverAllowed(address: string): string | undefined {
  if (familyOf(address) === undefined) return 'an IPv4-mapped address';
  return neverRanges.find(({ ranges }) => containsAddress(ranges, address))?.what;
}

const special = rangesOf(SPECIAL);
const global = rangesOf(['0.0.0.0/0', '2000::/3']);

function isPublic(address: string): boolean {
  return containsAddress(global, address) && !containsAddress(special, address);
}
