import { ROUTE_KINDS } from '../../api/key.ts';
import { meshBackendsOf, refTo } from '../../api/objects/references.ts';
import type { ReadResources } from '../../store/resources.ts';
import type { ReadManifests } from '../manifests.ts';
import { hasValidName, partNameOf, textOfOwnObject, textOfUserObject } from './part.ts';
import { kindSupport } from './kinds.ts';

/** The sources of declarations. */
export type Declarations = { readonly read: ReadResources; readonly written: ReadManifests };

/** Returns the text of an object, computed once per object. */
export type CachedText = (object: object, make: () => string) => string;

/** An object that is not written, and why. */
export type OmittedObject = { readonly object: string; readonly file: string; readonly why: string };

/** The desired text of each part. */
export type DesiredParts = {
  readonly parts: ReadonlyMap<string, string>;
  readonly omitted: readonly OmittedObject[];
};

/** The kinds of routes for whose backendRefs Envoy Gateway reads MeshEndpoints. */
const READ_ROUTES = ROUTE_KINDS.filter(kind => kind === 'HTTPRoute' || kind === 'GRPCRoute');

/** The kinds of the store on which the folder depends. */
export const STORE_KINDS: readonly string[] = ['MeshEndpoints', 'MeshBinding', ...READ_ROUTES];

/**
 * Computes the desired parts. Each change makes Envoy Gateway translate everything, so MeshEndpoints are written only if a
 * route of these kinds refers to them. Once written they stay, since a route may refer to them again.
 */
export function desiredParts(
  { read, written }: Declarations,
  isWritten: (part: string) => boolean,
  cachedText: CachedText,
): DesiredParts {
  const parts = new Map<string, string>();
  const omitted: OmittedObject[] = [];
  const referenced = new Set<string>(READ_ROUTES.flatMap(kind => read.list(kind).flatMap(meshBackendsOf)));
  for (const object of [...read.list('MeshEndpoints'), ...read.list('MeshBinding')]) {
    const part = partNameOf(refTo(object));
    if (object.kind === 'MeshBinding' || referenced.has(part) || isWritten(part))
      parts.set(
        part,
        cachedText(object, () => textOfOwnObject(object)),
      );
  }
  for (const key of written.keys()) {
    const [group = '', kind = '', namespace = '', name = ''] = key.split('|');
    const support = kindSupport(group, kind);
    const found = written.get(key);
    if (!found || support.is === 'ours') continue;
    const { content: whole } = found.object;
    const subject = { kind, namespace, name };
    const part = partNameOf(subject);
    const omit = (why: string) => omitted.push({ object: part, file: found.file, why });
    if (support.is === 'omitted') omit(support.why);
    else if (!hasValidName(subject)) omit('an API server would refuse its name or namespace');
    else
      parts.set(
        part,
        cachedText(whole, () => textOfUserObject({ ...subject, whole }, support.as)),
      );
  }
  return { parts, omitted };
}
