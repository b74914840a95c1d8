import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openClient, startUdpService } from '../support/relay/datagrams.ts';
import { startTestRelay } from '../support/relay/running-relay.ts';
import { startSocksServer } from '../support/relay/socks-server.ts';

/** The handles of sockets that are open in this process. */
function sockets(): number {
  return process.getActiveResourcesInfo().filter(name => /^(UDP|TCP)/.test(name)).length;
}

describe('a relay that is closed', () => {
  it.each(['open', 'hang'] as const)('leaves no socket and no timer (associations: %s)', async answer => {
    const [socks, echo] = [await startSocksServer(), await startUdpService()];
    socks.answer = answer;
    const before = sockets();
    const running = startTestRelay({ socks });
    await running.update(
      Object.fromEntries(Array.from({ length: 50 }, (_, index) => [20_000 + index, echo])),
    );
    const clients = await Promise.all(
      Array.from({ length: 50 }, (_, index) => openClient(running.address, 20_000 + index)),
    );
    for (const client of clients) client.send('hello');
    await eventually(() => expect(socks.requests()).toBe(50));
    expect(sockets()).toBeGreaterThan(before + 100);
    await running.update({});
    await running.relay.close();
    for (const client of clients) client.close();
    await eventually(() => expect(sockets()).toBeLessThanOrEqual(before));
    expect(running.clock.timers).toBe(0);
    echo.close();
    await socks.stop();
  });
});
