import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startUdpService } from '../support/relay/datagrams.ts';
import { openRelay } from '../support/relay/opened.ts';

describe('a flood', () => {
  it('from many clients of one port leaves the share of another port', async () => {
    const { running, client, echo } = await openRelay({ maxAssociations: 40 });
    await running.update({ 20000: echo, 20001: echo });
    const flood = await Promise.all(Array.from({ length: 100 }, () => client(20000)));
    for (const from of flood) from.send('flood');
    await eventually(() => expect(flood.filter(({ received }) => received.length > 0)).toHaveLength(30));
    expect(await running.dropped()).toEqual({ too_many_associations: 70 });
    const others = await Promise.all(Array.from({ length: 10 }, () => client(20001)));
    for (const [index, from] of others.entries()) {
      expect(await from.exchange(`other ${index}`)).toBe(`other ${index}`);
    }
    expect(await running.associations()).toBe(40);
  });

  it('that has ended leaves its associations to others after the idle time', async () => {
    const { running, client, echo } = await openRelay({ maxAssociations: 10, idleMs: 60_000 });
    await running.update({ 20000: echo, 20001: echo });
    const flood = await Promise.all(Array.from({ length: 20 }, () => client(20000)));
    for (const from of flood) from.send('flood');
    await eventually(() => expect(flood.filter(({ received }) => received.length > 0)).toHaveLength(8));
    expect(await running.dropped()).toEqual({ too_many_associations: 12 });
    expect(await running.associations()).toBe(8);
    await running.clock.advance(62_000);
    expect(await running.associations()).toBe(0);
    const others = await Promise.all(Array.from({ length: 8 }, () => client(20001)));
    for (const from of others) expect(await from.exchange('other')).toBe('other');
  });

  it('of one client is forwarded or counted as dropped, and others are served', async () => {
    const { running, client } = await openRelay();
    const [from, other] = [await client(), await client()];
    await from.exchange('open');
    for (let burst = 0; burst < 100; burst++) {
      for (let sent = 0; sent < 100; sent++) from.send(Buffer.alloc(64, burst));
      if (burst % 10 === 0) expect(await other.exchange(`other ${burst}`)).toBe(`other ${burst}`);
    }
    await running.clock.advance(10_000);
    await eventually(async () => {
      const { receive_buffer: dropped = 0 } = await running.dropped();
      const { 'to_mesh forwarded': forwarded = 0 } = await running.packets();
      expect(forwarded + dropped).toBeGreaterThanOrEqual(10_001);
    });
  });

  it('of replies reaches the client that sent the request, and no other', async () => {
    const burst = Array.from({ length: 80 }, (_, index) => Buffer.alloc(1000, index));
    const target = await startUdpService(() => burst);
    onTestFinished(target.close);
    const { running, client } = await openRelay();
    await running.update({ 20000: target });
    const [from, other] = [await client(), await client()];
    from.send('one');
    await eventually(() => expect(from.received).toHaveLength(burst.length));
    expect(other.received).toEqual([]);
    expect(await running.associations()).toBe(1);
  });

  it('of random bytes is forwarded as it is', async () => {
    const { client, echo } = await openRelay();
    const from = await client();
    await from.exchange('open');
    const frames = Array.from({ length: 200 }, (_, index) =>
      Buffer.from([0, 0, index, index % 5, 127, 0, 0, 1]),
    );
    from.send(...frames);
    await eventually(() => expect(from.received.slice(1)).toEqual(frames));
    expect(echo.received.slice(1)).toEqual(frames);
  });
});
