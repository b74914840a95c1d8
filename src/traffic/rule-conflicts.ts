import { addressText } from './socket-address.ts';
import type { Candidate, Sifted } from './resolve-backend-ref.ts';
import type { Unused } from './rule.ts';
import { refuseEndpoint } from './unused.ts';

/**
 * Keeps one of those that have the same address and port, as Envoy does: the first, but for those of an object that is
 * being deleted, which get no new traffic and must not keep what takes their place from it. Where these lie in several tailnets, none
 * is kept: Envoy would send what is meant for one tailnet into another.
 */
export function withoutDuplicates(candidates: readonly Candidate[]): Sifted {
  return oneOfEach(candidates, ({ usable }) => addressText(usable.endpoint), refusedOf);
}

/**
 * Keeps, in the same way, one of those that a proxy would be told by the same name and port: it would reach the same device
 * for all of them, whatever their addresses.
 */
export function withoutSameName(candidates: readonly Candidate[]): Sifted {
  return oneOfEach(candidates, namePort, group =>
    others(group).map(([each, first]) => [each, refuseEndpoint.duplicateName(each, first)]),
  );
}

/** Only where its own name is sent as that of the server, an endpoint is reached by it. */
function namePort({ usable: { endpoint, tls } }: Candidate): string | undefined {
  if (tls?.serverName.is !== 'per-endpoint') return undefined;
  return `${endpoint.meshFQDN.toLowerCase()}:${endpoint.port}`;
}

type Refused = readonly (readonly [Candidate, Unused])[];

function oneOfEach(
  candidates: readonly Candidate[],
  placeOf: (candidate: Candidate) => string | undefined,
  refuse: (group: readonly Candidate[]) => Refused,
): Sifted {
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
  if (!elsewhere) return rest.map(([each, first]) => [each, refuseEndpoint.duplicateAddress(each, first)]);
  const [far, first] = elsewhere;
  return group.map(each => {
    const other = isSameTailnet(each, first) ? far : first;
    return [each, refuseEndpoint.addressInTwoTailnets(each, other)];
  });
}

function isStaying({ usable }: Candidate): boolean {
  return usable.object.metadata.deletionTimestamp === undefined;
}

function isSameTailnet(a: Candidate, b: Candidate): boolean {
  return a.usable.tailnet.metadata.name === b.usable.tailnet.metadata.name;
}
