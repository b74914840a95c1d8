import type { EnvoyClusterSettings } from '../../traffic/settings/envoy-cluster-settings.ts';
import {
  Cluster_CommonLbConfigSchema,
  Cluster_DiscoveryType as DiscoveryType,
  ClusterSchema,
  OutlierDetectionSchema,
} from '../proto/envoy/config/cluster/v3_pb.ts';
import {
  applyEdits,
  bytesField,
  bytesOf,
  concat,
  Fields,
  isMessage,
  messageOf,
  valuesOf,
  varint,
  WIRE_TYPES,
} from '../wire.ts';
import type { Edit } from '../wire.ts';
import { encodeEdsConfig } from './eds-config.ts';
import { encodeHealthCheck } from './health-check.ts';
import { encodeHttpOptions, isAutoHttp, isHttpOptions, withHttpVersion } from './http-protocol-options.ts';
import type { HttpVersion } from './http-protocol-options.ts';
import {
  encodeOtherSocketMatch,
  encodeSocketMatch,
  encodeTransportSocket,
  isOurMatch,
  nameOfMatch,
  proxyProtocolOf,
} from './transport-socket.ts';
import { udpSessions } from './udp-sessions.ts';

/** Sets what a cluster of Envoy Gateway needs to reach mesh endpoints; returns the cluster itself if nothing changes. */
export type EditEnvoyCluster = (cluster: Uint8Array, settings: EnvoyClusterSettings) => Uint8Array;

const {
  commonLbConfig: COMMON_LB,
  edsClusterConfig: EDS,
  healthChecks: HEALTH_CHECKS,
  outlierDetection: OUTLIER_DETECTION,
  transportSocket: SOCKET,
  transportSocketMatches: SOCKET_MATCHES,
  type: TYPE,
  typedExtensionProtocolOptions: PROTOCOL_OPTIONS,
} = ClusterSchema.field;

/** `cluster_type`, which an extension of Envoy uses in place of `type`. */
const CLUSTER_TYPE = 38;

/** `load_assignment`, which a cluster has in place of EDS. */
const LOAD_ASSIGNMENT = 33;

/**
 * Creates the function that edits clusters so that they get endpoints from `target`. A setting that users can make in a
 * policy is set only if none does; all other fields keep their bytes. Edits are deterministic and idempotent. A cluster
 * that is malformed or not of type EDS is returned unchanged.
 */
export function envoyClusterEditor({ target }: { readonly target: string }): EditEnvoyCluster {
  const cache = new WeakMap<EnvoyClusterSettings, CachedEdits>();
  return (cluster, settings) => {
    const { fields, results } = cache.get(settings) ?? {
      fields: encodeFields(settings, target),
      results: [],
    };
    const known = results.find(({ given }) => areEqual(given, cluster));
    if (known) return known.edited ?? cluster;
    const edited = editCluster(cluster, settings, fields, target);
    if (cluster.length > MAX_CACHED_BYTES) return edited;
    // A copy: the cluster is a view of the whole request.
    const added = { given: Uint8Array.from(cluster), edited: edited === cluster ? undefined : edited };
    cache.set(settings, { fields, results: [added, ...results].slice(0, MAX_CACHED_RESULTS) });
    return edited;
  };
}

/** Most translations contain the same clusters again, so results are cached with the settings. */
type CachedEdits = { readonly fields: EncodedFields; readonly results: readonly CachedEdit[] };
type CachedEdit = { readonly given: Uint8Array; readonly edited: Uint8Array | undefined };

/** A cluster comes as Envoy Gateway made it, and as we returned it. */
const MAX_CACHED_RESULTS = 2;
const MAX_CACHED_BYTES = 16 * 1024;

function areEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && Buffer.compare(one, other) === 0;
}

function editCluster(
  cluster: Uint8Array,
  settings: EnvoyClusterSettings,
  fields: EncodedFields,
  target: string,
): Uint8Array {
  if (!isMessage(cluster) || !isEdsCluster(cluster)) return cluster;
  const socket = bytesOf(cluster, SOCKET.number);
  const proxyProtocol = socket && proxyProtocolOf(socket);
  const { eds, transportSocket, matches, healthCheck } = proxyProtocol
    ? encodeFields(settings, target, proxyProtocol)
    : fields;
  const addsHealthCheck = healthCheck && bytesOf(cluster, HEALTH_CHECKS.number) === undefined;
  const edits: readonly (Edit | undefined)[] = [
    { number: EDS.number, replaces: all, fields: [eds] },
    ...(addsHealthCheck
      ? [{ number: HEALTH_CHECKS.number, replaces: none, fields: [healthCheck] }, ejections(cluster)]
      : []),
    transportSocket && { number: SOCKET.number, replaces: all, fields: [transportSocket] },
    panicThreshold(cluster),
    settings.protocol === 'UDP' ? udpSessions(cluster) : undefined,
    httpOptions(cluster, settings),
    transportSocket && {
      number: SOCKET_MATCHES.number,
      replaces: isOurMatch,
      fields: [...matches, ...otherMatches(cluster, settings, proxyProtocol)],
    },
  ];
  return applyEdits(
    cluster,
    edits.filter(edit => edit !== undefined),
  );
}

const all = () => true;
const none = () => false;

function isEdsCluster(cluster: Uint8Array): boolean {
  const fields = new Fields(cluster);
  let isEds = false;
  while (fields.next()) {
    if (fields.number === CLUSTER_TYPE) return false;
    if (fields.number === TYPE.number)
      isEds = fields.end === fields.valueStart + 1 && cluster[fields.valueStart] === DiscoveryType.EDS;
  }
  return isEds;
}

/** A cluster that resolves host names becomes one that EDS serves. */
export function ofTypeEds(cluster: Uint8Array): Uint8Array {
  if (isEdsCluster(cluster)) return cluster;
  const type = Uint8Array.from([...varint(TYPE.number * 8 + WIRE_TYPES.varint), DiscoveryType.EDS]);
  return applyEdits(cluster, [
    { number: CLUSTER_TYPE, replaces: all, fields: [] },
    { number: LOAD_ASSIGNMENT, replaces: all, fields: [] },
    { number: TYPE.number, replaces: all, fields: [type] },
  ]);
}

/** The fields that depend on the settings alone. */
type EncodedFields = {
  readonly eds: Uint8Array;
  readonly transportSocket?: Uint8Array;
  readonly matches: readonly Uint8Array[];
  readonly healthCheck?: Uint8Array;
};

function encodeFields(
  settings: EnvoyClusterSettings,
  target: string,
  proxyProtocol?: Uint8Array,
): EncodedFields {
  const { cluster, defaultSocket, socketMatches } = settings;
  const check = encodeHealthCheck(settings);
  return {
    eds: bytesField(EDS.number, encodeEdsConfig(cluster, target)),
    ...(defaultSocket && {
      transportSocket: bytesField(SOCKET.number, encodeTransportSocket(defaultSocket, proxyProtocol)),
    }),
    matches: socketMatches.map(match =>
      bytesField(SOCKET_MATCHES.number, encodeSocketMatch(match, proxyProtocol)),
    ),
    ...(check && { healthCheck: bytesField(HEALTH_CHECKS.number, check) }),
  };
}

/**
 * The sockets of other backends of the rule. For a backend with a BackendTLSPolicy Envoy Gateway has made a match, named
 * by the index of the backend in the rule; that index may change before Envoy has the new cluster.
 */
function otherMatches(
  cluster: Uint8Array,
  { otherSockets }: EnvoyClusterSettings,
  proxyProtocol: Uint8Array | undefined,
): readonly Uint8Array[] {
  if (otherSockets.length === 0) return [];
  const given = new Map(
    valuesOf(cluster, SOCKET_MATCHES.number, Infinity).map(match => [nameOfMatch(match), match]),
  );
  const matches = otherSockets.map(({ name, envoyGatewayName }): [string, Uint8Array] => [
    name,
    bytesField(
      SOCKET_MATCHES.number,
      encodeOtherSocketMatch(name, given.get(envoyGatewayName), proxyProtocol),
    ),
  ]);
  return [...new Map(matches).values()];
}

/** Disables panic mode, in which Envoy sends requests to unhealthy endpoints, unless a policy sets the threshold. */
function panicThreshold(cluster: Uint8Array): Edit | undefined {
  const { number } = Cluster_CommonLbConfigSchema.field.healthyPanicThreshold;
  return withZero(COMMON_LB.number, messageOf(cluster, COMMON_LB.number) ?? new Uint8Array(), number);
}

/** Keeps endpoints ejected for the time that a policy sets: by default Envoy ends that when a health check succeeds. */
function ejections(cluster: Uint8Array): Edit | undefined {
  const { number } = OutlierDetectionSchema.field.successfulActiveHealthCheckUnejectHost;
  const detection = messageOf(cluster, OUTLIER_DETECTION.number);
  return detection && withZero(OUTLIER_DETECTION.number, detection, number);
}

/** Sets a message in a field of the cluster to its zero value, unless it is set. */
function withZero(field: number, config: Uint8Array, number: number): Edit | undefined {
  if (!isMessage(config) || bytesOf(config, number)) return undefined;
  const zero = bytesField(number, new Uint8Array());
  return { number: field, replaces: all, fields: [bytesField(field, concat([config, zero]))] };
}

function httpOptions(cluster: Uint8Array, settings: EnvoyClusterSettings): Edit | undefined {
  const entry = bytesOf(cluster, PROTOCOL_OPTIONS.number, isHttpOptions);
  const version = httpVersionOf(settings, entry);
  if (!version) return undefined;
  const options = entry ? withHttpVersion(entry, version) : encodeHttpOptions(version);
  return {
    number: PROTOCOL_OPTIONS.number,
    replaces: isHttpOptions,
    fields: [bytesField(PROTOCOL_OPTIONS.number, options)],
  };
}

/**
 * Returns undefined to leave the version as it is: HTTP/1.1 is Envoy's default. `auto_config` must be replaced even in a
 * cluster of raw bytes. In a mixed rule HTTP/2 wins, as it does in Envoy Gateway between other backends.
 */
function httpVersionOf(
  { protocol, otherSockets }: EnvoyClusterSettings,
  entry: Uint8Array | undefined,
): HttpVersion | undefined {
  if (protocol === 'HTTP/2') return protocol;
  if (!entry || protocol === 'UDP') return undefined;
  const isOurs = protocol === 'HTTP/1.1' && otherSockets.length === 0;
  return isOurs || isAutoHttp(entry) ? 'HTTP/1.1' : undefined;
}
