import { PostTranslateModifyRequestSchema as RequestSchema } from '../proto/envoygateway/extension_pb.ts';
import { Fields, varint, WIRE_TYPES } from '../wire.ts';
import type { Field } from '../wire.ts';
import type { EnvoyClusterSettings } from '../../traffic/envoy-cluster-settings.ts';
import type { MeshCluster } from '../envoy-cluster/envoy-cluster.ts';
import type { Attempts } from './attempts.ts';
import { GrpcError } from '../grpc/method.ts';

const { clusters: CLUSTERS, routes: LAST_LIST } = RequestSchema.field;

/** In a cluster, its name; Envoy Gateway writes it first. */
const NAME = 1;

/** What the tag of a field becomes lower by when its number does by one. */
const LOWER = 8;

/** A tag in one byte, which is enough for these. */
const ONE_BYTE = 127;

/** A request may have so many fields and cuts, and one more for so many bytes: less than the smallest cluster has. */
const FREE_FIELDS = 100_000;
const BYTES_OF_A_FIELD = 100;

/** What clusters are made of, and how long an answer may be. */
export type TranslationParts = {
  /** What a cluster must have; nothing where it is not ours, which most are. */
  readonly settingsOf: (cluster: string) => EnvoyClusterSettings | undefined;
  readonly meshCluster: MeshCluster;
  readonly attempts: Attempts;
  readonly messageBytes: number;
};

/** A part of the request that is not in the answer, and what stands there instead: a cluster, or nothing. */
type Cut = { readonly from: number; readonly to: number; readonly cluster?: Uint8Array };

/** What becomes of a request: all of it stays but for the cuts, and but for the tags, which become lower. */
type Changes = { readonly tags: readonly number[]; readonly cuts: readonly Cut[]; readonly length: number };

/**
 * Answers PostTranslateModify: all that was sent, in its order, with the clusters of mesh backends made to have what they
 * need. The lists of an answer have numbers lower by one than those of a request, so that all else is copied without a
 * look into it. A list that was not sent stays absent: in an answer, what is not there is deleted.
 */
export function answerTranslation(request: Uint8Array, parts: TranslationParts): Uint8Array {
  const given = Buffer.from(request.buffer, request.byteOffset, request.length);
  const { tags, cuts, length } = changesIn(given, parts);
  const answer = new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
  let [at, from, tag] = [0, 0, 0];
  for (const { from: cutFrom, to, cluster } of [...cuts, { from: given.length, to: given.length }]) {
    given.copy(answer, at, from, cutFrom);
    for (; (tags[tag] ?? cutFrom) < cutFrom; tag++) {
      const place = at + (tags[tag] ?? 0) - from;
      answer[place] = ((answer[place] ?? 0) & ONE_BYTE) - LOWER;
    }
    at += cutFrom - from;
    from = to;
    if (!cluster) continue;
    for (const byte of varint(cluster.length)) answer[at++] = byte;
    answer.set(cluster, at);
    at += cluster.length;
  }
  return answer;
}

function isListed({ number, wireType }: Field): boolean {
  return number >= CLUSTERS.number && number <= LAST_LIST.number && wireType === WIRE_TYPES.bytes;
}

function changesIn(request: Buffer, parts: TranslationParts): Changes {
  const tags: number[] = [];
  const cuts: Cut[] = [];
  const fields = new Fields(request);
  let length = request.length;
  let served = 0;
  const most = FREE_FIELDS + request.length / BYTES_OF_A_FIELD;
  const add = (cut: Cut): void => {
    if (cuts.push(cut) + tags.length > most) throw tooManyFields();
    length += growthBy(cut);
  };
  while (fields.next()) {
    const { number, start, tagEnd, end } = fields;
    if (!isListed(fields)) {
      add({ from: start, to: end });
      continue;
    }
    if (tags.push(start) > most) throw tooManyFields();
    if (tagEnd > start + 1) add({ from: start + 1, to: tagEnd });
    const room = parts.messageBytes - length;
    const made = number === CLUSTERS.number ? madeAt(request, fields, parts, room) : undefined;
    if (!made) continue;
    served++;
    if (made !== 'as it is') add(made);
  }
  if (fields.isMalformed) throw brokenRequest();
  parts.attempts.served('translation', served);
  return { tags, cuts, length };
}

function growthBy({ from, to, cluster }: Cut): number {
  return (cluster ? varint(cluster.length).length + cluster.length : 0) - (to - from);
}

/** Ends a call whose request is no protobuf at all: what an answer to it would delete is not known. */
export function brokenRequest(): GrpcError {
  return new GrpcError('INVALID_ARGUMENT', 'the request is not a protobuf message');
}

function tooManyFields(): GrpcError {
  return new GrpcError('INVALID_ARGUMENT', 'the request has far more fields than a translation has');
}

/**
 * A cluster that is ours, as it is to be. Most are not ours, and of those nothing but the name is read. One for which an
 * answer has no room left fails alone: without an answer all of the Gateway would.
 */
function madeAt(
  request: Buffer,
  { tagEnd, valueStart, end }: Field,
  { settingsOf, meshCluster, attempts, messageBytes }: TranslationParts,
  room: number,
): Cut | 'as it is' | undefined {
  const field = new Fields(request, valueStart, end);
  if (!field.next() || field.number !== NAME) return undefined;
  const name = request.toString('latin1', field.valueStart, field.end);
  return attempts.change('translation', name, undefined, () => {
    const needs = settingsOf(name);
    if (!needs) return undefined;
    while (field.next()) if (field.number === NAME) return undefined;
    const cluster = request.subarray(valueStart, end);
    const made = meshCluster(cluster, needs);
    if (made === cluster) return 'as it is';
    const cut = { from: tagEnd, to: end, cluster: made };
    if (growthBy(cut) <= room) return cut;
    throw new Error(`with its ${made.length} bytes the answer would be longer than ${messageBytes} bytes`);
  });
}
