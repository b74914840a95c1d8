import { isEqual } from '../api/equal.ts';
import { LABELS } from '../api/names.ts';
import { isRecord } from '../api/rule-functions.ts';
import { adviceFor } from './advice.ts';
import { joinedFailure } from './joined-failure.ts';
import { checkStanding, metadataIn, standingOf } from './standing.ts';
import type { Live } from './standing.ts';
import { idOf, wantedIn } from './words.ts';
import type { Wanted, WorkloadId } from './words.ts';
import { WorkloadError } from './workloads.ts';
import type { Applied, WorkloadKind, WorkloadObject, Workloads, WorkloadSet } from './workloads.ts';

/** Whoever else has something in the same namespaces. */
interface Others {
  /** Makes an object that is theirs. */
  create(object: WorkloadObject): Promise<void>;
  /** Merges something into an object of anybody; null takes a field away. */
  change(place: Place, change: Live): Promise<void>;
  remove(place: Place): Promise<void>;
}

/** Where an object is. */
type Place = { readonly kind: WorkloadKind; readonly namespace: string; readonly name: string };

/** Workloads that are nowhere but in memory, where they live as they would in a cluster in which nothing runs. */
export type WorkloadMemory = {
  readonly workloads: Workloads;
  readonly others: Others;
  readonly get: (place: Place) => Live | undefined;
};

/** An object, and what we last said of it. */
type Kept = { readonly live: Live; readonly said: Live };

const MAKER = 'us';

/** Makes an empty memory. */
export function createWorkloadMemory(): WorkloadMemory {
  const store = new Store();
  return {
    workloads: { apply: set => promised(() => applySet(store, set)) },
    others: {
      create: object => promised(() => store.create(object)),
      change: (place, change) => promised(() => store.change(place, change)),
      remove: place => promised(() => store.remove(place)),
    },
    get: place => store.get(place)?.live,
  };
}

class Store {
  readonly #kept = new Map<string, Kept>();
  #version = 0;

  get(place: Place): Kept | undefined {
    return this.#kept.get(keyOf(place));
  }

  in(namespace: string): readonly (readonly [WorkloadId, Place, Live])[] {
    return [...this.#kept.values()].flatMap(({ live }) => {
      const place = placeOf(live);
      return place.namespace === namespace ? [[idOf(place.kind, place.name), place, live] as const] : [];
    });
  }

  put(place: Place, live: Live, said: Live): void {
    const version = String(++this.#version);
    const uid = metadataIn(this.get(place)?.live ?? {})['uid'] ?? `uid-${version}`;
    const metadata = { ...metadataIn(live), uid, resourceVersion: version };
    this.#kept.set(keyOf(place), { live: { ...live, metadata }, said });
  }

  remove(place: Place): void {
    this.#kept.delete(keyOf(place));
  }

  create(object: WorkloadObject): void {
    this.put(placeOf(object), object, {});
  }

  change(place: Place, change: Live): void {
    const kept = this.get(place);
    if (!kept) throw new Error(`${place.kind} ${place.name} is not there`);
    this.put(place, merged(kept.live, change), kept.said);
  }
}

function applySet(store: Store, set: WorkloadSet): Applied {
  const wanted = wantedIn(set);
  const failures: unknown[] = [];
  const done = { created: [] as string[], changed: [] as string[] };
  for (const one of wanted) {
    try {
      const what = applyOne(store, set, one);
      if (what !== 'nothing') done[what].push(one.id);
    } catch (failure) {
      failures.push(failure);
    }
  }
  if (failures.length > 0) throw joinedFailure(failures);
  const ids = new Set(wanted.map(({ id }) => id));
  const left = store.in(set.namespace).filter(([id, , live]) => !ids.has(id) && isLeft(live, set));
  for (const [, place] of left) store.remove(place);
  return { ...done, removed: left.map(([id]) => id) };
}

function isLeft(live: Live, set: WorkloadSet): boolean {
  const { labels } = metadataIn(live);
  const isLabelled = isRecord(labels) && labels[LABELS.owner] === set.inventory;
  return isLabelled && standingOf(live, set, MAKER) === 'ours';
}

function applyOne(store: Store, set: WorkloadSet, wanted: Wanted): 'created' | 'changed' | 'nothing' {
  const { id, kind, name, words } = wanted;
  checkName(wanted);
  const place = { kind, namespace: set.namespace, name };
  const kept = store.get(place);
  if (!kept) {
    store.put(place, words, words);
    return 'created';
  }
  checkStanding(id, withMaker(kept), set, MAKER);
  const next = said(kept.live, kept.said, words);
  const isFixed = FIXED[kind]?.some(path => !isEqual(valueAt(kept.live, path), valueAt(next, path))) ?? false;
  if (isFixed) throw new WorkloadError('Refused', adviceFor(wanted, set.namespace));
  if (isEqual(kept.live, next)) return 'nothing';
  store.put(place, next, words);
  return 'changed';
}

/** What an API server says of who made it. */
function withMaker({ live, said }: Kept): Live {
  if (Object.keys(said).length === 0) return live;
  const managedFields = [{ manager: MAKER, operation: 'Apply' }];
  return { ...live, metadata: { ...metadataIn(live), managedFields } };
}

const NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

function checkName({ id, name }: Wanted): void {
  if (!NAME.test(name)) throw new WorkloadError('Refused', `${id}: metadata.name is not valid`);
}

/** What never changes in the life of an object, where we say it. */
const FIXED: Readonly<Partial<Record<WorkloadKind, readonly (readonly string[])[]>>> = {
  Deployment: [['spec', 'selector']],
  RoleBinding: [['roleRef']],
  StatefulSet: [
    ['spec', 'selector'],
    ['spec', 'serviceName'],
    ['spec', 'volumeClaimTemplates'],
  ],
};

function valueAt(live: Live, [step = '', ...rest]: readonly string[]): unknown {
  const value = live[step];
  if (rest.length === 0) return value;
  return isRecord(value) ? valueAt(value, rest) : undefined;
}

/** An object after we said something of it, having said something else before. */
function said(live: Live, before: Live, words: Live): Live {
  const next: Record<string, unknown> = { ...live };
  for (const name of Object.keys(before)) if (!Object.hasOwn(words, name)) Reflect.deleteProperty(next, name);
  for (const [name, value] of Object.entries(words)) {
    const [old, then] = [next[name], before[name]];
    next[name] = isRecord(value) && isRecord(old) ? said(old, isRecord(then) ? then : {}, value) : value;
  }
  return next;
}

function merged(live: Live, change: Live): Live {
  const next: Record<string, unknown> = { ...live };
  for (const [name, value] of Object.entries(change)) {
    const old = next[name];
    if (value === null) Reflect.deleteProperty(next, name);
    else next[name] = isRecord(value) ? merged(isRecord(old) ? old : {}, value) : value;
  }
  return next;
}

function placeOf(live: Live): Place {
  const { namespace, name } = metadataIn(live);
  return { kind: live['kind'] as WorkloadKind, namespace: String(namespace), name: String(name) };
}

function keyOf({ kind, namespace, name }: Place): string {
  return `${kind}/${namespace}/${name}`;
}

/** Does it at once, and lets a promise tell how it went. */
function promised<T>(act: () => T): Promise<T> {
  return new Promise(resolve => resolve(act()));
}
