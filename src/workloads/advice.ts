import type { Wanted } from './words.ts';

/** What keeps its pods while it is made anew. */
const KEEPING = new Set(['Deployment', 'StatefulSet']);

/** What to do about an object of which something was changed that can never change. */
export function adviceFor({ id, kind, name }: Wanted, namespace: string): string {
  const keeping = KEEPING.has(kind) ? ' --cascade=orphan' : '';
  const command = `kubectl delete ${kind.toLowerCase()} ${name} -n ${namespace}${keeping}`;
  const pods = KEEPING.has(kind) ? ', and its pods stay' : '';
  return `${id} must be made anew, because a field has changed that cannot: delete it (${command})${pods}`;
}
