import { isEqual } from '../../api/equal.ts';
import { formatFault } from '../../api/fault.ts';
import { VERSION } from '../../api/generated/kinds.ts';
import type { KindName } from '../../api/generated/kinds.ts';
import type { Ref } from '../../api/key.ts';
import { refTo } from '../../api/references.ts';
import { validate } from '../../api/validate.ts';
import { ResourceError } from '../resources.ts';
import type { OwnResource, WriteResources } from '../resources.ts';
import { pathOf } from './kinds.ts';
import { applyWords } from './write-apply.ts';
import { contendedError, goneError, wordsFor } from './write-error.ts';
import { failedFor, lookAt, MOST_ATTEMPTS, Said, takeAnswer } from './write-ports.ts';
import type { WritePorts } from './write-ports.ts';

/**
 * Writes statuses. An API server disregards the uid in a status that is applied: it would put it onto another object
 * that has the name by now. So each is applied over a version that is known to be of the object's own life.
 */
export function statusWriter(ports: WritePorts): WriteResources['replaceStatus'] {
  const said = new Said(ports.read);
  return async (object, status) => {
    const ref = refTo<KindName>(object);
    const stored = sameLife(object, ports.read.get(ref));
    const known = stored ?? object;
    const wanted = judgedStatus(known, status);
    if (stored && (isEqual(stored.status ?? {}, wanted) || said.has(stored, wanted))) return;
    const answer = await applyStatus(ports, ref, known, wanted);
    takeAnswer(ports, answer);
    said.note(ref, answer, wanted);
  };
}

/** What the store has, if it is the same life of the object that was read. */
export function sameLife(object: OwnResource, stored: OwnResource | undefined): OwnResource | undefined {
  return stored?.metadata.uid === object.metadata.uid ? stored : undefined;
}

function judgedStatus(known: OwnResource, status: unknown): unknown {
  const verdict = validate(known.kind, { ...known, status });
  if (verdict.valid) return verdict.object.status;
  const faults = verdict.faults.map(formatFault).join('; ');
  throw new ResourceError('Refused', `${wordsFor(refTo(known))}: ${faults}`);
}

async function applyStatus(
  ports: WritePorts,
  ref: Ref,
  { apiVersion, kind, metadata }: OwnResource,
  status: unknown,
): Promise<unknown> {
  const path = pathOf(ref, VERSION);
  const { name, namespace, uid } = metadata;
  let { resourceVersion } = metadata;
  // An empty status would be no status at all: while it is there, a server refuses others who take theirs back.
  const words = isEqual(status, {}) ? {} : { status };
  for (let attempts = 1; attempts <= MOST_ATTEMPTS; attempts++) {
    try {
      const said = { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion }, ...words };
      return await applyWords(ports, `${path}/status`, said);
    } catch (failure) {
      if (failedFor(failure, 'NotFound')) throw goneError(ref);
      if (!failedFor(failure, 'Conflict')) throw failure;
      const seen = await lookAt(ports, path);
      if (seen?.uid !== uid) throw goneError(ref);
      resourceVersion = seen?.version;
    }
  }
  throw contendedError(ref);
}
