import type { Candidate, Filtered } from './resolve-backend-ref.ts';
import type { ReadCaBundle } from './certificates.ts';
import type { UnusedBackend } from './rule.ts';
import { defaultProtocol } from './upstream-protocol.ts';
import { MAX_TLS_BYTES, MAX_TLS_SETTINGS, tlsKey } from './upstream-tls.ts';
import { unusedEndpoint } from './unused.ts';

/** Keeps those that Envoy speaks to as it does to the first. */
export function withSameProtocol(candidates: readonly Candidate[]): Filtered {
  const [first] = candidates;
  if (!first || candidates.every(({ protocol }) => protocol === first.protocol)) {
    return { kept: candidates, unused: [] };
  }
  const others = candidates.filter(({ protocol }) => protocol !== first.protocol);
  return {
    kept: candidates.filter(({ protocol }) => protocol === first.protocol),
    unused: others.map(other => unusedEndpoint.protocolConflict(other, first)),
  };
}

/**
 * Keeps those that are spoken to as the kind of route is usually: backends of others in the rule are, as far as we can
 * know, and what a cluster speaks it speaks to all of its endpoints.
 */
export function withDefaultProtocol(candidates: readonly Candidate[]): Filtered {
  const isUsual = ({ at, protocol }: Candidate) => protocol === defaultProtocol(at.route.kind);
  const unusual = candidates.filter(each => !isUsual(each));
  return {
    kept: candidates.filter(isUsual),
    unused: unusual.map(each => unusedEndpoint.conflictWithOthers(each, defaultProtocol(each.at.route.kind))),
  };
}

/** Keeps those whose TLS settings are among the first, as many and as big as one cluster can have. */
export function withinTlsLimits(candidates: readonly Candidate[]): Filtered {
  const kept: Candidate[] = [];
  const unused: UnusedBackend[] = [];
  const settings = new Set<string>();
  let bytes = 0;
  for (const candidate of candidates) {
    const { tls } = candidate.resolved;
    const text = tls && tlsKey(tls);
    if (text === undefined || settings.has(text)) kept.push(candidate);
    else if (settings.size === MAX_TLS_SETTINGS)
      unused.push(unusedEndpoint.tooManyTlsSettings(candidate, MAX_TLS_SETTINGS));
    else if (bytes + text.length > MAX_TLS_BYTES)
      unused.push(unusedEndpoint.tooManyTlsBytes(candidate, MAX_TLS_BYTES));
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
export function withValidCaBundles(candidates: readonly Candidate[], trust: ReadCaBundle): Filtered {
  const kept: Candidate[] = [];
  const unused: UnusedBackend[] = [];
  const seen = new Set<string>();
  let bytes = 0;
  for (const candidate of candidates) {
    const { resolved: usable } = candidate;
    const { tls } = usable;
    if (tls?.ca === undefined) {
      kept.push(candidate);
      continue;
    }
    const added = seen.has(tls.ca) ? 0 : tls.ca.length;
    if (added > 0 && bytes + added > MAX_TLS_BYTES) {
      unused.push(unusedEndpoint.tooManyTlsBytes(candidate, MAX_TLS_BYTES));
      continue;
    }
    seen.add(tls.ca);
    bytes += added;
    const trusted = trust(tls.ca);
    if (trusted.is === 'invalid') unused.push(unusedEndpoint.invalidCertificate(candidate, trusted.why));
    else kept.push({ ...candidate, resolved: { ...usable, tls: { ...tls, ca: trusted.pem } } });
  }
  return { kept, unused };
}
