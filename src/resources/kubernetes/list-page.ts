import type { ResourceKind } from '../../api/key.ts';
import { SERVED } from './kinds.ts';
import { fieldsOf, textIn } from './raw-object.ts';
import type { Heard } from './reflector-state.ts';

/** A page of a list, of a kind in one of its versions, as an API server answered it. */
export function pageOf(kind: ResourceKind, version: string, answer: unknown): Heard {
  const list = fieldsOf(answer);
  const metadata = fieldsOf(list?.['metadata']);
  const listVersion = textIn(metadata, 'resourceVersion');
  // Go writes nothing as null.
  const items: unknown = list?.['items'] ?? [];
  if (!textIn(list, 'kind').endsWith('List') || listVersion === '' || !Array.isArray(items)) {
    return { hear: 'failure', reason: 'Garbled', message: `the answer is no list of ${kind}` };
  }
  const { group } = SERVED[kind];
  const type = { apiVersion: group === '' ? version : `${group}/${version}`, kind };
  const objects = items.map((item: unknown) => typed(item, type));
  return { hear: 'page', objects, version: listVersion, token: textIn(metadata, 'continue') };
}

type Type = { readonly apiVersion: string; readonly kind: ResourceKind };

/** Items of lists of Kubernetes' own kinds do not say what they are. */
function typed(item: unknown, type: Type): unknown {
  const fields = fieldsOf(item);
  return fields && fields['kind'] === undefined ? { ...fields, ...type } : item;
}
