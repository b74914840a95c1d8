import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openRelay } from '../support/relay/opened.ts';

describe('while the proxy fails', () => {
  it.each(['refuse', 'garble'] as const)('because it does so (%s), it is not hammered', async answer => {
    const { running, client, socks } = await openRelay();
    socks.answer = answer;
    const from = await client();
    for (let round = 0; round < 20; round++) {
      const requests = socks.requests();
      from.send('hello');
      await running.clock.advance(0);
      if (socks.requests() > requests)
        await eventually(async () => expect(await running.associations()).toBe(0));
    }
    expect(socks.requests()).toBeLessThan(20);
    expect(await running.dropped()).toMatchObject({ proxy_unavailable: expect.any(Number) as number });
    socks.answer = 'open';
    await running.clock.advance(5000);
    expect(await from.exchange('works again')).toBe('works again');
  });

  it('an association that it closes is opened again at a later datagram', async () => {
    const { running, client, socks } = await openRelay();
    socks.answer = 'end';
    const from = await client();
    from.send('hello');
    await eventually(() => expect(socks.requests()).toBe(1));
    await eventually(async () => expect(await running.associations()).toBe(0));
    socks.answer = 'open';
    expect(await from.exchange('again')).toBe('again');
  });

  it('an association that does not open is closed after 5 s, and later datagrams open another', async () => {
    const { running, client, socks } = await openRelay();
    socks.answer = 'hang';
    const from = await client();
    from.send('lost');
    await eventually(() => expect(socks.requests()).toBe(1));
    expect(await running.associations()).toBe(1);
    await running.clock.advance(5000);
    expect(await running.associations()).toBe(0);
    expect(await running.dropped()).toEqual({ proxy_unavailable: 1 });
    socks.answer = 'open';
    expect(await from.exchange('next')).toBe('next');
  });

  it('datagrams wait for no proxy that is stopped, and are served once it is started', async () => {
    const { running, client, socks } = await openRelay();
    const clients = await Promise.all(Array.from({ length: 50 }, () => client()));
    await Promise.all(clients.map((from, index) => from.exchange(`before ${index}`)));
    await socks.stop();
    await eventually(async () => expect(await running.associations()).toBe(0));
    for (const from of clients) from.send('lost');
    await eventually(async () => expect(await running.dropped()).toEqual({ proxy_unavailable: 50 }));
    await socks.start();
    await running.clock.advance(5000);
    await Promise.all(clients.map((from, index) => from.exchange(`after ${index}`)));
    expect(await running.associations()).toBe(50);
  });
});
