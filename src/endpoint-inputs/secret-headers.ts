import type { Clock } from '../api/clock.ts';
import type { HealthCheck, Kinds } from '../api/generated/types.ts';
import { keyOf } from '../api/key.ts';
import type { Key } from '../api/key.ts';
import { clusterNameIn, COMPONENTS, SECRET_READER } from '../api/names.ts';
import { refTo } from '../api/objects/references.ts';
import type { EndpointInputs, InputSource } from '../mesh-endpoints/inputs.ts';
import type { ReadReferenced } from '../resources/referenced.ts';
import { ResourceError } from '../resources/resources.ts';

export type SecretHeadersDeps = {
  readonly referenced: Pick<ReadReferenced, 'secret'>;
  /** The namespace of the operator; undefined where there is no cluster. */
  readonly ownNamespace: string | undefined;
  readonly clock: Pick<Clock, 'now'>;
  /** A Secret that was read this long ago is read again. */
  readonly maxAgeMs: number;
};

type Texts = Readonly<Record<string, string>>;
type HeaderFrom = NonNullable<HealthCheck['headersFrom']>[number];

/** The data of a Secret, or why there is none. */
type Secret = { readonly data: Texts } | { readonly problem: string };

type Entry = {
  readonly secret: Promise<Secret>;
  /** When it was read; a problem is read again at once. */
  at: number;
  readonly users: Set<Key>;
};

/** The headers of healthCheck.headersFrom. Their values stay in memory; no problem has one. */
export function secretHeaders(deps: SecretHeadersDeps): InputSource {
  const secrets = new Secrets(deps);
  return {
    read: async object => {
      const { namespace = '' } = object.metadata;
      const checked = checksWithSecrets(object);
      const data = await secrets.read(
        keyOf(refTo(object)),
        namespace,
        checked.flatMap(({ headers }) => headers.map(({ secretKeyRef }) => secretKeyRef.name)),
      );
      return new Map(checked.map(({ name, headers }) => [name, inputsOf(headers, namespace, data)]));
    },
    forget: object => secrets.forget(object),
  };
}

function checksWithSecrets({ spec }: Kinds['MeshEndpoints']) {
  return (spec.endpoints ?? []).flatMap(({ name, healthCheck }) => {
    const headers = healthCheck?.enabled ? (healthCheck.headersFrom ?? []) : [];
    return headers.length > 0 ? [{ name, headers }] : [];
  });
}

function inputsOf(
  headers: readonly HeaderFrom[],
  namespace: string,
  secrets: ReadonlyMap<string, Secret>,
): EndpointInputs {
  const found: (readonly [name: string, value: string])[] = [];
  for (const [index, { name, secretKeyRef }] of headers.entries()) {
    const secret = secrets.get(secretKeyRef.name);
    const value = valueOf(secret, secretKeyRef, namespace);
    if (typeof value !== 'string') {
      return { checkProblem: `healthCheck.headersFrom[${index}] cannot be used: ${value.problem}` };
    }
    found.push([name, value]);
  }
  return { headers: found };
}

/** What HTTP allows in the value of a header. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The value of a header without surrounding white space, which files of Secrets often end with. */
function valueOf(
  secret: Secret | undefined,
  { name, key }: HeaderFrom['secretKeyRef'],
  namespace: string,
): string | { readonly problem: string } {
  if (!secret || 'problem' in secret) return { problem: secret?.problem ?? '' };
  const value = secret.data[key]?.trim();
  const named = `Secret ${namespace}/${name}`;
  if (value === undefined)
    return { problem: `${named} has no key ${key}: add it, or correct secretKeyRef.key` };
  if (HEADER_VALUE.test(value)) return value;
  return { problem: `key ${key} of ${named} has characters that no header may have: correct it` };
}

/** The Secrets of all objects, each read once within a time. */
class Secrets {
  readonly #deps: SecretHeadersDeps;
  readonly #entries = new Map<string, Entry>();

  constructor(deps: SecretHeadersDeps) {
    this.#deps = deps;
  }

  /** Secrets by name; those that the object no longer needs are forgotten. */
  async read(user: Key, namespace: string, names: readonly string[]): Promise<ReadonlyMap<string, Secret>> {
    const needed = new Set(names);
    const keys = new Set([...needed].map(name => `${namespace}/${name}`));
    for (const [key, entry] of this.#entries) if (!keys.has(key)) this.#leave(key, entry, user);
    const found = [...needed].map(async name => [name, await this.#get(namespace, name, user)] as const);
    return new Map(await Promise.all(found));
  }

  forget(user: Key): void {
    for (const [key, entry] of this.#entries) this.#leave(key, entry, user);
  }

  #leave(key: string, { users }: Entry, user: Key): void {
    if (users.delete(user) && users.size === 0) this.#entries.delete(key);
  }

  #get(namespace: string, name: string, user: Key): Promise<Secret> {
    const key = `${namespace}/${name}`;
    const { clock, maxAgeMs } = this.#deps;
    const known = this.#entries.get(key);
    known?.users.add(user);
    if (known && clock.now() - known.at < maxAgeMs) return known.secret;
    const secret = this.#fetch(namespace, name, known?.secret);
    const entry: Entry = { secret, at: clock.now(), users: known?.users ?? new Set([user]) };
    this.#entries.set(key, entry);
    void secret.then(result => {
      if ('problem' in result) entry.at = -Infinity;
    });
    return secret;
  }

  /** While the API server does not respond, the last data count. */
  async #fetch(namespace: string, name: string, last: Promise<Secret> | undefined): Promise<Secret> {
    const { referenced, ownNamespace } = this.#deps;
    if (namespace === ownNamespace) return { problem: ownSecrets(namespace) };
    try {
      const secret = await referenced.secret(namespace, name);
      if (secret) return { data: secret.data };
      return {
        problem: `Secret ${namespace}/${name} does not exist: create it, or correct secretKeyRef.name`,
      };
    } catch (error) {
      const isRefused = error instanceof ResourceError && error.reason === 'Refused';
      if (isRefused && ownNamespace !== undefined) return { problem: notAllowed(namespace, ownNamespace) };
      const why = error instanceof Error ? error.message : String(error);
      return (await last) ?? { problem: `Secret ${namespace}/${name} cannot be read: ${why}` };
    }
  }
}

function ownSecrets(namespace: string): string {
  return `the Secrets of namespace ${namespace} are those of mesh-gateway: move the object to another namespace`;
}

function notAllowed(namespace: string, ownNamespace: string): string {
  return `the operator may not read Secrets of namespace ${namespace}: apply
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: ${SECRET_READER}
  namespace: ${namespace}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: ${clusterNameIn(ownNamespace, SECRET_READER)}
subjects:
  - kind: ServiceAccount
    name: ${COMPONENTS.operator}
    namespace: ${ownNamespace}
`;
}
