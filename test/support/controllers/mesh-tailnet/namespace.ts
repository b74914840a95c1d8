import { isEqual } from '../../../../src/api/json.ts';
import type {
  NewSecret,
  OwnData,
  OwnerReference,
  OwnNamespace,
  OwnSecret,
  SecretChange,
  Workload,
  WorkloadKind,
} from '../../../../src/store/own-namespace.ts';
import { ResourceError } from '../../../../src/store/resources.ts';

type Texts = Readonly<Record<string, string>>;

/** An object as the namespace stores it; the data of Secrets are texts. */
export type StoredObject = {
  readonly kind: WorkloadKind;
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly generation: number;
    readonly resourceVersion: string;
    readonly labels?: Texts;
    readonly annotations?: Texts;
    readonly ownerReferences?: readonly OwnerReference[];
  };
  readonly [field: string]: unknown;
};

/** The operator's namespace in memory, with the lifecycle that an API server gives its objects. */
export class MemoryNamespace implements OwnNamespace {
  readonly namespace = 'mesh-system';
  readonly place = 'namespace mesh-system';
  /** Deletes a pod, as pods are not kept here. */
  deletePod: (name: string, uid?: string) => void = () => undefined;
  readonly #objects = new Map<string, StoredObject>();
  #last = 0;

  secret(name: string): Promise<OwnSecret | undefined> {
    return Promise.resolve(this.readSecret(name));
  }

  configMap(name: string): Promise<OwnData | undefined> {
    const stored = this.find('ConfigMap', name);
    return Promise.resolve(stored && dataOf(stored));
  }

  serviceAccountToken(): Promise<string> {
    return Promise.reject(new ResourceError('Refused', 'this namespace issues no tokens'));
  }

  apply(object: Workload): Promise<void> {
    return settled(() => void this.#put(object));
  }

  get(kind: WorkloadKind, name: string): Promise<StoredObject | undefined> {
    return Promise.resolve(this.find(kind, name));
  }

  createSecret({ data, ...metadata }: NewSecret): Promise<void> {
    return settled(() => {
      if (this.find('Secret', metadata.name)) {
        throw new ResourceError('Unavailable', `Secret ${metadata.name} exists already`);
      }
      this.#put({ apiVersion: 'v1', kind: 'Secret', metadata, data });
    });
  }

  changeSecret(name: string, version: string, change: SecretChange): Promise<void> {
    return settled(() => {
      const stored = this.find('Secret', name);
      if (!stored) throw new ResourceError('Gone', `Secret ${name} does not exist`);
      if (stored.metadata.resourceVersion !== version) {
        throw new ResourceError('Unavailable', `Secret ${name} was changed since it was read`);
      }
      this.patchSecret(name, change);
    });
  }

  remove(kind: WorkloadKind | 'Pod', name: string, uid?: string): Promise<void> {
    return settled(() => {
      if (kind === 'Pod') this.deletePod(name, uid);
      else if (uid === undefined || this.find(kind, name)?.metadata.uid === uid) this.delete(kind, name);
    });
  }

  /** Deletes everything, as the deletion of the namespace does. */
  clear(): void {
    this.#objects.clear();
  }

  /** All objects. */
  list(): readonly StoredObject[] {
    return [...this.#objects.values()];
  }

  find(kind: WorkloadKind, name: string): StoredObject | undefined {
    return this.#objects.get(`${kind}/${name}`);
  }

  readSecret(name: string): OwnSecret | undefined {
    const stored = this.find('Secret', name);
    return stored && { ...dataOf(stored), annotations: stored.metadata.annotations ?? {} };
  }

  /** Changes whatever version a Secret has, as containerboot does; one that does not exist is not created. */
  patchSecret(name: string, { data = {}, annotations = {} }: SecretChange): void {
    const stored = this.find('Secret', name);
    if (!stored) return;
    const secret = { ...dataOf(stored), annotations: stored.metadata.annotations ?? {} };
    const metadata = { ...stored.metadata, annotations: patched(secret.annotations, annotations) };
    this.#put({ ...stored, apiVersion: 'v1', metadata, data: patched(secret.data, data) });
  }

  setStatus({ kind, metadata }: StoredObject, status: object): void {
    const stored = this.find(kind, metadata.name);
    if (!stored || isEqual(stored['status'], status)) return;
    const next = { ...stored.metadata, resourceVersion: this.#version() };
    this.#objects.set(`${kind}/${metadata.name}`, { ...stored, metadata: next, status });
  }

  delete(kind: WorkloadKind, name: string): void {
    this.#objects.delete(`${kind}/${name}`);
  }

  #version(): string {
    return String(++this.#last);
  }

  #put(object: Workload): StoredObject {
    const key = `${object.kind}/${object.metadata.name}`;
    const existing = this.#objects.get(key);
    const { uid = `uid-${this.#last + 1}`, generation = 0, resourceVersion = '' } = existing?.metadata ?? {};
    const declared: Workload = { ...withAddress(object, existing), status: existing?.['status'] };
    const isSameSpec = isEqual(existing?.['spec'], declared['spec']);
    const metadata = { uid, generation: isSameSpec ? generation : generation + 1 };
    const next = { ...declared, metadata: { ...object.metadata, ...metadata, resourceVersion } };
    if (existing && isEqual(existing, next)) return existing;
    const stored = { ...next, metadata: { ...next.metadata, resourceVersion: this.#version() } };
    this.#objects.set(key, stored);
    return stored;
  }
}

/** A Service gets an address of the cluster, and keeps it. */
function withAddress(object: Workload, existing: StoredObject | undefined): Workload {
  if (object.kind !== 'Service') return object;
  const { clusterIP = '10.96.0.10' } = (existing?.['spec'] ?? {}) as { readonly clusterIP?: string };
  return { ...object, spec: { clusterIP, ...(object['spec'] as object) } };
}

function dataOf({ metadata, data = {} }: StoredObject): OwnData & { readonly version: string } {
  return { version: metadata.resourceVersion, data: data as Texts };
}

function patched(texts: Texts, change: Readonly<Record<string, string | null>>): Texts {
  const entries = Object.entries({ ...texts, ...change });
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== null));
}

/** Acts at once; the promise rejects where that throws. */
function settled<T>(act: () => T): Promise<T> {
  return new Promise(resolve => resolve(act()));
}
