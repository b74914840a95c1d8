import { describe, expect, it, onTestFinished } from 'vitest';
import { describeRelay } from '../contract/relay.ts';
import { eventually } from '../support/eventually.ts';
import { startUdpService } from '../support/relay/datagrams.ts';
import { openRelay } from '../support/relay/opened.ts';
import { startSocksServer } from '../support/relay/socks-server.ts';

describeRelay('datagrams through a SOCKS5 server', async () => {
  const socks = await startSocksServer();
  const echo = await startUdpService();
  const upper = await startUdpService(payload => [Buffer.from(payload.toString().toUpperCase())]);
  return {
    proxy: socks,
    echo,
    upper,
    restart: async () => {
      await socks.stop();
      await socks.start();
    },
    close: async () => {
      echo.close();
      upper.close();
      await socks.stop();
    },
  };
});

describe('a relay', () => {
  it('forwards empty datagrams and those of the largest size', async () => {
    const { client, echo } = await openRelay();
    const largest = Buffer.alloc(8182, 'x');
    const from = await client();
    await from.exchange('open');
    from.send(Buffer.alloc(0), largest);
    await eventually(() => expect(from.received.slice(1)).toEqual([Buffer.alloc(0), largest]));
    expect(echo.received.slice(1)).toEqual([Buffer.alloc(0), largest]);
  });

  it('forwards to IPv6 targets', async () => {
    const target = await startUdpService(undefined, '::1');
    onTestFinished(target.close);
    const { running, client } = await openRelay();
    await running.update({ 20000: target });
    expect(await (await client()).exchange('over IPv6')).toBe('over IPv6');
  });

  it('listens on all of its addresses', async () => {
    const { running, client, echo } = await openRelay({ addresses: ['::1', '127.0.0.1'] });
    await running.update({ 25317: echo });
    for (const address of ['::1', '127.0.0.1']) {
      const from = await client(25317, address);
      expect(await from.exchange(address)).toBe(address);
    }
  });

  it('passes on each of several replies, and sends none of its own', async () => {
    const target = await startUdpService(payload => [payload, Buffer.from('second'), Buffer.from('third')]);
    onTestFinished(target.close);
    const { running, client } = await openRelay();
    await running.update({ 20000: target });
    const from = await client();
    from.send('first');
    await eventually(() => expect(from.received.map(String)).toEqual(['first', 'second', 'third']));
    expect(await running.packets()).toEqual({ 'to_mesh forwarded': 1, 'from_mesh forwarded': 3 });
  });

  it('keeps an association open while only the target sends', async () => {
    const target = await startUdpService();
    onTestFinished(target.close);
    const { running, client } = await openRelay({ idleMs: 10_000 });
    await running.update({ 20000: target });
    const from = await client();
    await from.exchange('hello');
    for (const text of ['1', '2', '3', '4']) {
      target.sendToLast(text);
      await eventually(() => expect(from.received.map(String)).toContain(text));
      await running.clock.advance(5000);
    }
    expect(await running.associations()).toBe(1);
  });

  it('serves 1,000 clients that start at once', async () => {
    const { running, client } = await openRelay();
    const clients = await Promise.all(Array.from({ length: 1000 }, () => client()));
    for (const [index, from] of clients.entries()) {
      from.send(`client ${index}`);
      // All at once may exceed the receive buffer.
      if (index % 100 === 0) await new Promise(setImmediate);
    }
    await eventually(() => {
      const wrong = clients.filter(
        ({ received }, index) => received.map(String).join() !== `client ${index}`,
      );
      expect(wrong).toHaveLength(0);
    });
    expect(await running.associations()).toBe(1000);
    expect(await running.dropped()).toEqual({});
  });

  it('listens on 1,000 ports', async () => {
    const { running, client, echo } = await openRelay();
    const ports = Array.from({ length: 1000 }, (_, index) => 20_000 + index);
    await running.update(Object.fromEntries(ports.map(port => [port, echo])));
    expect(running.relay.failed()).toEqual(new Map());
    // What fails while all begin at once would be tried again in the time of the relay, which stands still here.
    for (let from = 0; from < ports.length; from += 50) {
      const some = ports.slice(from, from + 50);
      await Promise.all(some.map(async port => (await client(port)).exchange(`port ${port}`)));
    }
    expect(await running.associations()).toBe(1000);
  });
});
