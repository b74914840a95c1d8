import { Resolver } from 'node:dns/promises';
import { isRecord } from '../../../api/json.ts';
import { canonicalIPv6 } from '../../../api/ip.ts';

/** The answer of DNS about a host. */
export type Answer =
  /** Sorted; never empty. */
  | { readonly is: 'found'; readonly addresses: readonly string[]; readonly ttlMs: number }
  | { readonly is: 'failed'; readonly why: string };

/** Looks up the addresses of hosts. */
export type Lookup = {
  readonly find: (host: string) => Promise<Answer>;
  /** Ends lookups in progress. */
  readonly close: () => void;
};

export type LookupOptions = {
  /** Those of the system if undefined. */
  readonly servers?: readonly string[] | undefined;
  readonly timeoutMs: number;
  /** How often a server that does not answer is queried. */
  readonly tries: number;
};

/**
 * Creates the lookup in DNS. Names are absolute: the search list and the hosts file of the system are not used. As for
 * the Backends of Envoy Gateway, IPv6 addresses are used only of hosts without an IPv4 address.
 */
export function createLookup({ servers, timeoutMs, tries }: LookupOptions): Lookup {
  const resolver = new Resolver({ timeout: timeoutMs, tries });
  if (servers) resolver.setServers(servers);
  const resolve4 = (host: string) => resolver.resolve4(host, { ttl: true });
  const resolve6 = (host: string) => resolver.resolve6(host, { ttl: true });
  return {
    find: async host => {
      const first = await answerOf(resolve4(host));
      return first.is === 'none' ? withoutNone(await answerOf(resolve6(host))) : first;
    },
    close: () => resolver.cancel(),
  };
}

type FamilyAnswer = Answer | { readonly is: 'none'; readonly why: string };

type Records = readonly { readonly address: string; readonly ttl: number }[];

async function answerOf(query: Promise<Records>): Promise<FamilyAnswer> {
  try {
    const records = await query;
    const addresses = records.map(({ address }) =>
      address.includes(':') ? canonicalIPv6(address) : address,
    );
    const ttlMs = Math.min(...records.map(({ ttl }) => ttl)) * 1000;
    if (addresses.length === 0) return { is: 'none', why: NO_ADDRESS };
    return { is: 'found', addresses: [...new Set(addresses)].sort(), ttlMs };
  } catch (error) {
    const code = isRecord(error) && typeof error['code'] === 'string' ? error['code'] : '';
    const why = REASONS[code] ?? `the lookup failed (${code})`;
    return { is: code === 'ENODATA' || code === 'ENOTFOUND' ? 'none' : 'failed', why };
  }
}

const NO_ADDRESS = 'the name has no address';

const REASONS: Readonly<Record<string, string>> = {
  EBADNAME: 'the name is malformed',
  ECONNREFUSED: 'no DNS server answers',
  ENODATA: NO_ADDRESS,
  ENOTFOUND: 'no such name',
  EREFUSED: 'the DNS server refuses the lookup',
  ESERVFAIL: 'the DNS server reports a failure (SERVFAIL)',
  ETIMEOUT: 'the DNS server did not answer in time',
};

function withoutNone(answer: FamilyAnswer): Answer {
  return answer.is === 'none' ? { is: 'failed', why: answer.why } : answer;
}
