import { LABELS } from '../api/names.ts';
import { SERVED } from './kinds.ts';
import { WorkloadError } from './workloads.ts';
import type { WorkloadKind, WorkloadObject, WorkloadSet } from './workloads.ts';

/** An object among those of a namespace: StatefulSet/meshd-example. */
export type WorkloadId = `${WorkloadKind}/${string}`;

/** One object of a set, with all that we say of it. */
export type Wanted = {
  readonly id: WorkloadId;
  readonly kind: WorkloadKind;
  readonly name: string;
  readonly words: WorkloadObject;
};

/** The id of an object. */
export function idOf(kind: WorkloadKind, name: string): WorkloadId {
  return `${kind}/${name}`;
}

/** What we say of the objects of a set: also whose they are. Fails where it is no set that could be kept together. */
export function wantedIn(set: WorkloadSet): readonly Wanted[] {
  // What is not like this selects other objects than those that have it.
  if (!/^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/.test(set.inventory))
    throw refused(`${JSON.stringify(set.inventory)} cannot be the value of a label`);
  const wanted = set.objects.map(object => wantedFrom(object, set));
  const ids = wanted.map(({ id }) => id);
  const repeated = ids.find((id, at) => ids.indexOf(id) < at);
  if (repeated !== undefined) throw refused(`${repeated} is in the set twice`);
  return wanted;
}

function wantedFrom(object: WorkloadObject, { owner, inventory, namespace }: WorkloadSet): Wanted {
  const { apiVersion, kind, metadata } = object;
  const id = idOf(kind, metadata.name);
  if (metadata.namespace !== namespace)
    throw refused(`${id} is not in the namespace of the set, ${namespace}, but in ${metadata.namespace}`);
  if (!Object.hasOwn(SERVED, kind) || SERVED[kind].apiVersion !== apiVersion)
    throw refused(`${id} is of ${apiVersion}, which has no kind of workloads of this name`);
  const labels = { ...metadata.labels, [LABELS.owner]: inventory };
  const { name, uid } = owner;
  const ownerReferences = [{ apiVersion: owner.apiVersion, kind: owner.kind, name, uid, controller: true }];
  const words = { ...object, metadata: { ...metadata, labels, ownerReferences } };
  return { id, kind, name: metadata.name, words };
}

function refused(message: string): WorkloadError {
  return new WorkloadError('Refused', message);
}
