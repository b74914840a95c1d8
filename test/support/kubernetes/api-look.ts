import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import type { ApiScene } from './api-scene.ts';

/** How often a page, a watch and so on was asked for. */
export function asked({ server }: ApiScene): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { for: what } of server.requests) counts[what] = (counts[what] ?? 0) + 1;
  return counts;
}

/** What each reflector does, in the words of its activity. */
export function stateOf({ telemetry }: ApiScene): readonly string[] {
  const all = telemetry.activities.list().get('source kubernetes') ?? [];
  return all.map(({ what, state }) => `${what} ${state}`);
}

/** Waits until reflectors do something, in the words of their activities. */
export async function doing(scene: ApiScene, ...states: readonly string[]): Promise<void> {
  await eventually(() => expect(stateOf(scene)).toEqual(states));
}

/** Waits until something is watched. */
export async function watched({ server }: ApiScene): Promise<void> {
  await eventually(() => expect(server.watches).not.toEqual([]));
}
