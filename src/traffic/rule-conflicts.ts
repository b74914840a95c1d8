import type { Candidate, Filtered } from './resolve-backend-ref.ts';
import { addressText } from '../api/socket-address.ts';
import { unusedEndpoint } from './unused.ts';
import type { UnusedBackend } from './unused.ts';
import { defaultProtocol } from './upstream-protocol.ts';
import { MAX_TLS_BYTES, MAX_TLS_SETTINGS, tlsKey } from './upstream-tls.ts';
import type { ReadCaBundle } from './upstream-tls.ts';

/**
 * Keeps the candidates with a valid CA bundle or none, and gives equal bundles the same text. No more is read than fits
 * into a cluster.
 */
export function withValidCaBundles(candidates: readonly Candidate[], readCaBundle: ReadCaBundle): Filtered {
  const kept: Candidate[] = [];
  const unused: UnusedBackend[] = [];
  const seen = new Set<string>();
  let bytes = 0;
  for (const candidate of candidates) {
    const { resolved } = candidate;
    const { tls } = resolved;
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
    const bundle = readCaBundle(tls.ca);
    if (bundle.is === 'invalid') unused.push(unusedEndpoint.invalidCertificate(candidate, bundle.why));
    else kept.push({ ...candidate, resolved: { ...resolved, tls: { ...tls, ca: bundle.pem } } });
  }
  return { kept, unused };
}

/**
 * In a rule with Services or Backends: keeps the candidates with the default protocol of the route, because one cluster
 * has one protocol, and these backends have that one as far as is known.
 */
export function withDefaultProtocol(candidates: readonly Candidate[]): Filtered {
  const isDefault = ({ backendRef, protocol }: Candidate) =>
    protocol === defaultProtocol(backendRef.route.kind);
  const others = candidates.filter(each => !isDefault(each));
  return {
    kept: candidates.filter(isDefault),
    unused: others.map(each =>
      unusedEndpoint.conflictWithOtherBackends(each, defaultProtocol(each.backendRef.route.kind)),
    ),
  };
}

/**
 * Keeps one candidate per address and port, as Envoy does, and one per externalTarget. It is the first whose object is not being deleted, so that a
 * replacement of a deleted object gets the traffic. Where an address occurs in several tailnets, none is kept: Envoy would
 * send traffic for one tailnet into another.
 */
export function withoutDuplicateAddresses(candidates: readonly Candidate[]): Filtered {
  const { kept, unused } = oneOfEachGroup(candidates, addressOf, duplicatesOf);
  const targets = oneOfEachGroup(kept, targetOf, group =>
    othersOf(group).map(([each, first]) => [each, unusedEndpoint.duplicateTarget(each, first)]),
  );
  return { kept: targets.kept, unused: [...unused, ...targets.unused] };
}

function addressOf({ resolved: { endpoint } }: Candidate): string | undefined {
  return endpoint.externalTarget === undefined ? addressText(endpoint) : undefined;
}

function targetOf({ resolved: { endpoint } }: Candidate): string | undefined {
  return endpoint.externalTarget?.toLowerCase();
}

/** Keeps one candidate per server name and port, because the proxy would dial the same device for all of them. */
export function withoutDuplicateNames(candidates: readonly Candidate[]): Filtered {
  return oneOfEachGroup(candidates, serverNameAndPort, group =>
    othersOf(group).map(([each, first]) => [each, unusedEndpoint.duplicateName(each, first)]),
  );
}

/** Undefined where the endpoint is dialled by its address. */
function serverNameAndPort({ resolved: { endpoint, tls } }: Candidate): string | undefined {
  if (tls?.serverName.is !== 'per-endpoint' || endpoint.externalTarget !== undefined) return undefined;
  return `${endpoint.meshFQDN.toLowerCase()}:${endpoint.port}`;
}

type Dropped = readonly (readonly [Candidate, UnusedBackend])[];

function oneOfEachGroup(
  candidates: readonly Candidate[],
  groupOf: (candidate: Candidate) => string | undefined,
  dropFrom: (group: readonly Candidate[]) => Dropped,
): Filtered {
  if (candidates.length < 2) return { kept: candidates, unused: [] };
  const groups = new Map<string, Candidate[]>();
  let ungrouped = 0;
  for (const candidate of candidates) {
    const key = groupOf(candidate);
    const group = key === undefined ? undefined : groups.get(key);
    if (group) group.push(candidate);
    else if (key === undefined) ungrouped++;
    else groups.set(key, [candidate]);
  }
  if (groups.size + ungrouped === candidates.length) return { kept: candidates, unused: [] };
  const unused = new Map([...groups.values()].flatMap(dropFrom));
  return { kept: candidates.filter(each => !unused.has(each)), unused: [...unused.values()] };
}

/** All of a group but the one that is used, each paired with that one. */
function othersOf(group: readonly Candidate[]): readonly (readonly [Candidate, Candidate])[] {
  const first = group.find(isNotDeleting) ?? group[0];
  return first ? group.filter(each => each !== first).map(each => [each, first]) : [];
}

function duplicatesOf(group: readonly Candidate[]): Dropped {
  const others = othersOf(group);
  const inOtherTailnet = others.find(([each, first]) => !isSameTailnet(each, first));
  if (!inOtherTailnet) {
    return others.map(([each, first]) => [each, unusedEndpoint.duplicateAddress(each, first)]);
  }
  const [elsewhere, first] = inOtherTailnet;
  return group.map(each => {
    const other = isSameTailnet(each, first) ? elsewhere : first;
    return [each, unusedEndpoint.addressInTwoTailnets(each, other)];
  });
}

function isNotDeleting({ resolved }: Candidate): boolean {
  return resolved.object.metadata.deletionTimestamp === undefined;
}

function isSameTailnet(a: Candidate, b: Candidate): boolean {
  return a.resolved.tailnet.metadata.name === b.resolved.tailnet.metadata.name;
}

/** Keeps the candidates with the protocol of the first, because one cluster has one protocol. */
export function withSameProtocol(candidates: readonly Candidate[]): Filtered {
  const [first] = candidates;
  if (!first) return { kept: [], unused: [] };
  const others = candidates.filter(({ protocol }) => protocol !== first.protocol);
  return {
    kept: candidates.filter(({ protocol }) => protocol === first.protocol),
    unused: others.map(each => unusedEndpoint.protocolConflict(each, first)),
  };
}

/** Keeps the candidates whose TLS settings fit into a cluster, in their order. */
export function withinTlsLimits(candidates: readonly Candidate[]): Filtered {
  const kept: Candidate[] = [];
  const unused: UnusedBackend[] = [];
  const settings = new Set<string>();
  let bytes = 0;
  for (const candidate of candidates) {
    const { tls } = candidate.resolved;
    const key = tls && tlsKey(tls);
    if (key === undefined || settings.has(key)) kept.push(candidate);
    else if (settings.size === MAX_TLS_SETTINGS)
      unused.push(unusedEndpoint.tooManyTlsSettings(candidate, MAX_TLS_SETTINGS));
    else if (bytes + key.length > MAX_TLS_BYTES)
      unused.push(unusedEndpoint.tooManyTlsBytes(candidate, MAX_TLS_BYTES));
    else {
      kept.push(candidate);
      settings.add(key);
      bytes += key.length;
    }
  }
  return { kept, unused };
}
