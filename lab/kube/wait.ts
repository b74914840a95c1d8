import { DEFAULT_TIMEOUT_MS, until } from '../process/wait.ts';
import type { KubeClient } from './client.ts';
import { KubeError } from './error.ts';
import { nameRef } from './object.ts';
import type { KubeObject, KubeRef } from './object.ts';
import { conditionsOf, describeState } from './state.ts';

const EVERY_MS = 100;

/** Waits until an object satisfies a predicate, and returns it; the timeout error has its last state. */
export async function waitForObject(
  client: KubeClient,
  ref: KubeRef,
  what: string,
  predicate: (object: KubeObject) => boolean,
  timeoutMs = DEFAULT_TIMEOUT_MS,
): Promise<KubeObject> {
  const check = async (note: (seen: string) => void) => {
    const object = await client.get(ref);
    note(describeState(object));
    return predicate(object) ? object : undefined;
  };
  return await until(`${nameRef(ref)} ${what}`, check, { timeoutMs, everyMs: EVERY_MS });
}

/** Waits until an object has a condition for its current generation. */
export async function waitForCondition(
  client: KubeClient,
  ref: KubeRef,
  type: string,
  status = 'True',
  timeoutMs = DEFAULT_TIMEOUT_MS,
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

/** Waits until an object is deleted. */
export async function waitForAbsence(
  client: KubeClient,
  ref: KubeRef,
  timeoutMs = DEFAULT_TIMEOUT_MS,
): Promise<void> {
  const check = async (note: (seen: string) => void) => {
    try {
      note(describeState(await client.get(ref)));
      return undefined;
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return true;
      throw error;
    }
  };
  await until(`${nameRef(ref)} to be deleted`, check, { timeoutMs, everyMs: EVERY_MS });
}
