import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openRelay } from '../support/relay/opened.ts';

describe('after the proxy failed', () => {
  /** Lets the proxy fail and work again; returns a client whose first datagram afterwards has been sent. */
  async function openAfterFailure() {
    const opened = await openRelay();
    const { running, socks } = opened;
    const from = await opened.client();
    await from.exchange('before');
    await socks.stop();
    await eventually(async () => expect(await running.associations()).toBe(0));
    await socks.start();
    await running.clock.advance(1000);
    socks.frames = () => [];
    from.send('sent from a wrong address');
    await eventually(() => expect(socks.open()).toBe(1));
    return { ...opened, from };
  }

  it('an association without replies is replaced after 5 s, so that it does not stay unusable', async () => {
    const { running, socks, from } = await openAfterFailure();
    const requests = socks.requests();
    await running.clock.advance(6000);
    await eventually(() => expect(socks.open()).toBe(0));
    socks.frames = frame => [frame];
    expect(await from.exchange('after')).toBe('after');
    expect(socks.requests()).toBe(requests + 1);
  });

  it('one that gets a reply stays', async () => {
    const { running, socks, from } = await openAfterFailure();
    socks.frames = frame => [frame];
    await from.exchange('after');
    const requests = socks.requests();
    await running.clock.advance(30_000);
    await from.exchange('later');
    expect(socks.requests()).toBe(requests);
  });

  it('a client whose target never replies gets few others', async () => {
    const { running, socks, from } = await openAfterFailure();
    const requests = socks.requests();
    for (let second = 0; second < 120; second++) {
      const open = await running.associations();
      from.send('no reply');
      if (open === 0) await eventually(() => expect(socks.open()).toBe(1));
    }
    expect(socks.requests() - requests).toBeGreaterThan(1);
    expect(socks.requests() - requests).toBeLessThan(7);
  });
});

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
    await running.clock.advance(1000);
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
