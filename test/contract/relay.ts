import { describe, expect, it } from 'vitest';
import type { SocketAddress } from '../../src/api/socket-address.ts';
import { eventually } from '../support/eventually.ts';
import { openClient } from '../support/relay/datagrams.ts';
import type { UdpClient } from '../support/relay/datagrams.ts';
import { startTestRelay } from '../support/relay/running-relay.ts';
import type { RunningRelay } from '../support/relay/running-relay.ts';

/** A mesh with two UDP services, and its SOCKS5 proxy. */
export type OpenedMesh = {
  readonly proxy: { readonly host: string; readonly port: number };
  /** Replies with what it receives. */
  readonly echo: SocketAddress;
  /** Replies in upper case. */
  readonly upper: SocketAddress;
  /** Ends the proxy and starts it again on the same address. */
  readonly restart: () => Promise<void>;
  readonly close: () => Promise<void>;
};

const IDLE_MS = 60_000;

type Scene = OpenedMesh & {
  readonly running: RunningRelay;
  readonly client: (port: number) => Promise<UdpClient>;
};

/** The contract of datagrams through a relay and a proxy. */
const cases: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  'reach their target, and its replies the client': async ({ running, client, echo }) => {
    await running.update({ 20000: echo });
    await (await client(20000)).exchange('hello');
    expect(await running.packets()).toMatchObject({ 'from_mesh forwarded': expect.any(Number) as number });
    expect(await running.associations()).toBe(1);
  },

  'arrive whole, in sizes from 1 to 1,200 bytes': async ({ running, client, echo }) => {
    await running.update({ 20000: echo });
    const from = await client(20000);
    for (const size of [1, 512, 1200]) await from.exchange(String(size % 10).repeat(size));
  },

  'of two ports reach their own targets': async ({ running, client, echo, upper }) => {
    await running.update({ 20000: echo, 20001: upper });
    const [one, other] = [await client(20000), await client(20001)];
    one.send('abc');
    await other.exchange('ABC');
    await one.exchange('abc');
    expect(one.received.map(String)).not.toContain('ABC');
  },

  'of 100 clients at once are answered to the client that sent them': async ({ running, client, echo }) => {
    await running.update({ 20000: echo });
    const clients = await Promise.all(Array.from({ length: 100 }, () => client(20000)));
    await Promise.all(clients.map((from, index) => from.exchange(`client ${index}`)));
    expect(await running.associations()).toBe(100);
    for (const [index, { received }] of clients.entries()) {
      expect(new Set(received.map(String))).toEqual(new Set([`client ${index}`]));
    }
  },

  'reach the new target after it changed': async ({ running, client, echo, upper }) => {
    await running.update({ 20000: echo });
    const from = await client(20000);
    await from.exchange('before');
    await running.update({ 20000: upper });
    from.send('after');
    await from.exchange('AFTER');
    expect(await running.associations()).toBe(1);
  },

  'reach their target again after the proxy was restarted': async scene => {
    const { running, client, echo, restart } = scene;
    await running.update({ 20000: echo });
    const from = await client(20000);
    await from.exchange('before');
    await restart();
    await eventually(async () => expect(await running.associations()).toBe(0));
    await running.clock.advance(5000);
    await from.exchange('after');
  },

  'open an association again after an idle time': async ({ running, client, echo }) => {
    await running.update({ 20000: echo });
    const from = await client(20000);
    await from.exchange('before');
    await running.clock.advance(IDLE_MS + 2000);
    expect(await running.associations()).toBe(0);
    await from.exchange('after');
    expect(await running.associations()).toBe(1);
  },
};

/** Runs the contract on a mesh; each case opens one. */
export function describeRelay(name: string, open: () => Promise<OpenedMesh>): void {
  describe(name, () => {
    it.each(Object.entries(cases))('%s', async (_sentence, expectOf) => {
      const mesh = await open();
      const running = startTestRelay({ socks: mesh.proxy, idleMs: IDLE_MS });
      const clients: UdpClient[] = [];
      const client = async (port: number) => {
        const opened = await openClient(running.address, port);
        clients.push(opened);
        return opened;
      };
      try {
        await expectOf({ ...mesh, running, client });
      } finally {
        await running.relay.close();
        for (const opened of clients) opened.close();
        await mesh.close();
      }
    });
  });
}
