import type { EnvoyClusterSettings } from '../../traffic/envoy-cluster-settings.ts';
import { encodeCheck } from './health-check.ts';
import { edsSource } from './eds-config.ts';
import { applyEdits, bytesField, bytesOf, Fields, isMessage, concat, messageOf, valuesOf } from '../wire.ts';
import type { Edit } from '../wire.ts';
import { isHttpOptions, isLeftToTls, newHttpOptions, withVersion } from './http-protocol-options.ts';
import type { HttpVersion } from './http-protocol-options.ts';
import {
  Cluster_CommonLbConfigSchema,
  Cluster_DiscoveryType as DiscoveryType,
  ClusterSchema,
} from '../proto/envoy/config/cluster/v3_pb.ts';
import { isOurMatch, matchOf, nameOfMatch, otherMatchOf, preambleOf, socketOf } from './transport-socket.ts';

/** The bytes of a cluster, as Envoy Gateway made it, made to have what it needs. */
export type MeshCluster = (cluster: Uint8Array, needs: EnvoyClusterSettings) => Uint8Array;

const {
  commonLbConfig: BALANCING,
  edsClusterConfig: EDS,
  healthChecks: CHECKS,
  transportSocket: SOCKET,
  transportSocketMatches: MATCHES,
  type: TYPE,
  typedExtensionProtocolOptions: OPTIONS,
} = ClusterSchema.field;

/** A type of cluster that an extension of Envoy has, in place of `type`. */
const CLUSTER_TYPE = 38;

/**
 * Makes the function that gives clusters what they need, with endpoints from `target`. What a policy can set is set only
 * where none has; fields that are not ours keep their bytes. The same comes of the same, and is left alone the next
 * time. A cluster that cannot be read, or does not follow EDS, is given back.
 */
export function meshClusters({ target }: { readonly target: string }): MeshCluster {
  const known = new WeakMap<EnvoyClusterSettings, Known>();
  return (cluster, needs) => {
    const { pieces, answers } = known.get(needs) ?? { pieces: piecesOf(needs, target), answers: [] };
    const answer = answers.find(({ given }) => areEqual(given, cluster));
    if (answer) return answer.made ?? cluster;
    const made = madeOf(cluster, needs, pieces, target);
    if (cluster.length > MOST_BYTES) return made;
    // A copy, since what is given is part of a request that is far bigger, and is not ours.
    const added = { given: Uint8Array.from(cluster), made: made === cluster ? undefined : made };
    known.set(needs, { pieces, answers: [added, ...answers].slice(0, MOST_ANSWERS) });
    return made;
  };
}

/** What has been made for some needs: most translations bring the same clusters again. */
type Known = { readonly pieces: Pieces; readonly answers: readonly Answer[] };
type Answer = { readonly given: Uint8Array; readonly made: Uint8Array | undefined };

/** Each cluster comes as Envoy Gateway made it, and again as it was answered. */
const MOST_ANSWERS = 2;
const MOST_BYTES = 16 * 1024;

function areEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && Buffer.compare(one, other) === 0;
}

function madeOf(
  cluster: Uint8Array,
  needs: EnvoyClusterSettings,
  pieces: Pieces,
  target: string,
): Uint8Array {
  if (!isMessage(cluster) || !followsEds(cluster)) return cluster;
  const socket = bytesOf(cluster, SOCKET.number);
  const preamble = socket && preambleOf(socket);
  const fields = preamble ? piecesOf(needs, target, preamble) : pieces;
  return assembled(cluster, needs, fields, otherMatches(cluster, needs, preamble));
}

function followsEds(cluster: Uint8Array): boolean {
  const fields = new Fields(cluster);
  let isEds = false;
  while (fields.next()) {
    if (fields.number === CLUSTER_TYPE) return false;
    if (fields.number === TYPE.number)
      isEds = fields.end === fields.valueStart + 1 && cluster[fields.valueStart] === DiscoveryType.EDS;
  }
  return isEds;
}

/** The fields that depend on the needs alone, and are the same in each translation. */
type Pieces = {
  readonly eds: Uint8Array;
  readonly socket?: Uint8Array;
  readonly matches: readonly Uint8Array[];
  readonly check?: Uint8Array;
};

function piecesOf(needs: EnvoyClusterSettings, target: string, preamble?: Uint8Array): Pieces {
  const { cluster, defaultSocket: socket, socketMatches: matches } = needs;
  const check = encodeCheck(needs);
  return {
    eds: bytesField(EDS.number, edsSource(cluster, target)),
    ...(socket && { socket: bytesField(SOCKET.number, socketOf(socket, preamble)) }),
    matches: matches.map(match => bytesField(MATCHES.number, matchOf(match, preamble))),
    ...(check && { check: bytesField(CHECKS.number, check) }),
  };
}

function assembled(
  cluster: Uint8Array,
  needs: EnvoyClusterSettings,
  { eds, socket, matches, check }: Pieces,
  others: readonly Uint8Array[],
): Uint8Array {
  const hasChecks = bytesOf(cluster, CHECKS.number) !== undefined;
  const edits: readonly (Edit | undefined)[] = [
    { number: EDS.number, replaces: all, fields: [eds] },
    check && !hasChecks ? { number: CHECKS.number, replaces: none, fields: [check] } : undefined,
    socket && { number: SOCKET.number, replaces: all, fields: [socket] },
    balancing(cluster),
    httpOptions(cluster, needs),
    socket && {
      number: MATCHES.number,
      replaces: isOurMatch,
      fields: [...matches, ...others],
    },
  ];
  return applyEdits(
    cluster,
    edits.filter(edit => edit !== undefined),
  );
}

/**
 * The sockets of other backends of the rule. Where a policy brings TLS to one, Envoy Gateway has made its socket, and has
 * named it by its place in the rule; a place may have changed before Envoy has the cluster in which it did.
 */
function otherMatches(
  cluster: Uint8Array,
  { otherSockets }: EnvoyClusterSettings,
  preamble: Uint8Array | undefined,
): readonly Uint8Array[] {
  if (otherSockets.length === 0) return [];
  const made = new Map(valuesOf(cluster, MATCHES.number, Infinity).map(match => [nameOfMatch(match), match]));
  const matches = otherSockets.map(({ name, envoyGatewayName }): [string, Uint8Array] => [
    name,
    bytesField(MATCHES.number, otherMatchOf(name, made.get(envoyGatewayName), preamble)),
  ]);
  return [...new Map(matches).values()];
}

const all = () => true;
const none = () => false;

/** Traffic goes to healthy endpoints only: Envoy would send it anywhere where half of them are not. */
function balancing(cluster: Uint8Array): Edit | undefined {
  const { number } = Cluster_CommonLbConfigSchema.field.healthyPanicThreshold;
  const settings = messageOf(cluster, BALANCING.number) ?? new Uint8Array();
  if (!isMessage(settings) || bytesOf(settings, number)) return undefined;
  const zero = bytesField(number, new Uint8Array());
  return {
    number: BALANCING.number,
    replaces: all,
    fields: [bytesField(BALANCING.number, concat([settings, zero]))],
  };
}

function httpOptions(cluster: Uint8Array, needs: EnvoyClusterSettings): Edit | undefined {
  const entry = bytesOf(cluster, OPTIONS.number, isHttpOptions);
  const version = versionOf(needs, entry);
  if (!version) return undefined;
  const options = entry ? withVersion(entry, version) : newHttpOptions(version);
  return { number: OPTIONS.number, replaces: isHttpOptions, fields: [bytesField(OPTIONS.number, options)] };
}

/**
 * Envoy speaks HTTP/1.1 where nothing is said, and asks for a version even where it passes on raw bytes. In a rule that
 * mixes ours with others, HTTP/2 wins, as it does between others.
 */
function versionOf(
  { protocol, otherSockets }: EnvoyClusterSettings,
  entry: Uint8Array | undefined,
): HttpVersion | undefined {
  if (protocol === 'HTTP/2') return protocol;
  if (!entry || protocol === 'UDP') return undefined;
  const isOurs = protocol === 'HTTP/1.1' && otherSockets.length === 0;
  return isOurs || isLeftToTls(entry) ? 'HTTP/1.1' : undefined;
}
