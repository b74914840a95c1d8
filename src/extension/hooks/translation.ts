import { PostTranslateModifyRequestSchema as RequestSchema } from '../proto/envoygateway/extension_pb.ts';
import { Fields, varint, WIRE_TYPES } from '../wire.ts';
import type { Field } from '../wire.ts';
import type { EnvoyClusterSettings } from '../../traffic/settings/envoy-cluster-settings.ts';
import type { EditEnvoyCluster } from '../envoy-cluster/envoy-cluster.ts';
import { GrpcError } from '../grpc/method.ts';

const { clusters: CLUSTERS, routes: LAST_LIST } = RequestSchema.field;

/** The number of a cluster's name; Envoy Gateway writes it first. */
const NAME = 1;

/** A field number that is lower by one lowers the first byte of its tag by this. */
const TAG_STEP = 8;

/** The tags of all lists fit into one byte. */
const ONE_BYTE = 127;

/** Max fields and cuts of any request, and of a larger one per this many bytes: fewer than the smallest clusters have. */
const FREE_FIELDS = 100_000;
const BYTES_PER_FIELD = 100;

/** Returns the result, or undefined if `compute` throws; `subject` is named in the log. */
export type FailOpen = <Result>(subject: string, compute: () => Result) => Result | undefined;

export type TranslationDeps = {
  /** Returns undefined if the cluster must stay unchanged, as most do. */
  readonly settingsOf: (cluster: string) => EnvoyClusterSettings | undefined;
  readonly editCluster: EditEnvoyCluster;
  readonly failOpen: FailOpen;
  readonly countClusters: (clusters: number) => void;
  /** Max size of a response. */
  readonly messageBytes: number;
};

/** A range of the request that is left out of the response, or replaced by a cluster. */
type Cut = { readonly from: number; readonly to: number; readonly cluster?: Uint8Array };

/** How the response differs from the request: it has other clusters, lacks the context, and its lists have other numbers. */
type Changes = {
  /** Where in the request the tags of the lists are. */
  readonly tagOffsets: readonly number[];
  readonly cuts: readonly Cut[];
  readonly length: number;
};

/**
 * The response of PostTranslateModify: everything in the request, in its order, with the settings of mesh backends in
 * their clusters. The lists of the response have field numbers lower by one than those of the request, so that all else
 * is copied without decoding it. A list that was not sent stays absent: Envoy Gateway deletes what a response lacks.
 */
export function modifyTranslation(request: Uint8Array, deps: TranslationDeps): Uint8Array {
  const given = Buffer.from(request.buffer, request.byteOffset, request.length);
  const { tagOffsets, cuts, length } = changesOf(given, deps);
  const response = new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
  let [offset, from, nextTag] = [0, 0, 0];
  for (const { from: cutFrom, to, cluster } of [...cuts, { from: given.length, to: given.length }]) {
    given.copy(response, offset, from, cutFrom);
    for (let tag = tagOffsets[nextTag]; tag !== undefined && tag < cutFrom; tag = tagOffsets[++nextTag]) {
      const place = offset + tag - from;
      response[place] = ((response[place] ?? 0) & ONE_BYTE) - TAG_STEP;
    }
    offset += cutFrom - from;
    from = to;
    if (!cluster) continue;
    for (const byte of varint(cluster.length)) response[offset++] = byte;
    response.set(cluster, offset);
    offset += cluster.length;
  }
  return response;
}

function isListed({ number, wireType }: Field): boolean {
  return number >= CLUSTERS.number && number <= LAST_LIST.number && wireType === WIRE_TYPES.bytes;
}

function changesOf(request: Buffer, deps: TranslationDeps): Changes {
  const tagOffsets: number[] = [];
  const cuts: Cut[] = [];
  const fields = new Fields(request);
  let length = request.length;
  let meshClusters = 0;
  const maxFields = FREE_FIELDS + request.length / BYTES_PER_FIELD;
  const add = (cut: Cut): void => {
    if (cuts.push(cut) + tagOffsets.length > maxFields) throw tooManyFields();
    length += growthBy(cut);
  };
  while (fields.next()) {
    const { number, start, tagEnd, end } = fields;
    if (!isListed(fields)) {
      add({ from: start, to: end });
      continue;
    }
    if (tagOffsets.push(start) > maxFields) throw tooManyFields();
    if (tagEnd > start + 1) add({ from: start + 1, to: tagEnd });
    const room = deps.messageBytes - length;
    const edited = number === CLUSTERS.number ? editAt(request, fields, deps, room) : undefined;
    if (!edited) continue;
    meshClusters++;
    if (edited !== 'unchanged') add(edited);
  }
  if (fields.isMalformed) throw malformedRequest();
  if (meshClusters > 0) deps.countClusters(meshClusters);
  return { tagOffsets, cuts, length };
}

function growthBy({ from, to, cluster }: Cut): number {
  return (cluster ? varint(cluster.length).length + cluster.length : 0) - (to - from);
}

/** Ends a call whose request cannot be read: any response could delete resources. */
export function malformedRequest(): GrpcError {
  return new GrpcError('INVALID_ARGUMENT', 'the request is not a protobuf message');
}

function tooManyFields(): GrpcError {
  return new GrpcError('INVALID_ARGUMENT', 'the request has far more fields than a translation has');
}

/**
 * Edits one cluster. Of a cluster that is not ours only the name is read. One for which the response has no room is left
 * unchanged: a response that is too large would be lost as a whole.
 */
function editAt(
  request: Buffer,
  { tagEnd, valueStart, end }: Field,
  { settingsOf, editCluster, failOpen, messageBytes }: TranslationDeps,
  room: number,
): Cut | 'unchanged' | undefined {
  const field = new Fields(request, valueStart, end);
  if (!field.next() || field.number !== NAME) return undefined;
  const name = request.toString('latin1', field.valueStart, field.end);
  return failOpen(name, () => {
    const settings = settingsOf(name);
    if (!settings) return undefined;
    while (field.next()) if (field.number === NAME) return undefined;
    const cluster = request.subarray(valueStart, end);
    const edited = editCluster(cluster, settings);
    if (edited === cluster) return 'unchanged';
    const cut = { from: tagEnd, to: end, cluster: edited };
    if (growthBy(cut) <= room) return cut;
    throw new Error(`with ${edited.length} bytes of this cluster the response would exceed ${messageBytes}`);
  });
}
