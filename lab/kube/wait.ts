import { PATIENCE_MS, waitFor } from '../process/wait.ts';
import type { KubeClient } from './client.ts';
import { KubeError } from './error.ts';
import { nameRef } from './object.ts';
import type { KubeObject, KubeRef } from './object.ts';
import { conditionsOf, describeState } from './state.ts';

const EVERY_MS = 100;

/** Waits until an object is as it should be, and gives it; the error of a wait in vain tells its state as last seen. */
export async function waitForObject(
  client: KubeClient,
  ref: KubeRef,
  what: string,
  predicate: (object: KubeObject) => boolean,
  timeoutMs = PATIENCE_MS,
): Promise<KubeObject> {
  const look = async (note: (seen: string) => void) => {
    const object = await client.get(ref);
    note(describeState(object));
    return predicate(object) ? object : undefined;
  };
  return await waitFor(`${nameRef(ref)} ${what}`, look, { timeoutMs, everyMs: EVERY_MS });
}

/** Waits until an object has a condition; one that is about an older generation of the object does not count. */
export async function waitForCondition(
  client: KubeClient,
  ref: KubeRef,
  type: string,
  status = 'True',
  timeoutMs = PATIENCE_MS,
): Promise<KubeObject> {
  const holds = (object: KubeObject) =>
    conditionsOf(object).some(
      condition =>
        condition.type === type &&
        condition.status === status &&
        (condition.observedGeneration ?? Infinity) >= (object.metadata.generation ?? 0),
    );
  return await waitForObject(client, ref, `to have ${type}=${status}`, holds, timeoutMs);
}

/** Waits until an object is gone. */
export async function waitForAbsence(
  client: KubeClient,
  ref: KubeRef,
  timeoutMs = PATIENCE_MS,
): Promise<void> {
  const look = async (note: (seen: string) => void) => {
    try {
      note(describeState(await client.get(ref)));
      return undefined;
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return true;
      throw error;
    }
  };
  await waitFor(`${nameRef(ref)} to be gone`, look, { timeoutMs, everyMs: EVERY_MS });
}
