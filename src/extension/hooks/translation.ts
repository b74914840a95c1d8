import {
  PostTranslateModifyRequestSchema as RequestSchema,
  PostTranslateModifyResponseSchema as ResponseSchema,
} from '../proto/envoygateway/extension_pb.ts';
import { bytesField, concat, Fields, setField, varintLength, WIRE_TYPES, writeVarint } from '../wire.ts';
import type { Field } from '../wire.ts';
import type { EnvoyClusterSettings } from '../../traffic/settings/envoy-cluster-settings.ts';
import { ofTypeEds } from '../envoy-cluster/envoy-cluster.ts';
import type { EditEnvoyCluster } from '../envoy-cluster/envoy-cluster.ts';
import type { EnvoyRouteEditor } from '../envoy-route/envoy-route.ts';
import { GrpcError } from '../grpc/method.ts';

const { clusters: CLUSTERS, routes: ROUTES } = RequestSchema.field;

const { number: ANSWERED_CLUSTERS } = ResponseSchema.field.clusters;

/** The number of the name of a cluster or route configuration; Envoy Gateway writes it first. */
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
  readonly routeEditor: EnvoyRouteEditor;
  readonly failOpen: FailOpen;
  readonly countClusters: (clusters: number) => void;
  /** Max size of a response. */
  readonly messageBytes: number;
};

/** A range of the request that is left out of the response, or replaced by a cluster or route configuration. */
type Cut = {
  readonly from: number;
  readonly to: number;
  readonly edited?: Uint8Array;
  /** Whole fields that follow. */
  readonly more?: Uint8Array;
};

/** How the response differs from the request: it has other clusters and routes, lacks the context, and its lists have other numbers. */
type Changes = {
  /** Where in the request the tags of the lists are. */
  readonly tagOffsets: readonly number[];
  readonly cuts: readonly Cut[];
  readonly length: number;
};

/**
 * The response of PostTranslateModify: everything in the request, in its order, with the settings of mesh backends in
 * their clusters and routes. The lists of the response have field numbers lower by one than those of the request, so that all else
 * is copied without decoding it. A list that was not sent stays absent: Envoy Gateway deletes what a response lacks.
 */
export function modifyTranslation(request: Uint8Array, deps: TranslationDeps): Uint8Array {
  const given = Buffer.from(request.buffer, request.byteOffset, request.length);
  const { tagOffsets, cuts, length } = changesOf(given, deps);
  const response = new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
  let [offset, from, nextTag] = [0, 0, 0];
  for (const { from: cutFrom, to, edited, more } of [...cuts, { from: given.length, to: given.length }]) {
    copyRange(given, from, cutFrom, response, offset);
    for (let tag = tagOffsets[nextTag]; tag !== undefined && tag < cutFrom; tag = tagOffsets[++nextTag]) {
      const place = offset + tag - from;
      response[place] = ((response[place] ?? 0) & ONE_BYTE) - TAG_STEP;
    }
    offset += cutFrom - from;
    from = to;
    if (edited) {
      offset = writeVarint(edited.length, response, offset);
      response.set(edited, offset);
      offset += edited.length;
    }
    if (!more) continue;
    response.set(more, offset);
    offset += more.length;
  }
  return response;
}

/** Most ranges are the tag of a cluster, for which a call takes longer than the copy. */
const SHORT = 16;

function copyRange(given: Buffer, from: number, to: number, response: Uint8Array, offset: number): void {
  if (to - from > SHORT) given.copy(response, offset, from, to);
  else for (let at = from; at < to; at++) response[offset + at - from] = given[at] ?? 0;
}

function isListed({ number, wireType }: Field): boolean {
  return number >= CLUSTERS.number && number <= ROUTES.number && wireType === WIRE_TYPES.bytes;
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
  const editedRoutes = editRoutes(request, deps);
  while (fields.next()) {
    const { number, start, tagEnd, end } = fields;
    if (!isListed(fields)) {
      add({ from: start, to: end });
      continue;
    }
    if (tagOffsets.push(start) > maxFields) throw tooManyFields();
    if (tagEnd > start + 1) add({ from: start + 1, to: tagEnd });
    const room = deps.messageBytes - length;
    const routes = editedRoutes.get(start);
    const fitting = routes && deps.failOpen('routes', () => inRoom(routes, room, deps.messageBytes));
    if (fitting) add(fitting);
    const cluster = number === CLUSTERS.number ? editClusterAt(request, fields, deps, room) : undefined;
    if (!cluster) continue;
    meshClusters++;
    if (cluster !== 'unchanged') add(cluster);
  }
  if (fields.isMalformed) throw malformedRequest();
  if (meshClusters > 0) deps.countClusters(meshClusters);
  return { tagOffsets, cuts, length };
}

function growthBy({ from, to, edited, more }: Cut): number {
  const editedLength = edited ? varintLength(edited.length) + edited.length : 0;
  return editedLength + (more?.length ?? 0) - (to - from);
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
function editClusterAt(
  request: Buffer,
  place: Field,
  { settingsOf, editCluster, routeEditor, failOpen, messageBytes }: TranslationDeps,
  room: number,
): Cut | 'unchanged' | undefined {
  const field = new Fields(request, place.valueStart, place.end);
  const name = nameIn(request, field);
  if (name === undefined) return undefined;
  return failOpen(name, () => {
    const settings = settingsOf(name);
    const names = routeEditor.clusterNamesFor(name);
    if (!settings && names.length < 2) return undefined;
    while (field.next()) if (field.number === NAME) return undefined;
    const cluster = request.subarray(place.valueStart, place.end);
    const [edited, ...more] = names.map(each => {
      if (each === name) return settings ? editCluster(cluster, settings) : cluster;
      const renamed = ofTypeEds(setField(cluster, NAME, Buffer.from(each)));
      const itsSettings = settingsOf(each);
      return itsSettings ? editCluster(renamed, itsSettings) : renamed;
    });
    if (!edited) return undefined;
    if (edited === cluster && more.length === 0) return 'unchanged';
    const cut = replaced(place, edited);
    if (more.length === 0) return inRoom(cut, room, messageBytes);
    const fields = more.map(each => bytesField(ANSWERED_CLUSTERS, each));
    return inRoom({ ...cut, more: concat(fields) }, room, messageBytes);
  });
}

function inRoom(cut: Cut, room: number, messageBytes: number): Cut {
  const growth = growthBy(cut);
  if (growth <= room) return cut;
  throw new Error(`with ${growth} bytes more the response would exceed ${messageBytes}`);
}

/** The edits of all routes, by where they begin in the request. */
function editRoutes(request: Buffer, { routeEditor, failOpen }: TranslationDeps): ReadonlyMap<number, Cut> {
  const edits = new Map<number, Cut>();
  const fields = new Fields(request);
  while (fields.next()) {
    if (fields.number !== ROUTES.number || fields.wireType !== WIRE_TYPES.bytes) continue;
    const { start, valueStart, end } = fields;
    const name = nameIn(request, new Fields(request, valueStart, end));
    const routes = request.subarray(valueStart, end);
    const edited = failOpen(name ?? 'routes', () => routeEditor.editRoutes(routes));
    if (edited && edited !== routes) edits.set(start, replaced(fields, edited));
  }
  return edits;
}

/** The first field, if that is the name. */
function nameIn(request: Buffer, field: Fields): string | undefined {
  if (!field.next() || field.number !== NAME) return undefined;
  return request.toString('latin1', field.valueStart, field.end);
}

function replaced({ tagEnd, end }: Field, edited: Uint8Array): Cut {
  return { from: tagEnd, to: end, edited };
}
