import { addressText } from './socket-address.ts';
import type { Candidate, Filtered } from './resolve-backend-ref.ts';
import type { UnusedBackend } from './rule.ts';
import { unusedEndpoint } from './unused.ts';

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
