import type { Candidate, Sifted } from './resolve-backend-ref.ts';
import type { ReadTrust } from './certificates.ts';
import type { Unused } from './rule.ts';
import { usualSpeech } from './upstream-protocol.ts';
import { MOST_TLS_BYTES, MOST_TLS_SETTINGS, tlsText } from './upstream-tls.ts';
import { refuseEndpoint } from './unused.ts';

/** Keeps those that Envoy speaks to as it does to the first. */
export function withOneSpeech(candidates: readonly Candidate[]): Sifted {
  const [first] = candidates;
  if (!first || candidates.every(({ speech }) => speech === first.speech)) {
    return { kept: candidates, unused: [] };
  }
  const others = candidates.filter(({ speech }) => speech !== first.speech);
  return {
    kept: candidates.filter(({ speech }) => speech === first.speech),
    unused: others.map(other => refuseEndpoint.protocolConflict(other, first)),
  };
}

/**
 * Keeps those that are spoken to as the kind of route is usually: backends of others in the rule are, as far as we can
 * know, and what a cluster speaks it speaks to all of its endpoints.
 */
export function withUsualSpeech(candidates: readonly Candidate[]): Sifted {
  const isUsual = ({ at, speech }: Candidate) => speech === usualSpeech(at.route.kind);
  const unusual = candidates.filter(each => !isUsual(each));
  return {
    kept: candidates.filter(isUsual),
    unused: unusual.map(each => refuseEndpoint.conflictWithOthers(each, usualSpeech(each.at.route.kind))),
  };
}

/** Keeps those whose TLS settings are among the first, as many and as big as one cluster can have. */
export function withFewTlsSettings(candidates: readonly Candidate[]): Sifted {
  const kept: Candidate[] = [];
  const unused: Unused[] = [];
  const settings = new Set<string>();
  let bytes = 0;
  for (const candidate of candidates) {
    const { tls } = candidate.usable;
    const text = tls && tlsText(tls);
    if (text === undefined || settings.has(text)) kept.push(candidate);
    else if (settings.size === MOST_TLS_SETTINGS)
      unused.push(refuseEndpoint.tooManyTlsSettings(candidate, MOST_TLS_SETTINGS));
    else if (bytes + text.length > MOST_TLS_BYTES)
      unused.push(refuseEndpoint.tooManyTlsBytes(candidate, MOST_TLS_BYTES));
    else {
      kept.push(candidate);
      settings.add(text);
      bytes += text.length;
    }
  }
  return { kept, unused };
}

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
