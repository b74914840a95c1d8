import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startUdpService } from '../support/relay/datagrams.ts';
import { openRelay } from '../support/relay/opened.ts';

/** Frames that are not replies of the target, made from one that is, and the reason for which they are dropped. */
const frames: readonly (readonly [what: string, reason: string, alter: (frame: Buffer) => Buffer])[] = [
  ['from another address', 'wrong_source', frame => changed(frame, 7, 9)],
  ['from another port', 'wrong_source', frame => changed(frame, 9, (frame[9] ?? 0) ^ 1)],
  [
    'from a host name',
    'wrong_source',
    frame => Buffer.concat([Buffer.from([0, 0, 0, 3, 1, 97]), frame.subarray(8)]),
  ],
  ['that are fragments', 'fragmented', frame => changed(frame, 2, 1)],
  ['that are the last fragment', 'fragmented', frame => changed(frame, 2, 0x81)],
  ['that end within the header', 'malformed', frame => frame.subarray(0, 9)],
  ['that are empty', 'malformed', () => Buffer.alloc(0)],
  ['that end within an IPv6 address', 'malformed', frame => changed(frame, 3, 4).subarray(0, 12)],
  [
    'that may have been cut',
    'too_large',
    frame => Buffer.concat([frame.subarray(0, 10), Buffer.alloc(8192)]),
  ],
];

function changed(frame: Buffer, index: number, byte: number): Buffer {
  const copy = Buffer.from(frame);
  copy[index] = byte;
  return copy;
}

describe('replies', () => {
  it.each(frames)('%s are dropped and counted as %s', async (_what, reason, alter) => {
    const { running, client, socks } = await openRelay();
    socks.frames = frame => [alter(frame), frame];
    const from = await client();
    from.send('hello');
    await eventually(() => expect(from.received.map(String)).toEqual(['hello']));
    expect(await running.dropped()).toEqual({ [reason]: 1 });
    expect(await running.packets()).toEqual({
      'to_mesh forwarded': 1,
      'from_mesh forwarded': 1,
      'from_mesh dropped': 1,
    });
  });
});

describe('datagrams of clients', () => {
  it('that meshd would cut are dropped', async () => {
    const { running, client, echo } = await openRelay();
    const from = await client();
    from.send(Buffer.alloc(8183), Buffer.alloc(60_000));
    await from.exchange('hello');
    expect(echo.received.map(String)).toEqual(['hello']);
    expect(await running.dropped()).toEqual({ too_large: 2 });
  });

  it('that meshd would fragment and lose over IPv6 are dropped', async () => {
    const target = await startUdpService(undefined, '::1');
    onTestFinished(target.close);
    const { running, client } = await openRelay();
    await running.update({ 20000: target });
    const from = await client();
    from.send(Buffer.alloc(1232, 'x'), Buffer.alloc(1233, 'y'));
    await from.exchange('x'.repeat(1232));
    await from.exchange('hello');
    expect(target.received.map(({ length }) => length)).not.toContain(1233);
    expect(await running.dropped()).toEqual({ too_large: 1 });
  });

  it('wait for their association, up to 16 of a client', async () => {
    const { running, client, socks, echo } = await openRelay();
    socks.answer = 'hang';
    const from = await client();
    from.send(...Array.from({ length: 20 }, (_, index) => `${index}`));
    await eventually(() => expect(socks.requests()).toBe(1));
    expect(await running.dropped()).toEqual({ pending_full: 4 });
    socks.proceed();
    await eventually(() => expect(from.received).toHaveLength(16));
    expect(echo.received.map(String)).toEqual(Array.from({ length: 16 }, (_, index) => `${index}`));
    expect(await running.dropped()).toEqual({ pending_full: 4 });
  });

  it('that wait are dropped when their port gets another target', async () => {
    const { running, client, echo, socks } = await openRelay();
    socks.answer = 'hang';
    const from = await client();
    from.send('one', 'two', 'three');
    await eventually(() => expect(socks.requests()).toBe(1));
    await running.update({ 20000: { ...echo, port: 9 } });
    expect(await running.dropped()).toEqual({ closed: 3 });
    expect(await running.associations()).toBe(0);
  });

  it('wait for their associations, up to 8 MiB of all', async () => {
    const { running, client, socks } = await openRelay();
    socks.answer = 'hang';
    const clients = await Promise.all(Array.from({ length: 80 }, () => client()));
    const large = Buffer.alloc(8000);
    for (const from of clients) {
      from.send(...Array.from({ length: 16 }, () => large));
      await new Promise(setImmediate);
    }
    const fitting = Math.floor((8 * 1024 * 1024) / (8000 + 512));
    await eventually(() => expect(socks.requests()).toBe(80));
    await eventually(async () =>
      expect(await running.dropped()).toEqual({ pending_full: 80 * 16 - fitting }),
    );
    await running.clock.advance(5000);
    const { pending_full, proxy_unavailable } = await running.dropped();
    expect({ pending_full, proxy_unavailable }).toEqual({
      pending_full: 80 * 16 - fitting,
      proxy_unavailable: fitting,
    });
  });

  it('that the kernel drops because a receive buffer is full are counted', async () => {
    const { running, client } = await openRelay();
    const from = await client();
    await from.exchange('open');
    // More than the largest buffer, before the relay runs.
    for (let sent = 0; sent < 2000; sent++) from.send(Buffer.alloc(8000));
    await running.clock.advance(10_000);
    await eventually(async () =>
      expect(await running.dropped()).toEqual({ receive_buffer: expect.any(Number) as number }),
    );
    await eventually(async () => {
      const { 'to_mesh forwarded': forwarded = 0, 'to_mesh dropped': dropped = 0 } = await running.packets();
      expect(forwarded + dropped).toBe(2001);
    });
  });

  it('are logged together, at most once a minute, when they are dropped', async () => {
    const { running, client } = await openRelay();
    const from = await client();
    for (const text of ['one', 'two', 'three']) {
      from.send(Buffer.alloc(9000), Buffer.alloc(9000));
      await from.exchange(text);
      await running.clock.advance(20_000);
    }
    await running.clock.advance(60_000);
    const logged = running.lines.map(line => JSON.parse(line) as Record<string, unknown>);
    expect(logged.map(({ msg, too_large }) => ({ msg, too_large }))).toEqual([
      { msg: 'the relay dropped datagrams', too_large: 2 },
      { msg: 'the relay dropped datagrams', too_large: 4 },
    ]);
  });
});
