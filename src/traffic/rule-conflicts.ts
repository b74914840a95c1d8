import type { Candidate, Filtered } from './resolve-backend-ref.ts';
import { MAX_TLS_BYTES, MAX_TLS_SETTINGS, tlsKey } from './upstream-tls.ts';
import type { ReadCaBundle } from './upstream-tls.ts';
import { unusedEndpoint } from './unused.ts';
import type { UnusedBackend } from './unused.ts';
import { defaultProtocol } from './upstream-protocol.ts';
import { addressText } from './socket-address.ts';

/**
 * Keeps one of those that have the same address and port, as Envoy does: the first, but for those of an object that is
 * being deleted, which get no new traffic and must not keep what takes their place from it. Where these lie in several tailnets, none
 * is kept: Envoy would send what is meant for one tailnet into another.
 */
export function withoutDuplicateAddresses(candidates: readonly Candidate[]): Filtered {
  return oneOfEachGroup(candidates, ({ resolved: usable }) => addressText(usable.endpoint), refusedOf);
}

/**
 * Keeps, in the same way, one of those that a proxy would be told by the same name and port: it would reach the same device
 * for all of them, whatever their addresses.
 */
export function withoutDuplicateNames(candidates: readonly Candidate[]): Filtered {
  return oneOfEachGroup(candidates, namePort, group =>
    others(group).map(([each, first]) => [each, unusedEndpoint.duplicateName(each, first)]),
  );
}

/** Only where its own name is sent as that of the server, an endpoint is reached by it. */
function namePort({ resolved: { endpoint, tls } }: Candidate): string | undefined {
  if (tls?.serverName.is !== 'per-endpoint') return undefined;
  return `${endpoint.meshFQDN.toLowerCase()}:${endpoint.port}`;
}

type Refused = readonly (readonly [Candidate, UnusedBackend])[];

function oneOfEachGroup(
  candidates: readonly Candidate[],
  placeOf: (candidate: Candidate) => string | undefined,
  refuse: (group: readonly Candidate[]) => Refused,
): Filtered {
  const groups = new Map<string, Candidate[]>();
  let alone = 0;
  for (const candidate of candidates) {
    const place = placeOf(candidate);
    const group = place === undefined ? undefined : groups.get(place);
    if (group) group.push(candidate);
    else if (place === undefined) alone++;
    else groups.set(place, [candidate]);
  }
  if (groups.size + alone === candidates.length) return { kept: candidates, unused: [] };
  const unused = new Map([...groups.values()].flatMap(refuse));
  return { kept: candidates.filter(each => !unused.has(each)), unused: [...unused.values()] };
}

/** All of a group but the one that is used, each with that one. */
function others(group: readonly Candidate[]): readonly (readonly [Candidate, Candidate])[] {
  const first = group.find(isStaying) ?? group[0];
  return first ? group.filter(each => each !== first).map(each => [each, first]) : [];
}

function refusedOf(group: readonly Candidate[]): Refused {
  const rest = others(group);
  const elsewhere = rest.find(([each, first]) => !isSameTailnet(each, first));
  if (!elsewhere) return rest.map(([each, first]) => [each, unusedEndpoint.duplicateAddress(each, first)]);
  const [far, first] = elsewhere;
  return group.map(each => {
    const other = isSameTailnet(each, first) ? far : first;
    return [each, unusedEndpoint.addressInTwoTailnets(each, other)];
  });
}

function isStaying({ resolved: usable }: Candidate): boolean {
  return usable.object.metadata.deletionTimestamp === undefined;
}

function isSameTailnet(a: Candidate, b: Candidate): boolean {
  return a.resolved.tailnet.metadata.name === b.resolved.tailnet.metadata.name;
}

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
