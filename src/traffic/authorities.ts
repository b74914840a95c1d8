import type { Candidate, Sifted } from './candidates.ts';
import type { ReadTrust } from './certificates.ts';
import type { Unused } from './rule.ts';
import { MOST_TLS_BYTES } from './tls-settings.ts';
import { refuseEndpoint } from './unused.ts';

/**
 * Keeps those whose certificates, if they bring any, can be read, and gives all that bring the same ones the same text. No
 * more is read than a cluster can have.
 */
export function withReadableAuthorities(candidates: readonly Candidate[], trust: ReadTrust): Sifted {
  const kept: Candidate[] = [];
  const unused: Unused[] = [];
  const seen = new Set<string>();
  let bytes = 0;
  for (const candidate of candidates) {
    const { usable } = candidate;
    const { tls } = usable;
    if (tls?.ca === undefined) {
      kept.push(candidate);
      continue;
    }
    const added = seen.has(tls.ca) ? 0 : tls.ca.length;
    if (added > 0 && bytes + added > MOST_TLS_BYTES) {
      unused.push(refuseEndpoint.tooManyTlsBytes(candidate, MOST_TLS_BYTES));
      continue;
    }
    seen.add(tls.ca);
    bytes += added;
    const trusted = trust(tls.ca);
    if (trusted.is === 'broken') unused.push(refuseEndpoint.invalidCertificate(candidate, trusted.why));
    else kept.push({ ...candidate, usable: { ...usable, tls: { ...tls, ca: trusted.pem } } });
  }
  return { kept, unused };
}
