import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import type { ApiScene } from './api-scene.ts';

/** The number of requests for pages, watches and discovery. */
export function requestCounts({ server }: ApiScene): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { for: what } of server.requests) counts[what] = (counts[what] ?? 0) + 1;
  return counts;
}

/** The state of each reflector, as its activity shows it. */
export function reflectorStates({ telemetry }: ApiScene): readonly string[] {
  const all = telemetry.activities.list().get('source kubernetes') ?? [];
  return all.map(({ what, state }) => `${what} ${state}`);
}

/** Waits until the reflectors have these states. */
export async function untilStates(scene: ApiScene, ...states: readonly string[]): Promise<void> {
  await eventually(() => expect(reflectorStates(scene)).toEqual(states));
}

/** Waits until a watch is open. */
export async function untilWatching({ server }: ApiScene): Promise<void> {
  await eventually(() => expect(server.watches).not.toEqual([]));
}
