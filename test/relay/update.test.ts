import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { array, assert, asyncProperty, constantFrom, dictionary, integer, record } from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openClient, startUdpService } from '../support/relay/datagrams.ts';
import type { UdpService } from '../support/relay/datagrams.ts';
import { openRelay } from '../support/relay/opened.ts';
import { startTestRelay } from '../support/relay/running-relay.ts';
import type { RunningRelay } from '../support/relay/running-relay.ts';
import { startSocksServer } from '../support/relay/socks-server.ts';

/** Whether a port of an address can be bound, and so is not in use. */
async function isFree(address: string, port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  const isBound = await new Promise<boolean>(resolve => {
    socket.once('listening', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.bind(port, address);
  });
  const closed = once(socket, 'close');
  socket.close();
  await closed;
  return isBound;
}

async function upperService() {
  const upper = await startUdpService(payload => [Buffer.from(payload.toString().toUpperCase())]);
  onTestFinished(upper.close);
  return upper;
}

describe('an update', () => {
  it('with equal targets changes nothing for clients', async () => {
    const { running, client, echo, socks } = await openRelay();
    const from = await client();
    await from.exchange('before');
    for (let round = 0; round < 3; round++) await running.update({ 20000: { ...echo }, 20001: echo });
    expect(await from.exchange('after')).toBe('after');
    expect(socks.requests()).toBe(1);
  });

  it('without a port closes it 5 s later, with its associations', async () => {
    const { running, client, echo, socks } = await openRelay();
    const from = await client();
    await from.exchange('before');
    await running.update({ 20001: echo });
    await running.clock.advance(2000);
    expect(await from.exchange('while it drains')).toBe('while it drains');
    await running.update({ 20001: echo });
    await running.clock.advance(3000);
    await eventually(async () => expect(await isFree(running.address, 20000)).toBe(true));
    await eventually(() => expect(socks.open()).toBe(0));
    expect(await isFree(running.address, 20001)).toBe(false);
    expect(await running.associations()).toBe(0);
  });

  it('that adds a removed port again keeps its associations', async () => {
    const { running, client, echo, socks } = await openRelay();
    const from = await client();
    await from.exchange('before');
    await running.update({});
    await running.clock.advance(4000);
    await running.update({ 20000: echo });
    await running.clock.advance(20_000);
    expect(await from.exchange('after')).toBe('after');
    expect(socks.requests()).toBe(1);
  });

  it('that changes a target ends the associations of this port only', async () => {
    const { running, client, echo, socks } = await openRelay();
    const upper = await upperService();
    await running.update({ 20000: echo, 20001: echo });
    const [from, other] = [await client(20000), await client(20001)];
    await Promise.all([from.exchange('one'), other.exchange('other')]);
    await running.update({ 20000: upper, 20001: echo });
    await eventually(() => expect(socks.open()).toBe(1));
    from.send('to upper');
    expect(await from.exchange('TO UPPER')).toBe('TO UPPER');
    expect(await other.exchange('to echo')).toBe('to echo');
    expect(socks.requests()).toBe(3);
  });

  it('reports ports that are in use, and binds them once they are free', async () => {
    const { running, client, echo } = await openRelay();
    const occupier = createSocket('udp4').bind(20001, running.address);
    await once(occupier, 'listening');
    await running.update({ 20000: echo, 20001: echo });
    expect(running.relay.failed()).toEqual(new Map([[20001, 'EADDRINUSE']]));
    await running.clock.advance(10_000);
    expect(running.relay.failed()).toEqual(new Map([[20001, 'EADDRINUSE']]));
    occupier.close();
    await once(occupier, 'close');
    await running.clock.advance(10_000);
    expect(running.relay.failed()).toEqual(new Map());
    expect(await (await client(20001)).exchange('free')).toBe('free');
  });

  it('binds a failed port at once', async () => {
    const { running, echo } = await openRelay({ closeDelayMs: 0 });
    const occupier = createSocket('udp4').bind(20001, running.address);
    await once(occupier, 'listening');
    await running.update({ 20001: echo });
    occupier.close();
    await once(occupier, 'close');
    await running.update({ 20001: echo });
    expect(running.relay.failed()).toEqual(new Map());
  });

  it('reports addresses that the machine does not have', async () => {
    const { running } = await openRelay({ addresses: ['192.0.2.1'] });
    expect(running.relay.failed()).toEqual(new Map([[20000, 'EADDRNOTAVAIL']]));
  });
});

describe('random updates', () => {
  const PORTS = [20_000, 20_001, 20_002];
  const service = constantFrom('echo', 'upper');
  const wanted = dictionary(constantFrom(...PORTS.map(String)), service, { maxKeys: 3 });
  const steps = array(record({ wanted, thenMs: integer({ min: 0, max: 8000 }) }), { maxLength: 12 });

  it('leave those ports open that a model has open, with its targets', async () => {
    const [socks, echo, upper] = [await startSocksServer(), await startUdpService(), await upperService()];
    const expected = async (running: RunningRelay, port: number, target: string | undefined) => {
      expect(await isFree(running.address, port)).toBe(target === undefined);
      if (target === undefined) return;
      const client = await openClient(running.address, port);
      client.send('x');
      await eventually(() => expect(client.received.map(String)).toEqual([target === 'echo' ? 'x' : 'X']));
      client.close();
    };
    await assert(
      asyncProperty(steps, async updates => {
        const running = startTestRelay({ socks });
        const model = new Map<number, { readonly target: string; readonly closesAt: number }>();
        for (const { wanted: names, thenMs } of updates) {
          const now = running.clock.now();
          const services = Object.entries(names).map(([port, name]) => [
            port,
            name === 'echo' ? echo : upper,
          ]);
          await running.update(Object.fromEntries(services) as Record<number, UdpService>);
          for (const port of PORTS) {
            const { target, closesAt } = model.get(port) ?? {};
            const name = names[port];
            if (name !== undefined) model.set(port, { target: name, closesAt: Infinity });
            else if (target !== undefined && closesAt === Infinity)
              model.set(port, { target, closesAt: now + 5000 });
          }
          await running.clock.advance(thenMs);
          for (const [port, { closesAt }] of model) if (closesAt <= running.clock.now()) model.delete(port);
        }
        for (const port of PORTS) await expected(running, port, model.get(port)?.target);
        await running.relay.close();
      }),
      { numRuns: 50 },
    );
    echo.close();
    await socks.stop();
  });
});
