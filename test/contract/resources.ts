import { describe, it } from 'vitest';
import type { Change } from '../../src/store/resources.ts';
import { changeCases } from './resources-changes.ts';
import { ownedCases } from './resources-owned.ts';
import { readingCases } from './resources-reading.ts';
import { foreignCases } from './resources-routes.ts';
import { byBackend, byTailnet } from './resources-scene.ts';
import type { Case, Opened, Setup } from './resources-scene.ts';
import { writingCases } from './resources-writing.ts';

/** The contract of every source of declarations. */
const cases: Readonly<Record<string, Case>> = {
  ...readingCases,
  ...foreignCases,
  ...changeCases,
  ...writingCases,
  ...ownedCases,
};

/** Runs the contract on an adapter; each case opens a new one. */
export function describeResources(name: string, open: (setup: Setup) => Promise<Opened>): void {
  describe(name, () => {
    it.each(Object.entries(cases))('%s', async (_sentence, { first = [], begins, expect }) => {
      const changes: Change[] = [];
      const failures: unknown[] = [];
      const indexes = [byTailnet, byBackend];
      const opened = await open({ indexes, first, reportFailure: failure => failures.push(failure) });
      try {
        opened.read.subscribe(change => changes.push(change));
        if (begins !== 'before-reading') {
          await opened.start();
          await opened.read.whenSynced();
        }
        await expect({ ...opened, changes, failures });
      } finally {
        await opened.close();
      }
    });
  });
}
