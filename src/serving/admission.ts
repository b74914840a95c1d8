import type { BlockList } from 'node:net';
import { canonicalIP, containsAddress, familyOf, rangesOf } from '../api/ip.ts';
import { destinationText } from '../api/front.ts';
import type { Callers, Destinations } from '../api/front.ts';

/** Whom a front serves, and toward what; undefined where it serves all. */
export type Admitted = {
  readonly callers: Callers | undefined;
  readonly destinations: Destinations | undefined;
};

/** The host and port of a CONNECT request. */
export type Authority = { readonly host: string; readonly port: number };

/** How long a destination is served after the list has lost it: Envoys may learn later that they must not use it. */
const LEAVING_MS = 10_000;

/** Decides whom a front serves. It serves no caller before the first update. */
export class Admission {
  #admitted: Admitted | undefined;
  #ranges: BlockList | undefined;
  /** Until when destinations are served that the list has lost. */
  readonly #leaving = new Map<string, number>();

  update(admitted: Admitted, now: number): void {
    for (const [each, until] of this.#leaving) if (until <= now) this.#leaving.delete(each);
    for (const each of this.#admitted?.destinations ?? [])
      if (admitted.destinations?.has(each) === false) this.#leaving.set(each, now + LEAVING_MS);
    this.#admitted = admitted;
    this.#ranges = admitted.callers && rangesOf(admitted.callers.ranges);
  }

  servesCaller(address: string): boolean {
    if (!this.#admitted) return false;
    const { callers } = this.#admitted;
    if (!callers) return true;
    const isInRange = this.#ranges !== undefined && containsAddress(this.#ranges, address);
    return callers.addresses.has(canonicalIP(address)) || isInRange;
  }

  servesDestination({ host, port }: Authority, now: number): boolean {
    if (!this.#admitted) return false;
    const text = destinationText(host, port);
    return (this.#admitted.destinations?.has(text) ?? true) || (this.#leaving.get(text) ?? now) > now;
  }
}

/**
 * Parses the authority of a CONNECT request; undefined where it is none. An IPv4-mapped address and a name with a final dot stay
 * what they are, which no destination is.
 */
export function parseAuthority(text: string): Authority | undefined {
  const [, bracketed, bare = '', digits = ''] =
    /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([-A-Za-z0-9._]{1,253})):([1-9]\d{0,4})$/.exec(text) ?? [];
  const host = bracketed ?? bare;
  const port = Number(digits);
  if (host === '' || port > 65_535) return undefined;
  if (bracketed !== undefined && familyOf(bracketed) !== 'ipv6') return undefined;
  return { host, port };
}
