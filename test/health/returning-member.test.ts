import { describe, expect, it } from 'vitest';
import { checkOf, httpSettings, startProbing } from '../support/health/probing.ts';
import type { Probing } from '../support/health/probing.ts';
import { closedPort, startHttpService } from '../support/health/services.ts';

/** A check of a closed port through a member that was not on the tailnet, and responds again. */
async function startReturning() {
  const probing = await startProbing();
  const { health } = probing.member;
  const check = checkOf(await closedPort(), httpSettings());
  health.meshd = 503;
  const outcomes = [await outcomeOf(probing, check)];
  health.meshd = 200;
  return { ...probing, outcomes, outcome: () => outcomeOf(probing, check) };
}

/** The result of a check that finds the member checked no more. */
async function outcomeOf({ probe, clock }: Probing, check: ReturnType<typeof checkOf>): Promise<string> {
  const { is } = await probe(check);
  await clock.advance(100);
  return is;
}

describe('a mesh pod that did not respond and responds again', () => {
  it('makes no endpoint fail until one is reached through it', async () => {
    const { probe, outcomes, outcome } = await startReturning();
    outcomes.push(await outcome());
    const { port } = await startHttpService((_request, response) => void response.end());
    await probe(checkOf(port, httpSettings()));
    expect([...outcomes, await outcome()]).toEqual(['unknown', 'unknown', 'failure']);
  });

  it('makes endpoints fail after 30 s at the latest', async () => {
    const { clock, outcomes, outcome } = await startReturning();
    outcomes.push(await outcome());
    await clock.advance(30_000);
    expect([...outcomes, await outcome()]).toEqual(['unknown', 'unknown', 'failure']);
  });
});
