import type { Clock } from '../../../api/clock.ts';
import { FairLimit } from '../../../api/fair-limit.ts';
import { isEqual } from '../../../api/json.ts';
import type { Key } from '../../../api/key.ts';
import type { Why } from '../../../api/problem.ts';
import { clusterNameIn, COMPONENTS, SECRET_READER } from '../../../api/names.ts';
import { REFERENCE_READ_MS, REFERENCE_READS, SECRET_BYTES } from '../../../api/shares.ts';
import type { OwnData } from '../../../store/own-namespace.ts';
import type { ReadReferenced } from '../../../store/referenced.ts';
import { ResourceError } from '../../../store/resources.ts';

export type SecretsDeps = {
  readonly referenced: Pick<ReadReferenced, 'secret'>;
  /** The namespace of the operator; undefined where there is no cluster. */
  readonly podNamespace: string | undefined;
  readonly clock: Pick<Clock, 'after'>;
  /** How often a Secret is read. */
  readonly periodMs: number;
};

/** The keys of a Secret that have been read, undefined where it does not have them; or why they cannot be used. */
export type Secret = { readonly data: ReadonlyMap<string, string | undefined> } | { readonly problem: Why };

/** The keys that an object uses, by the names of their Secrets. */
export type UsedKeys = ReadonlyMap<string, ReadonlySet<string>>;

type Entry = {
  readonly namespace: string;
  readonly name: string;
  readonly users: Map<Key, ReadonlySet<string>>;
  secret: Secret | undefined;
  /** How many reads in a row have failed. */
  failures: number;
  /** A read that is due later; undefined while one waits for its turn or is in progress. */
  cancel: (() => void) | undefined;
};

type Result = { readonly secret: Secret; readonly hasFailed: boolean };

const FIRST_RETRY_MS = 1000;

/**
 * The Secrets of all objects, read in the background and in turns by namespace, so that no reconcile waits for them. Each is
 * read again after the period; one that is missing or refused after 1 s, 2 s, and so on up to the period.
 */
export class Secrets {
  readonly #deps: SecretsDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #keysOfUsers = new Map<Key, readonly string[]>();
  readonly #listeners = new Set<(user: Key) => void>();
  readonly #limit = new FairLimit(REFERENCE_READS);

  constructor(deps: SecretsDeps) {
    this.#deps = deps;
  }

  /** Calls a listener with each object whose Secrets have changed, once all are read. Nothing is read without a listener. */
  subscribe(listener: (user: Key) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Replaces what an object uses. */
  use(user: Key, namespace: string, used: UsedKeys): void {
    const keys = [...used.keys()].map(name => `${namespace}/${name}`);
    for (const key of this.#keysOfUsers.get(user) ?? []) if (!keys.includes(key)) this.#leave(key, user);
    if (keys.length === 0) this.#keysOfUsers.delete(user);
    else this.#keysOfUsers.set(user, keys);
    for (const [name, keysOfSecret] of used) this.#join({ namespace, name }, user, keysOfSecret);
  }

  /** A Secret as it was read last; undefined before. */
  of(namespace: string, name: string): Secret | undefined {
    return this.#entries.get(`${namespace}/${name}`)?.secret;
  }

  #join(of: Pick<Entry, 'namespace' | 'name'>, user: Key, keys: ReadonlySet<string>): void {
    const key = `${of.namespace}/${of.name}`;
    const known = this.#entries.get(key);
    const entry: Entry = known ?? {
      ...of,
      users: new Map(),
      secret: undefined,
      failures: 0,
      cancel: undefined,
    };
    this.#entries.set(key, entry);
    entry.users.set(user, keys);
    if (!known || (entry.cancel && !isComplete(entry))) this.#enqueue(entry);
  }

  #leave(key: string, user: Key): void {
    const entry = this.#entries.get(key);
    if (!entry?.users.delete(user) || entry.users.size > 0) return;
    entry.cancel?.();
    this.#entries.delete(key);
  }

  #enqueue(entry: Entry): void {
    entry.cancel?.();
    entry.cancel = undefined;
    this.#limit.run([entry.namespace], () => this.#refresh(entry));
  }

  async #refresh(entry: Entry): Promise<void> {
    if (entry.users.size === 0 || this.#listeners.size === 0) return;
    const held = this.#holdPlace();
    this.#store(entry, await this.#read(entry));
    await held;
  }

  #store(entry: Entry, { secret, hasFailed }: Result): void {
    const before = entry.secret;
    entry.secret = secret;
    entry.failures = hasFailed ? entry.failures + 1 : 0;
    if (entry.users.size === 0) return;
    entry.cancel = this.#deps.clock.after(this.#delayOf(entry), () => this.#enqueue(entry));
    if (!isEqual(plain(before), plain(secret))) this.#notify(entry);
  }

  #holdPlace(): Promise<void> {
    return new Promise(resolve => this.#deps.clock.after(REFERENCE_READ_MS, resolve));
  }

  #delayOf(entry: Entry): number {
    const { periodMs } = this.#deps;
    if (entry.failures > 0) return Math.min(FIRST_RETRY_MS * 2 ** (entry.failures - 1), periodMs);
    return isComplete(entry) ? periodMs : 0;
  }

  #notify({ users }: Entry): void {
    for (const user of users.keys()) {
      const isRead = (this.#keysOfUsers.get(user) ?? []).every(key => this.#entries.get(key)?.secret);
      if (isRead) for (const listener of this.#listeners) listener(user);
    }
  }

  /** While the API server does not respond, the last data count. */
  async #read(entry: Entry): Promise<Result> {
    const { namespace, name, secret: last } = entry;
    const { referenced, podNamespace } = this.#deps;
    if (namespace === podNamespace) return failed(ownSecrets(namespace));
    try {
      const found = await referenced.secret(namespace, name);
      return found ? { secret: usedData(found, entry), hasFailed: false } : failed(missing(namespace, name));
    } catch (error) {
      const isRefused = error instanceof ResourceError && error.reason === 'Refused';
      if (isRefused && podNamespace !== undefined) return failed(notAllowed(namespace, podNamespace));
      const why = error instanceof Error ? error.message : String(error);
      return last
        ? { secret: last, hasFailed: true }
        : failed({ text: `Secret ${namespace}/${name} cannot be read: ${why}` });
    }
  }
}

function failed(problem: Why): Result {
  return { secret: { problem }, hasFailed: true };
}

/** Whether all keys that objects use have been read. */
function isComplete({ secret, users }: Entry): boolean {
  if (!secret) return false;
  if ('problem' in secret) return true;
  return [...users.values()].every(keys => [...keys].every(key => secret.data.has(key)));
}

/**
 * Nothing of a Secret but the used keys stays in memory, without surrounding white space, which files of Secrets often end with.
 */
function usedData({ data }: OwnData, { namespace, name, users }: Entry): Secret {
  const keys = new Set([...users.values()].flatMap(each => [...each]));
  const used = new Map([...keys].map(key => [key, data[key]?.trim()]));
  const bytes = [...used.values()].reduce((sum, value = '') => sum + value.length, 0);
  return bytes <= SECRET_BYTES ? { data: used } : { problem: tooLarge(namespace, name) };
}

function plain(secret: Secret | undefined): unknown {
  return secret && 'data' in secret ? [...secret.data] : secret;
}

function missing(namespace: string, name: string): Why {
  const text = `Secret ${namespace}/${name} does not exist`;
  return { text, fix: 'create it, or correct secretKeyRef.name' };
}

function tooLarge(namespace: string, name: string): Why {
  const text = `the keys of Secret ${namespace}/${name} that headersFrom uses exceed ${SECRET_BYTES / 1024} KB`;
  return { text, fix: 'shorten them' };
}

function ownSecrets(namespace: string): Why {
  const text = `the Secrets of namespace ${namespace} are those of mesh-gateway`;
  return { text, fix: 'move the object to another namespace' };
}

function notAllowed(namespace: string, podNamespace: string): Why {
  const text = `the operator may not read Secrets of namespace ${namespace}`;
  const fix = `apply
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: ${SECRET_READER}
  namespace: ${namespace}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: ${clusterNameIn(podNamespace, SECRET_READER)}
subjects:
  - kind: ServiceAccount
    name: ${COMPONENTS.operator}
    namespace: ${podNamespace}
`;
  return { text, fix };
}
