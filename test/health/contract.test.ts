import { describeProbe } from '../contract/probe.ts';
import { startMember } from '../support/health/member.ts';
import { startTestRelay } from '../support/relay/running-relay.ts';
import { startSocksServer } from '../support/relay/socks-server.ts';

describeProbe('checks through the proxy of tests', async () => {
  const member = await startMember();
  const socks = await startSocksServer();
  const running = startTestRelay({ socks, addresses: [member.proxy.address] });
  return {
    member,
    address: '127.0.0.1',
    relayPort: async port => {
      await running.update({ [20_000 + (port % 10_000)]: { address: '127.0.0.1', port } });
      return 20_000 + (port % 10_000);
    },
    stop: () => member.close(),
    close: async () => {
      await running.relay.close();
      await socks.stop();
      await member.close();
    },
  };
});
