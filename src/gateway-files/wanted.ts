import { keyOf, refOf } from '../api/key.ts';
import type { Ref, RouteKind } from '../api/key.ts';
import { meshBackendsOf } from '../api/references.ts';
import type { AnyIndex, Index, ReadResources } from '../resources/resources.ts';
import type { ReadWritten, WrittenKey } from '../resources/written.ts';
import { partNameOf, isNameable, textOfOwn, textOfSource } from './generated-part.ts';
import { fateOf } from './kinds.ts';

/** Where declarations are found. */
export type Declarations = { readonly read: ReadResources; readonly written: ReadWritten };

/** The kinds of routes for which Envoy Gateway looks the MeshEndpoints up that they name. */
const LOOKED_UP = ['HTTPRoute', 'GRPCRoute'] as const satisfies readonly RouteKind[];

function byBackend<K extends RouteKind>(kind: K): Index<K> {
  return { name: `gateway files: ${kind} by MeshEndpoints`, kind, valuesOf: route => meshBackendsOf(route) };
}

/** The indexes that the store must have been made with. */
export const gatewayFilesIndexes: readonly AnyIndex[] = LOOKED_UP.map(kind => byBackend(kind) as AnyIndex);

/** The MeshEndpoints that Envoy Gateway needs because of a route. */
export function neededBy({ kind, namespace, name }: Ref, read: ReadResources): readonly Subject[] {
  const looking = LOOKED_UP.find(each => each === kind);
  const route = looking && read.get({ kind: looking, namespace, name });
  if (!route) return [];
  return meshBackendsOf(route).map(key => ({ by: 'store', ref: refOf(key) as Ref<'MeshEndpoints'> }));
}

/** One declaration: an object of ours, as the store has it, or one of others, as a file has it. */
export type Subject =
  | { readonly by: 'store'; readonly ref: Ref<'MeshEndpoints' | 'MeshBinding'> }
  | { readonly by: 'file'; readonly key: WrittenKey };

/** What the folder should have of a declaration. */
export type Wanted =
  | { readonly is: 'part'; readonly part: string; readonly text: string }
  | { readonly is: 'no-part'; readonly part: string }
  /** It is not for Envoy Gateway; where a user may think that it is, there is a reason. */
  | { readonly is: 'left-out'; readonly object: string; readonly source: string; readonly why: string }
  | { readonly is: 'nothing' };

/** What the folder should have of a declaration at this moment. */
export function wantedOf(
  subject: Subject,
  { read, written }: Declarations,
  isThere: (part: string) => boolean,
): Wanted {
  return subject.by === 'store'
    ? wantedOfOwn(subject.ref, read, isThere)
    : wantedOfWritten(subject.key, written);
}

/**
 * Whatever file changes, Envoy Gateway translates everything anew. So it does not get MeshEndpoints that no route names
 * for which it would look them up; one that it has had stays, since the route may be about to come back to it.
 */
function wantedOfOwn(
  ref: Ref<'MeshEndpoints' | 'MeshBinding'>,
  read: ReadResources,
  isThere: (part: string) => boolean,
): Wanted {
  const object = read.get(ref);
  const part = partNameOf(ref);
  if (!object) return { is: 'no-part', part };
  const isNeeded = ref.kind === 'MeshBinding' || isThere(part) || isLookedUp(ref, read);
  return isNeeded ? { is: 'part', part, text: textOfOwn(object) } : { is: 'nothing' };
}

function isLookedUp(ref: Ref, read: ReadResources): boolean {
  return LOOKED_UP.some(kind => read.find(byBackend(kind), keyOf(ref)).length > 0);
}

function wantedOfWritten(key: WrittenKey, written: ReadWritten): Wanted {
  const found = written.get(key);
  const [group = '', kind = '', inNamespace = '', name = ''] = key.split('|');
  const fate = fateOf(group, kind);
  if (fate.is === 'ours') return { is: 'nothing' };
  const object = `${kind}/${inNamespace}/${name}`;
  if (fate.is === 'left-out')
    return found ? { is: 'left-out', object, source: found.file, why: fate.why } : { is: 'nothing' };
  const subject = { kind, namespace: inNamespace, name };
  if (!isNameable(subject)) {
    const why = 'its name or namespace is none that an API server would take';
    return found ? { is: 'left-out', object, source: found.file, why } : { is: 'nothing' };
  }
  const part = partNameOf(subject);
  if (!found) return { is: 'no-part', part };
  return { is: 'part', part, text: textOfSource({ ...subject, whole: found.object.whole }, fate.as) };
}

/** Everything that is declared now. */
export function allSubjects({ read, written }: Declarations): readonly Subject[] {
  const own = (kind: 'MeshEndpoints' | 'MeshBinding') =>
    read.list(kind).map(({ metadata: { namespace = '', name } }): Subject => ({
      by: 'store',
      ref: { kind, namespace, name },
    }));
  const ofOthers = written.keys().map((key): Subject => ({ by: 'file', key }));
  return [...own('MeshEndpoints'), ...ofOthers, ...own('MeshBinding')];
}

/** What tells two subjects apart. */
export function idOf(subject: Subject): string {
  return subject.by === 'file' ? subject.key : partNameOf(subject.ref);
}
