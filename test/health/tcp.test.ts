import { describe, expect, it } from 'vitest';
import { checkOf, startProbing } from '../support/health/probing.ts';
import { closedPort, startTcpService } from '../support/health/services.ts';

const TCP = { type: 'TCP' } as const;

describe.each(['pool', 'direct'] as const)('a TCP check by way of %s', is => {
  const via = { is };

  it('succeeds as soon as the service accepts the connection, and closes it', async () => {
    const { probe } = await startProbing();
    let closed: Promise<unknown> | undefined;
    const { port, connections } = await startTcpService(socket => {
      socket.resume();
      closed = new Promise(resolve => socket.once('close', resolve));
    });
    expect(await probe(checkOf(port, TCP, { via }))).toEqual({ is: 'success' });
    expect(connections()).toBe(1);
    await closed;
  });

  it('fails where nothing listens', async () => {
    const { probe } = await startProbing();
    const result = await probe(checkOf(await closedPort(), TCP, { via }));
    expect(result).toMatchObject({ is: 'failure', error: 'connection refused', code: 'ECONNREFUSED' });
  });

  it('tries the addresses in their order', async () => {
    const { probe } = await startProbing();
    const { port } = await startTcpService();
    const target = { addresses: ['127.255.255.1', '::1', '127.0.0.1'], port };
    expect(await probe(checkOf(port, TCP, { via, target }))).toEqual({ is: 'success' });
  });
});

describe('a direct check', () => {
  it('uses no member of a pool', async () => {
    const { member, probe } = await startProbing([]);
    const { port } = await startTcpService();
    expect(await probe(checkOf(port, TCP, { via: { is: 'direct' } }))).toEqual({ is: 'success' });
    expect(member.connects).toEqual([]);
  });
});
