import { afterAll, beforeAll } from 'vitest';
import { parseSocketAddress } from '../../../src/api/socket-address.ts';
import { describeProbe } from '../../contract/probe.ts';
import { startPodHealth } from '../../support/health/member.ts';
import { remoteOf, startTestLab } from '../../support/lab/lab.ts';
import type { TestLab } from '../../support/lab/lab.ts';
import { killMeshd, startMeshd, untilMeshdIsOnTheTailnet } from '../../support/lab/meshd.ts';
import { nextAddress, startTestRelay } from '../../support/relay/running-relay.ts';

let own: TestLab;
beforeAll(async () => {
  own = await startTestLab();
});
afterAll(async () => {
  await own.end();
});

describeProbe('checks through a real meshd', async () => {
  const proxy = parseSocketAddress(own.lab.proxy);
  if (!proxy) throw new Error(`${own.lab.proxy} is no address`);
  const pod = nextAddress();
  const { address } = remoteOf(own.lab, 'web-1');
  const health = await startPodHealth(pod);
  const relay = startTestRelay({
    socks: { host: proxy.address, port: proxy.port },
    addresses: [pod],
  });
  let isRunning = true;
  return {
    member: { name: 'meshd-0', proxy, pod },
    address,
    relayPort: async port => {
      const relayPort = 20_000 + (port % 10_000);
      await relay.update({ [relayPort]: { address, port } });
      return relayPort;
    },
    stop: async () => {
      await killMeshd(own);
      isRunning = false;
    },
    close: async () => {
      await relay.relay.close();
      await health.close();
      if (isRunning) return;
      startMeshd(own);
      await untilMeshdIsOnTheTailnet(own);
    },
  };
});
