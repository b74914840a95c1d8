import { describe, expect, it } from 'vitest';
import type { ProbeProxy } from '../../src/health/check.ts';
import { checkOf, httpSettings, startProbing } from '../support/health/probing.ts';
import { closedPort, startHttpService } from '../support/health/services.ts';

/** A probe through one member, which is found not to belong to the tailnet, if it `isLost`, when it is asked for. */
async function startLosing({ isLost }: { readonly isLost: boolean }) {
  const members: ProbeProxy[] = [];
  const asked: string[] = [];
  const probing = await startProbing(members, tailnet => {
    asked.push(tailnet);
    if (isLost) members.length = 0;
    return Promise.resolve();
  });
  members.push(probing.member);
  return { ...probing, asked };
}

describe('a check that fails while none reaches an endpoint', () => {
  it('is no result of the endpoint where the mesh pod has lost its device', async () => {
    const { probe, asked } = await startLosing({ isLost: true });
    expect(await probe(checkOf(await closedPort(), httpSettings()))).toEqual({
      is: 'unknown',
      why: 'meshd-0 has no device: connection refused',
    });
    expect(asked).toEqual(['example']);
  });

  it('is a failure where the mesh pod has its device', async () => {
    const { probe } = await startLosing({ isLost: false });
    expect(await probe(checkOf(await closedPort(), httpSettings()))).toMatchObject({ is: 'failure' });
  });

  it('is a failure, and asks for no device, where another one reaches its endpoint meanwhile', async () => {
    const { probe, member, asked } = await startLosing({ isLost: true });
    const { port } = await startHttpService((_request, response) => void response.end());
    const { onConnect } = member;
    const held: (() => void)[] = [];
    member.onConnect = (...given) => void held.push(() => onConnect(...given));
    const failing = probe(checkOf(await closedPort(), httpSettings()));
    while (held.length === 0) await new Promise(setImmediate);
    member.onConnect = onConnect;
    expect(await probe(checkOf(port, httpSettings()))).toMatchObject({ is: 'success' });
    for (const release of held) release();
    expect(await failing).toMatchObject({ is: 'failure' });
    expect(asked).toEqual([]);
  });
});
