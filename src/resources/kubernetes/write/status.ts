import { isEqual } from '../../../api/json.ts';
import { formatFault } from '../../../api/validation/fault.ts';
import { VERSION } from '../../../api/generated/kinds.ts';
import type { KindName } from '../../../api/generated/kinds.ts';
import type { Ref } from '../../../api/key.ts';
import { refTo } from '../../../api/references.ts';
import { validate } from '../../../api/validation/validate.ts';
import { ResourceError } from '../../resources.ts';
import type { OwnResource } from '../../resources.ts';
import { pathOf } from '../served-kinds.ts';
import { contendedError, goneError, wordsFor } from './errors.ts';
import { apply, failedFor, getLive, MAX_ATTEMPTS, takeAnswer } from './requests.ts';
import type { WriteDeps } from './requests.ts';

/**
 * Writes a status. An API server disregards the uid in a status that is applied: it would put it onto another object
 * that has the name by now. So each is applied over a version that is known to be of the same object.
 */
export async function replaceStatus<T extends OwnResource>(
  deps: WriteDeps,
  object: T,
  status: NonNullable<T['status']>,
): Promise<void> {
  const ref = refTo<KindName>(object);
  const stored = sameObject(object, deps.read.get(ref));
  const known = stored ?? object;
  const wanted = judgedStatus(known, status);
  if (stored && (isEqual(stored.status ?? {}, wanted) || deps.applied.has(stored, wanted))) return;
  const answer = await applyStatus(deps, ref, known, wanted);
  takeAnswer(deps, answer);
  deps.applied.note(ref, answer, wanted);
}

/** What the store has, if it is the object that was read and no later one of its name. */
export function sameObject(object: OwnResource, stored: OwnResource | undefined): OwnResource | undefined {
  return stored?.metadata.uid === object.metadata.uid ? stored : undefined;
}

function judgedStatus(known: OwnResource, status: unknown): unknown {
  const verdict = validate(known.kind, { ...known, status });
  if (verdict.valid) return verdict.object.status;
  const faults = verdict.faults.map(formatFault).join('; ');
  throw new ResourceError('Refused', `${wordsFor(refTo(known))}: ${faults}`);
}

async function applyStatus(
  deps: WriteDeps,
  ref: Ref,
  { apiVersion, kind, metadata }: OwnResource,
  status: unknown,
): Promise<unknown> {
  const path = pathOf(ref, VERSION);
  const { name, namespace, uid } = metadata;
  let { resourceVersion } = metadata;
  // An empty status would be no status at all: while it exists, a server refuses others who take theirs back.
  const fields = isEqual(status, {}) ? {} : { status };
  for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
    try {
      const value = { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion }, ...fields };
      return await apply(deps, `${path}/status`, value);
    } catch (failure) {
      if (failedFor(failure, 'NotFound')) throw goneError(ref);
      if (!failedFor(failure, 'Conflict')) throw failure;
      const seen = await getLive(deps, path);
      if (seen?.uid !== uid) throw goneError(ref);
      resourceVersion = seen?.version;
    }
  }
  throw contendedError(ref);
}
