import { keyOf, refOf, ROUTE_KINDS } from '../api/key.ts';
import type { Key, Ref } from '../api/key.ts';
import { gatewaysOf, refTo } from '../api/references.ts';
import type { Resource } from '../api/resource.ts';
import type { ReadResources } from '../resources/resources.ts';
import type { Assignment } from '../traffic/assignment.ts';
import { rememberedTrust } from '../traffic/certificates.ts';
import type { ClusterNeeds } from '../traffic/cluster-needs.ts';
import { commonPath, dataPathOf } from '../traffic/data-path.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import type { Declared } from '../traffic/declared.ts';
import { revisionOf } from '../traffic/revision.ts';
import { mixedClustersOf } from '../traffic/mesh-rule.ts';
import type { MeshRule } from '../traffic/rule.ts';
import { dependenciesOf, tracked } from '../traffic/tracked.ts';
import { declaredIn, gatewaysOfClass, routesOf } from './declared.ts';
import { Dependents } from './dependents.ts';
import type { Assignments } from './eds/assigned.ts';
import type { UnusedOfCluster } from './eds/unresolved.ts';
import { ForeignNames } from './foreign-names.ts';
import type { BackendCluster } from './hooks/route.ts';
import { backendClustersOf, mayBeMesh, meaningOf, sourcedAssignment, unusedOf } from './meaning.ts';
import type { Meaning } from './meaning.ts';
import { Memo } from './memo.ts';

/** What clusters mean at this moment: hooks and endpoints both ask here, so that they never disagree. */
export interface View extends Assignments {
  /** What a cluster must have; nothing where it is to be left alone. */
  needsOf(cluster: string): ClusterNeeds | undefined;
  /** The endpoints of a cluster, for whoever cannot know the Gateway. */
  assignmentOf(cluster: string): Assignment | undefined;
  /** Our backends of a rule that have endpoints and a weight, by the clusters that they have of their own. */
  backendsOf(rule: string): readonly BackendCluster[];
  /** What gets no traffic of rules that mix our backends with others, since Envoys need not follow the endpoints of these. */
  unusedOfMixed(): Iterable<UnusedOfCluster>;
  /** The revision of what the clusters of a Gateway must have; nothing where none of them is ours. */
  revisionOf(gateway: Ref<'Gateway'>): string | undefined;
  /** How many names are remembered. */
  readonly size: number;
  /** Follows no more changes; what is asked after it may be old. */
  close(): void;
}

/** How a view reads what is not declared. */
export type ViewSettings = {
  /** How Envoys reach the mesh where nothing is decided for their Gateway. */
  readonly dataPath: DataPathMode;
  /** What all clusters have in common, however they are made of what they need. */
  readonly shape: string;
};

/** Views what is declared; it must have the indexes of the extension server. */
export function createView(read: ReadResources, settings: ViewSettings): View {
  const { dataPath } = settings;
  const dependents = new Dependents();
  const trust = rememberedTrust();
  const remember = <V extends object>(compute: (name: string, from: Sources) => V | undefined) =>
    new Memo<V>((name, note) => {
      return compute(name, { read, note, declared: tracked(declaredIn(read, note, trust), note) });
    }, dependents);
  const meanings = remember((cluster, { declared }) => meaningOf(cluster, declared));
  const revisions = remember((gateway, sources) => revisionIn(gateway, sources, settings));
  const paths = remember((gateway, sources) => pathIn(gateway, sources, dataPath));
  const pathTo = (gateway: string) => paths.read(gateway)?.mode ?? dataPath;
  const foreign = new ForeignNames();
  const meaning = (cluster: string) => unlessForeign(cluster, meanings, foreign, read);
  const anyPathOf = (rule: MeshRule) => commonPath(gatewaysAt(read, rule).map(pathTo));
  const unsubscribe = read.subscribe(({ key }) => {
    const object = read.get(refOf(key));
    if (isRoute(key)) foreign.clear();
    for (const text of textsOf(key, object)) dependents.touch(text);
  });
  return {
    find: (cluster, gateway) => sourcedAssignment(meanings.read(cluster), () => pathTo(gateway)),
    follow: (cluster, gateway, follower) => {
      meanings.follow(cluster, follower);
      paths.follow(gateway, follower);
    },
    unfollow: (cluster, gateway, follower) => {
      meanings.unfollow(cluster, follower);
      paths.unfollow(gateway, follower);
    },
    backendsOf: rule => backendClustersOf(meanings.read(rule)),
    needsOf: cluster => meaning(cluster)?.needs,
    assignmentOf: cluster => sourcedAssignment(meaning(cluster), anyPathOf)?.assignment,
    unusedOfMixed: () => mixedIn(read).flatMap(cluster => unusedOf(meanings.read(cluster), anyPathOf)),
    revisionOf: gateway => revisions.read(keyOf(gateway))?.revision,
    get size() {
      return meanings.size + paths.size + revisions.size;
    },
    close: unsubscribe,
  };
}

/** Most names that hooks ask about, they ask about again at the next translation, and most are of others. */
function unlessForeign(
  cluster: string,
  meanings: Memo<Meaning>,
  foreign: ForeignNames,
  read: ReadResources,
): Meaning | undefined {
  const known = meanings.peek(cluster);
  if (known || foreign.has(cluster)) return known;
  if (mayBeMesh(read, cluster)) return meanings.read(cluster);
  foreign.add(cluster);
  return undefined;
}

function isRoute(key: Key): boolean {
  return refOf(key).kind.endsWith('Route');
}

/** The clusters of rules that mix our backends with others. */
function mixedIn(read: ReadResources): readonly string[] {
  return ROUTE_KINDS.flatMap(kind => read.list(kind)).flatMap(mixedClustersOf);
}

/** From what values are computed: each reading by `declared` is noted, and any other is to be noted. */
type Sources = {
  readonly read: ReadResources;
  readonly declared: Declared;
  readonly note: (text: string) => void;
};

/** Nothing where it is as everywhere, so that only Gateways are remembered for which something is decided. */
function pathIn(
  gateway: string,
  sources: Sources,
  dataPath: DataPathMode,
): { readonly mode: DataPathMode } | undefined {
  const gateways = gatewaysTold(gateway, sources);
  if (gateways.length === 0) return undefined;
  const mode = commonPath(gateways.map(each => dataPathOf(sources.declared, each, dataPath)));
  return mode === dataPath ? undefined : { mode };
}

/** The Gateways that an Envoy serves: the one that it tells, or all of the class that it tells where they are merged. */
function gatewaysTold(told: string, { read, note }: Sources): readonly Ref<'Gateway'>[] {
  const [first = '', name, end] = told.split('/', 3);
  if (first === '' || name === '' || end !== undefined) return [];
  if (name !== undefined) return [{ kind: 'Gateway', namespace: first, name }];
  const gateways = gatewaysOfClass(read, first);
  note(classText(first));
  for (const gateway of gateways) note(keyOf(gateway));
  return gateways;
}

function classText(name: string): string {
  return `class:${name}`;
}

/** The Gateways of a rule, as Envoys tell them. */
function gatewaysAt(read: ReadResources, { cluster }: MeshRule): readonly string[] {
  const { kind, namespace, name } = cluster;
  const route = read.get({ kind, namespace, name });
  return route ? gatewaysOf(route).map(gateway => gateway.slice(GATEWAY_PREFIX.length)) : [];
}

const GATEWAY_PREFIX = 'Gateway/';

function revisionIn(
  gateway: string,
  { read, declared, note }: Sources,
  settings: ViewSettings,
): { readonly revision: string } | undefined {
  const ref = refOf(gateway as Key) as Ref<'Gateway'>;
  const routes = routesOf(read, ref);
  note(routesText(gateway));
  for (const route of routes) note(keyOf(refTo(route)));
  const revision = revisionOf(declared, { gateway: ref, routes, ...settings });
  return revision === undefined ? undefined : { revision };
}

function routesText(gateway: string): string {
  return `routes:${gateway}`;
}

/**
 * What a change touches: all that the object is found by now, and all that was computed from it before, which has noted
 * its key. So nothing need be known of what it was found by before.
 */
function textsOf(key: Key, object: Resource | undefined): readonly string[] {
  if (!object) return [key];
  const routes = 'parentRefs' in object ? gatewaysOf(object).map(routesText) : [];
  const classes = object.kind === 'Gateway' ? [classText(object.gatewayClassName)] : [];
  return [key, ...dependenciesOf(object), ...routes, ...classes];
}
