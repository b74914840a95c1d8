import { expect, it } from 'vitest';
import { openClient, startUdpService } from '../support/relay/datagrams.ts';
import { startTestRelay } from '../support/relay/running-relay.ts';
import { startSocksServer } from '../support/relay/socks-server.ts';

it('a datagram reaches its target through the proxy, and its reply the client', async () => {
  const socks = await startSocksServer();
  const echo = await startUdpService();
  const running = startTestRelay({ socks });
  await running.update({ 20000: echo });
  const client = await openClient(running.address, 20000);
  await client.exchange('hello');
  expect(await running.packets()).toEqual({ 'to_mesh forwarded': 1, 'from_mesh forwarded': 1 });
  expect(await running.associations()).toBe(1);
  await running.relay.close();
  client.close();
  echo.close();
  await socks.stop();
});
