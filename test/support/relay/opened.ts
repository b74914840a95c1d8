import { onTestFinished } from 'vitest';
import type { RelayOptions } from '../../../src/relay/relay.ts';
import { openClient, startUdpService } from './datagrams.ts';
import type { UdpClient, UdpService } from './datagrams.ts';
import { startTestRelay } from './running-relay.ts';
import type { RunningRelay } from './running-relay.ts';
import { startSocksServer } from './socks-server.ts';
import type { SocksServer } from './socks-server.ts';

/** A relay whose port 20000 forwards to an echo service, until the test has finished. */
export type OpenedRelay = {
  readonly running: RunningRelay;
  readonly socks: SocksServer;
  readonly echo: UdpService;
  readonly client: (port?: number, address?: string) => Promise<UdpClient>;
};

/** Starts a relay with its proxy and an echo service. */
export async function openRelay(options: Partial<RelayOptions> = {}): Promise<OpenedRelay> {
  const [socks, echo] = [await startSocksServer(), await startUdpService()];
  const running = startTestRelay({ socks, ...options });
  const clients: UdpClient[] = [];
  onTestFinished(async () => {
    await running.relay.close();
    for (const client of clients) client.close();
    echo.close();
    await socks.stop();
  });
  await running.update({ 20000: echo });
  return {
    running,
    socks,
    echo,
    client: async (port = 20000, address = running.address) => {
      const client = await openClient(address, port);
      clients.push(client);
      return client;
    },
  };
}
