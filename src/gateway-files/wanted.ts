import { ROUTE_KINDS } from '../api/key.ts';
import { meshBackendsOf, refTo } from '../api/references.ts';
import type { ReadResources } from '../resources/resources.ts';
import type { ReadManifests } from '../resources/manifests.ts';
import { isNameable, partNameOf, textOfOwn, textOfSource } from './generated-part.ts';
import { fateOf } from './kinds.ts';

/** Where declarations are found. */
export type Declarations = { readonly read: ReadResources; readonly written: ReadManifests };

/** Makes the text of an object, once as long as the object is the same. */
export type TextOnce = (object: object, make: () => string) => string;

/** An object that a user may expect in the folder, and why it is not there. */
export type LeftOut = { readonly object: string; readonly file: string; readonly why: string };

/** What the folder should hold: the text of each part. */
export type Wanted = { readonly parts: ReadonlyMap<string, string>; readonly leftOut: readonly LeftOut[] };

/** The kinds of routes for which Envoy Gateway looks the MeshEndpoints up that they name. */
const LOOKED_UP = ROUTE_KINDS.filter(kind => kind === 'HTTPRoute' || kind === 'GRPCRoute');

/** The kinds in the store by which the folder changes. */
export const KINDS_OF_STORE: readonly string[] = ['MeshEndpoints', 'MeshBinding', ...LOOKED_UP];

/**
 * What the folder should hold at this moment. Whatever file changes, Envoy Gateway translates everything anew. So it does
 * not get MeshEndpoints that no route names for which it would look them up; one that it has had stays, since the route
 * may be about to come back to it.
 */
export function wantedOf(
  { read, written }: Declarations,
  isThere: (part: string) => boolean,
  textOnce: TextOnce,
): Wanted {
  const parts = new Map<string, string>();
  const leftOut: LeftOut[] = [];
  const lookedUp = new Set<string>(LOOKED_UP.flatMap(kind => read.list(kind).flatMap(meshBackendsOf)));
  for (const object of [...read.list('MeshEndpoints'), ...read.list('MeshBinding')]) {
    const part = partNameOf(refTo(object));
    if (object.kind === 'MeshBinding' || lookedUp.has(part) || isThere(part))
      parts.set(
        part,
        textOnce(object, () => textOfOwn(object)),
      );
  }
  for (const key of written.keys()) {
    const [group = '', kind = '', namespace = '', name = ''] = key.split('|');
    const fate = fateOf(group, kind);
    const found = written.get(key);
    if (!found || fate.is === 'ours') continue;
    const { content: whole } = found.object;
    const subject = { kind, namespace, name };
    const part = partNameOf(subject);
    const leave = (why: string) => leftOut.push({ object: part, file: found.file, why });
    if (fate.is === 'left-out') leave(fate.why);
    else if (!isNameable(subject)) leave('its name or namespace is none that an API server would take');
    else
      parts.set(
        part,
        textOnce(whole, () => textOfSource({ ...subject, whole }, fate.as)),
      );
  }
  return { parts, leftOut };
}
