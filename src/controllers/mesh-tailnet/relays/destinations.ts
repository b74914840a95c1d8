import { formatDestinations } from '../../../api/front.ts';
import type { Destination } from '../../../api/front.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { refOf } from '../../../api/key.ts';
import type { Ref } from '../../../api/key.ts';
import { endpointsOf } from '../../../api/objects/endpoints.ts';
import { isRelayed } from '../../../api/objects/references.ts';
import { Derived } from '../../../store/derived.ts';
import { groupsFrom } from '../../../store/groups.ts';
import { endpointsByTailnet } from '../../../store/indexes.ts';
import type { Tracking } from '../../../store/tracking.ts';
import type { TrafficValues } from '../../../store/traffic/values.ts';
import { DESTINATIONS_LENGTH } from '../../../api/shares.ts';
import { isAllowed } from '../../../traffic/permissions.ts';
import { oldestOf } from '../../../api/objects/oldest.ts';
import type { TrafficResources } from '../../../traffic/traffic-resources.ts';
import { meshNameProblem } from '../../../traffic/upstream-tls.ts';

/** Where Envoys and health checks of a tailnet may connect to by the front of its mesh pods. */
export type TailnetDestinations = {
  /** As the ConfigMap has it. */
  readonly text: string;
  /** The namespaces that declare more than their share. */
  readonly cut: readonly string[];
  /** All of them. */
  readonly declared: DeclaredLines;
};

/** Lines of destinations, by the namespace that declares them. */
type DeclaredLines = ReadonlyMap<string, readonly string[]>;

/** By the domain of a tailnet: what its MeshEndpoints declare. An edit derives the lines of a group of them, and joins all lines. */
export function destinationsFrom(
  tracking: Tracking,
  { reads, settingsResources }: Pick<TrafficValues, 'reads' | 'settingsResources'>,
): Derived<TailnetDestinations> {
  const groups = groupsFrom(tracking, ['MeshEndpoints'], (domain, run) =>
    run.members(endpointsByTailnet, domain),
  );
  const parts = new Derived<DeclaredLines>(
    tracking,
    reads,
    (place, run) => {
      const [domain = ''] = place.split(' ');
      const resources = settingsResources(run);
      const tailnet = oldestOf(resources.tailnets(domain));
      const lines = new Map<string, string[]>();
      for (const key of tailnet ? run.value(groups.keys, place) : []) {
        const object = run.exceptStatus.get(refOf(key) as Ref<'MeshEndpoints'>);
        const { namespace = '', deletionTimestamp } = object?.metadata ?? {};
        if (!object || !tailnet || deletionTimestamp !== undefined) continue;
        if (!isAllowed(resources, tailnet.spec.allowedNamespaces, namespace)) continue;
        const declared = formatDestinations(destinationsOf(object, resources)).split('\n').slice(0, -1);
        const ofNamespace = lines.get(namespace);
        if (ofNamespace) ofNamespace.push(...declared);
        else lines.set(namespace, declared);
      }
      return lines;
    },
    haveSameLines,
  );
  return new Derived<TailnetDestinations>(
    tracking,
    [],
    (domain, run) =>
      withinLength(
        joined(run.value(groups.of, domain).map(({ at }) => run.value(parts, `${domain} ${at}`))),
        DESTINATIONS_LENGTH.most,
      ),
    (one, other) => one.text === other.text && haveSameLines(one.declared, other.declared),
  );
}

/** As they are where they have this many characters at most; else with less for the namespaces that declare the most. */
export function destinationsWithin(found: TailnetDestinations, length: number): TailnetDestinations {
  return found.text.length <= length ? found : withinLength(found.declared, length);
}

/** The devices that an object declares, each with its ports. Envoys dial a device also by its name in the tailnet. */
function destinationsOf(object: Kinds['MeshEndpoints'], { guard }: TrafficResources): readonly Destination[] {
  const devices = new Map<string, Destination & { readonly ports: number[] }>();
  for (const endpoint of endpointsOf(object)) {
    const { meshIP, meshFQDN, port, externalTarget } = endpoint;
    if (externalTarget !== undefined || isRelayed(endpoint) || guard.meshProblem(meshIP) !== undefined)
      continue;
    const isNamed = meshNameProblem(endpoint, object.spec.tailnet) === undefined;
    const place = `${meshIP} ${isNamed ? meshFQDN : ''}`;
    const known = devices.get(place);
    if (known) known.ports.push(port);
    else devices.set(place, { address: meshIP, name: isNamed ? meshFQDN : undefined, ports: [port] });
  }
  return [...devices.values()];
}

function joined(parts: readonly DeclaredLines[]): DeclaredLines {
  const lines = new Map<string, string[]>();
  for (const part of parts)
    for (const [namespace, more] of part) {
      const known = lines.get(namespace);
      if (known) known.push(...more);
      else lines.set(namespace, [...more]);
    }
  return lines;
}

/** All lines where they fit. Else no namespace has more than what is left for each, and those that want less have all. */
function withinLength(declared: DeclaredLines, total: number): TailnetDestinations {
  const lengths = new Map([...declared].map(([namespace, each]) => [namespace, lengthOf(each)]));
  const share = shareOf([...lengths.values()], total);
  const cut = [...lengths].flatMap(([namespace, length]) => (length > share ? [namespace] : [])).sort();
  const kept = [...declared].flatMap(([namespace, each]) =>
    cut.includes(namespace) ? within(each, share) : each,
  );
  return {
    declared,
    text: [...new Set(kept)]
      .sort()
      .map(line => `${line}\n`)
      .join(''),
    cut,
  };
}

function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length + 1, 0);
}

/** The most that each may have so that all together have no more than a total. */
function shareOf(lengths: readonly number[], total: number): number {
  let left = total;
  for (const [index, length] of [...lengths].sort((one, other) => one - other).entries()) {
    const share = left / (lengths.length - index);
    if (length > share) return share;
    left -= length;
  }
  return Infinity;
}

/** The first lines that together have no more than this many characters. */
export function within(lines: readonly string[], share: number): readonly string[] {
  let length = 0;
  return lines.filter(line => (length += line.length + 1) <= share);
}

function haveSameLines(one: DeclaredLines, other: DeclaredLines): boolean {
  if (one.size !== other.size) return false;
  return [...one].every(([namespace, lines]) => lines.join('\n') === other.get(namespace)?.join('\n'));
}
