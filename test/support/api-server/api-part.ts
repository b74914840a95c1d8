import type { Ref, ResourceKind } from '../../../src/api/key.ts';
import { SERVED } from '../../../src/kubernetes/served-kinds.ts';
import { fieldsOf, textIn } from '../../../src/kubernetes/unstructured.ts';
import type { Fields } from '../../../src/api/json.ts';

import type { KubeRequest, KubeTransport } from '../../../src/kubernetes/transport/transport.ts';

/**
 * A part of a cluster: all names of namespaces and cluster-scoped objects have the same prefix. A client of it sees
 * only that part, without the prefix: tests share one cluster, and each finds it empty.
 */
export class ApiPart {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** An object with the prefix that it has in the cluster. */
  outside(object: object): Fields {
    const renamed = this.#renamed(object, name => `${this.#prefix}${name}`) as Fields;
    const metadata = fieldsOf(renamed['metadata']);
    const served = SERVED[textIn(renamed, 'kind') as ResourceKind];
    const name = textIn(metadata, 'name');
    if (!served.isNamespaced)
      return { ...renamed, metadata: { ...metadata, name: `${this.#prefix}${name}` } };
    const namespace = textIn(metadata, 'namespace') || `${this.#prefix}default`;
    return { ...renamed, metadata: { ...metadata, namespace } };
  }

  /** A reference with the prefix that it has in the cluster. */
  refOutside({ kind, namespace, name }: Ref): Ref {
    const isNamespaced = SERVED[kind].isNamespaced;
    return isNamespaced
      ? { kind, namespace: `${this.#prefix}${namespace}`, name }
      : { kind, namespace, name: `${this.#prefix}${name}` };
  }

  /** An object without the prefix; undefined if it does not belong to this part. */
  inside(value: unknown, kind: ResourceKind): unknown {
    const object = fieldsOf(value);
    const metadata = fieldsOf(object?.['metadata']);
    const place = SERVED[kind].isNamespaced ? textIn(metadata, 'namespace') : textIn(metadata, 'name');
    if (!place.startsWith(this.#prefix)) return undefined;
    const renamed = this.#renamed(object, name => this.#short(name)) as Fields;
    if (SERVED[kind].isNamespaced) return renamed;
    return { ...renamed, metadata: { ...fieldsOf(renamed['metadata']), name: this.#short(place) } };
  }

  /** The same transport, restricted to this part. */
  seenThrough(transport: KubeTransport): KubeTransport {
    return {
      ...transport,
      send: async request => this.#answerInside(await transport.send(this.#requestOutside(request)), request),
      stream: async request =>
        this.#linesInside(await transport.stream(this.#requestOutside(request)), request),
    };
  }

  #requestOutside(request: KubeRequest): KubeRequest {
    const { body, path } = request;
    const kind = kindAt(path);
    const outside = kind ? this.#pathOutside(path, kind) : path;
    if (!body || fieldsOf(body.value)?.['kind'] === undefined) return { ...request, path: outside };
    const isObject = Object.hasOwn(SERVED, textIn(fieldsOf(body.value), 'kind'));
    const value = isObject ? this.outside(body.value as object) : body.value;
    return { ...request, path: outside, body: { ...body, value } };
  }

  #pathOutside(path: string, kind: ResourceKind): string {
    const { plural, isNamespaced } = SERVED[kind];
    const before = isNamespaced ? '/namespaces/' : `/${plural}/`;
    return path.replace(before, `${before}${this.#prefix}`);
  }

  #answerInside(answer: unknown, { path }: KubeRequest): unknown {
    const kind = kindAt(path);
    const fields = fieldsOf(answer);
    if (!kind || !fields) return answer;
    const { items } = fields;
    if (Array.isArray(items))
      return { ...fields, items: items.flatMap(item => this.inside(item, kind) ?? []) };
    return fields['kind'] === kind ? (this.inside(answer, kind) ?? answer) : answer;
  }

  async *#linesInside(lines: AsyncIterable<unknown>, { path }: KubeRequest): AsyncGenerator {
    const kind = kindAt(path);
    for await (const line of lines) {
      const event = fieldsOf(line);
      const isOfAll = !kind || ['BOOKMARK', 'ERROR'].includes(textIn(event, 'type'));
      const object = isOfAll ? event?.['object'] : this.inside(event?.['object'], kind);
      if (object !== undefined) yield { ...event, object };
    }
  }

  #short(name: string): string {
    return name.startsWith(this.#prefix) ? name.slice(this.#prefix.length) : name;
  }

  /** Renames every name of a namespace or cluster-scoped object. */
  #renamed(value: unknown, rename: (name: string) => string): unknown {
    if (Array.isArray(value)) return value.map(item => this.#renamed(item, rename));
    const fields = fieldsOf(value);
    if (!fields) return value;
    const entries = Object.entries(fields).map(([name, inner]): [string, unknown] => {
      const isName = typeof inner === 'string' && ['namespace', 'gatewayClassName'].includes(name);
      return [name, isName ? rename(inner) : this.#renamed(inner, rename)];
    });
    return Object.fromEntries(entries);
  }
}

/** The kind of a request path. */
function kindAt(path: string): ResourceKind | undefined {
  const kinds = Object.keys(SERVED) as ResourceKind[];
  const isAbout = (kind: ResourceKind) => {
    const { group, plural } = SERVED[kind];
    const root = group === '' ? '/api/' : `/apis/${group}/`;
    return path.startsWith(root) && path.split('/').includes(plural);
  };
  return kinds.find(kind => kind !== 'Namespace' && isAbout(kind)) ?? kinds.find(isAbout);
}
