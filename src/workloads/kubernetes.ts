import { isEqual } from '../api/equal.ts';
import { LABELS } from '../api/names.ts';
import { isRecord } from '../api/rule-functions.ts';
import { KubeError } from '../resources/kubernetes/kube-error.ts';
import { askAgain } from '../resources/kubernetes/write-again.ts';
import type { Asking } from '../resources/kubernetes/write-again.ts';
import { isRefusal } from '../resources/kubernetes/write-refusal.ts';
import {
  applying,
  applyingUnforced,
  deleting,
  FIELD_MANAGER,
  getting,
} from '../resources/kubernetes/write-request.ts';
import type { KubeRequest } from '../resources/kubernetes/transport.ts';
import { adviceFor } from './advice.ts';
import { pathOf, pathOfAll } from './kinds.ts';
import { joinedFailure } from './joined-failure.ts';
import { Remembered } from './remembered.ts';
import { checkStanding, isDying, makersOf, metadataIn, standingOf } from './standing.ts';
import type { Live } from './standing.ts';
import { idOf, wantedIn } from './words.ts';
import type { Wanted, WorkloadId } from './words.ts';
import { WORKLOAD_KINDS, WorkloadError } from './workloads.ts';
import type { Applied, WorkloadKind, Workloads, WorkloadSet } from './workloads.ts';

type Ask = (request: KubeRequest) => Promise<unknown>;

/** What was done about an object. */
type Done = 'created' | 'changed' | 'nothing';

/** An object that is there; its kind is known from where it was found. */
type Listed = {
  readonly id: WorkloadId;
  readonly kind: WorkloadKind;
  readonly name: string;
  readonly live: Live;
};

/** Workloads on an API server: what we say is ours, by server-side apply, and what others say stays theirs. */
export function workloadsOn(asking: Asking): Workloads {
  const remembered = new Remembered();
  const ask: Ask = request => askAgain(request, asking);
  return { apply: set => applySet(ask, remembered, set) };
}

async function applySet(ask: Ask, remembered: Remembered, set: WorkloadSet): Promise<Applied> {
  const wanted = wantedIn(set);
  remembered.keepOnly(set, wanted);
  const failures: unknown[] = [];
  const listed = await settled(WORKLOAD_KINDS, kind => listKind(ask, kind, set), failures);
  const found = new Map(listed.flatMap(([, ones]) => ones.map(one => [one.id, one])));
  const applyOne = (one: Wanted) => applyWanted(ask, remembered, set, one, found.get(one.id)?.live);
  const done = new Map<Wanted, Done>();
  // What runs comes after all that it needs to run.
  for (const wave of waves(wanted)) {
    for (const [one, what] of await settled(wave, applyOne, failures)) done.set(one, what);
  }
  if (failures.length > 0) throw joinedFailure(failures);
  const ids = new Set(wanted.map(({ id }) => id));
  const left = [...found.values()].filter(one => !ids.has(one.id) && isOurs(one.live, set));
  await settled(left, one => removeListed(ask, one, set), failures);
  if (failures.length > 0) throw joinedFailure(failures);
  const idsWith = (what: Done) => wanted.filter(one => done.get(one) === what).map(({ id }) => id);
  return { created: idsWith('created'), changed: idsWith('changed'), removed: left.map(({ id }) => id) };
}

/** Does something for each, whatever becomes of the others; what fails is added to the failures. */
async function settled<T, R>(
  all: readonly T[],
  act: (one: T) => Promise<R>,
  failures: unknown[],
): Promise<readonly (readonly [T, R])[]> {
  const outcomes = await Promise.allSettled(all.map(act));
  for (const outcome of outcomes) if (outcome.status === 'rejected') failures.push(outcome.reason);
  return all.flatMap((one, at) => {
    const outcome = outcomes[at];
    return outcome?.status === 'fulfilled' ? [[one, outcome.value] as const] : [];
  });
}

function waves(wanted: readonly Wanted[]): readonly (readonly Wanted[])[] {
  const isRunning = ({ kind }: Wanted) => kind === 'Deployment' || kind === 'StatefulSet';
  return [wanted.filter(one => !isRunning(one)), wanted.filter(isRunning)];
}

function isOurs(live: Live, set: WorkloadSet): boolean {
  return standingOf(live, set, FIELD_MANAGER) === 'ours' && !isDying(live);
}

async function listKind(ask: Ask, kind: WorkloadKind, set: WorkloadSet): Promise<readonly Listed[]> {
  const { namespace, inventory } = set;
  const query = { labelSelector: `${LABELS.owner}=${inventory}` };
  const path = pathOfAll(kind, namespace);
  const answer = await telling(`all ${kind} of ${namespace}`, 'listing them', () =>
    ask({ verb: 'list', path, query }),
  );
  const items = isRecord(answer) && Array.isArray(answer['items']) ? answer['items'].filter(isRecord) : [];
  return items.map(live => {
    const name = String(metadataIn(live)['name']);
    return { id: idOf(kind, name), kind, name, live };
  });
}

async function applyWanted(
  ask: Ask,
  remembered: Remembered,
  set: WorkloadSet,
  wanted: Wanted,
  listed: Live | undefined,
): Promise<Done> {
  const { id, kind, name, words } = wanted;
  const path = pathOf(kind, set.namespace, name);
  const live = listed ?? (await telling(id, 'looking at it', () => lookAt(ask, path)));
  if (!live) {
    remembered.note(set, wanted, await create(ask, path, set, wanted));
    return 'created';
  }
  checkStanding(id, live, set, FIELD_MANAGER);
  if (remembered.has(set, wanted, live)) return 'nothing';
  const { uid } = metadataIn(live);
  const answer = await telling(id, 'applying it', async () => {
    try {
      return await ask(applying(path, { ...words, metadata: { ...words.metadata, uid } }));
    } catch (failure) {
      throw explained(failure, wanted, set);
    }
  });
  remembered.note(set, wanted, answer);
  return isRecord(answer) && isEqual(essenceOf(live), essenceOf(answer)) ? 'nothing' : 'changed';
}

async function lookAt(ask: Ask, path: string): Promise<Live | undefined> {
  try {
    const answer = await ask(getting(path));
    return isRecord(answer) ? answer : undefined;
  } catch (failure) {
    if (failure instanceof KubeError && failure.reason === 'NotFound') return undefined;
    throw failure;
  }
}

/**
 * Makes an object that was not there. No server makes one only where there is none; so nothing is forced, and where
 * somebody was faster all the same, what we said is taken back.
 */
async function create(ask: Ask, path: string, set: WorkloadSet, { id, words }: Wanted): Promise<unknown> {
  const answer = await telling(id, 'making it', () => ask(applyingUnforced(path, words)));
  if (!isRecord(answer) || makersOf(answer).every(maker => maker === FIELD_MANAGER)) return answer;
  const { apiVersion, kind, metadata } = words;
  const { uid } = metadataIn(answer);
  const nothing = { apiVersion, kind, metadata: { name: metadata.name, namespace: set.namespace, uid } };
  await telling(id, 'taking it back', () => ask(applying(path, nothing)));
  throw new WorkloadError('Unavailable', `${id} was made by others at the same time`);
}

async function removeListed(ask: Ask, { id, kind, name, live }: Listed, set: WorkloadSet): Promise<void> {
  const uid = String(metadataIn(live)['uid']);
  await telling(id, 'deleting it', async () => {
    try {
      await ask(deleting(pathOf(kind, set.namespace, name), uid));
    } catch (failure) {
      // It is gone, or another one has its name.
      if (!(failure instanceof KubeError) || !['NotFound', 'Conflict'].includes(failure.reason))
        throw failure;
    }
  });
}

/** All that others or we say of an object: without what counts its changes and what a server says of how it is. */
function essenceOf({ apiVersion: _version, kind: _kind, status: _status, metadata, ...rest }: Live): Live {
  const {
    managedFields: _fields,
    resourceVersion: _resourceVersion,
    generation: _generation,
    ...kept
  } = isRecord(metadata) ? metadata : {};
  return { ...rest, metadata: kept };
}

const NEVER = /immutable|cannot change|may not change|Forbidden: updates to/;

/** A refusal because of the uid means that another object has the name by now. */
function explained(failure: unknown, wanted: Wanted, { namespace }: WorkloadSet): unknown {
  if (!(failure instanceof KubeError) || failure.reason !== 'Invalid') return failure;
  if (failure.message.includes('metadata.uid:'))
    return new WorkloadError('Unavailable', `${wanted.id} is another one by now`, { cause: failure });
  if (!NEVER.test(failure.message)) return failure;
  const message = `${adviceFor(wanted, namespace)}; the server says: ${failure.message}`;
  return new WorkloadError('Refused', message, { cause: failure });
}

async function telling<T>(what: string, doing: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (failure) {
    if (!(failure instanceof KubeError)) throw failure;
    const reason = isRefusal(failure) ? 'Refused' : 'Unavailable';
    throw new WorkloadError(reason, `${what}: ${doing} failed: ${failure.message}`, { cause: failure });
  }
}
