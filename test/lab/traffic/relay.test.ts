import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { listNodes } from '../../../lab/tailnet/tailnet.ts';
import { describeRelay } from '../../contract/relay.ts';
import type { OpenedMesh } from '../../contract/relay.ts';
import { eventually, IS_LONG } from '../../support/eventually.ts';
import { remoteOf, startTestLab } from '../../support/lab/lab.ts';
import type { TestLab } from '../../support/lab/lab.ts';
import { killMeshd, startMeshd, untilMeshdIsOnTheTailnet } from '../../support/lab/meshd.ts';
import { openClient, startUdpService } from '../../support/relay/datagrams.ts';
import type { UdpClient } from '../../support/relay/datagrams.ts';
import { startTestRelay } from '../../support/relay/running-relay.ts';
import type { RunningRelay } from '../../support/relay/running-relay.ts';

let own: TestLab;
beforeAll(async () => {
  own = await startTestLab();
});
afterAll(async () => {
  await own.end();
});

/** A device forwards what it receives to the same port of this machine's loopback, so services of a test are behind it. */
async function openMesh(): Promise<OpenedMesh> {
  const { address } = remoteOf(own.lab, 'web-1');
  const echo = await startUdpService();
  const upper = await startUdpService(payload => [Buffer.from(payload.toString().toUpperCase())]);
  return {
    proxy: { host: '127.0.0.1', port: Number(own.lab.proxy.split(':').at(-1)) },
    echo: { address, port: echo.port },
    upper: { address, port: upper.port },
    restart: async () => {
      await killMeshd(own);
      startMeshd(own);
      await untilMeshdIsOnTheTailnet(own);
    },
    close: () => {
      echo.close();
      upper.close();
      return Promise.resolve();
    },
  };
}

describeRelay('datagrams through a relay and a real meshd', openMesh);

const PORT = 20000;

type Scene = { readonly running: RunningRelay; readonly clients: readonly UdpClient[] };

/** A relay whose port forwards to an echo service, with clients, until the test has finished. */
async function openScene(count: number, to: Partial<OpenedMesh['echo']> = {}): Promise<Scene> {
  const mesh = await openMesh();
  const running = startTestRelay({ socks: mesh.proxy });
  await running.update({ [PORT]: { ...mesh.echo, ...to } });
  const clients = await Promise.all(Array.from({ length: count }, () => openClient(running.address, PORT)));
  onTestFinished(async () => {
    await running.relay.close();
    for (const client of clients) client.close();
    await mesh.close();
  });
  return { running, clients };
}

async function addressesOf(hostname: string): Promise<readonly string[]> {
  const nodes = await listNodes(own.lab.tailnet.admin);
  return nodes.find(node => node.hostname === hostname)?.addresses ?? [];
}

/** The largest payload that meshd carries, by IP version. */
const LARGEST = { IPv4: 8182, IPv6: 1232 } as const;

describe('a real meshd', () => {
  it.each(Object.entries(LARGEST))(
    'carries datagrams up to the documented size to an %s address, and the relay counts longer ones',
    async (version, largest) => {
      const addresses = await addressesOf('web-1');
      const address = addresses.find(each => each.includes(':') === (version === 'IPv6')) ?? '';
      const { running, clients } = await openScene(1, { address });
      const [client] = clients;
      await client?.exchange('x'.repeat(largest));
      client?.send(Buffer.alloc(largest + 1, 'y'));
      await eventually(async () => expect(await running.dropped()).toEqual({ too_large: 1 }));
      await client?.exchange('after');
    },
  );

  it('answers 1,000 clients at once, each its own datagram', async () => {
    const { running, clients } = await openScene(1000);
    await Promise.all(clients.map((client, index) => client.exchange(`client ${index}`)));
    expect(await running.associations()).toBe(1000);
    for (const [index, { received }] of clients.entries()) {
      expect(new Set(received.map(String))).toEqual(new Set([`client ${index}`]));
    }
  });
});

/** As many numbers as the sockets of a meshd hold that waits for a processor. The long form has a machine of its own. */
const MOST_UNDER_WAY = IS_LONG ? Infinity : 5;

/**
 * Sends the numbers of a range, each as a datagram of every client, while the clock of the relay advances; with a limit of
 * those that have not come back.
 */
async function sendNumbers(
  { running, clients }: Scene,
  [from, to]: readonly [number, number],
  everyMs: number,
  mostUnderWay = Infinity,
): Promise<void> {
  for (let number = from; number < to; number++) {
    for (const client of clients) client.send(String(number));
    await sleep(everyMs);
    await running.clock.advance(everyMs);
    await eventually(() => {
      for (const client of clients)
        expect(number + 1 - numbersOf(client).size).toBeLessThanOrEqual(mostUnderWay);
    });
  }
}

/** The numbers that came back to a client. */
const numbersOf = ({ received }: UdpClient) =>
  new Set(received.map(Number).filter(number => !Number.isNaN(number)));

describe('under steady traffic', () => {
  it('no datagram of 20 clients is lost at up to 2,000 a second', async () => {
    const scene = await openScene(20);
    await Promise.all(scene.clients.map(client => client.exchange('open')));
    await sendNumbers(scene, [0, 300], 10, MOST_UNDER_WAY);
    for (const client of scene.clients) await eventually(() => expect(numbersOf(client).size).toBe(300));
    expect(await scene.running.dropped()).toEqual({});
  });

  it('a restart of meshd loses what is sent meanwhile, counted, and the same relay goes on', async () => {
    const scene = await openScene(20);
    const { running, clients } = scene;
    await Promise.all(clients.map(client => client.exchange('open')));
    await sendNumbers(scene, [0, 10], 100);
    for (const client of clients) await eventually(() => expect(numbersOf(client).size).toBe(10));
    await killMeshd(own);
    await eventually(async () => expect(await running.associations()).toBe(0));
    await sendNumbers(scene, [10, 20], 100);
    const lost = { proxy_unavailable: 10 * clients.length };
    await eventually(async () => expect(await running.dropped()).toEqual(lost));
    startMeshd(own);
    let last = 20;
    const isServed = (client: UdpClient) => [...numbersOf(client)].some(number => number >= 20);
    while (!clients.every(isServed)) await sendNumbers(scene, [last, ++last], 100);
    await sendNumbers(scene, [last, last + 20], 100);
    for (const client of clients) {
      const afterwards = Array.from({ length: 20 }, (_, index) => last + index);
      await eventually(() => expect([...numbersOf(client)]).toEqual(expect.arrayContaining(afterwards)));
      expect([...numbersOf(client)].slice(0, 10)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
  });
});
