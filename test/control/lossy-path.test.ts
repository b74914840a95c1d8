import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CALL_BOUND_MS, CALL_SCOPES, CALLS, outcomeOf } from '../support/control/calls.ts';
import type { TestedCall } from '../support/control/calls.ts';
import { startClient } from '../support/control/client.ts';
import { openPath } from '../support/control/path.ts';
import type { Loss } from '../support/control/path.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** A client with its token, and the path that its connections go through. */
async function clientOnPath() {
  const clock = new VirtualClock();
  const path = await openPath(clock);
  const client = await startClient({ clock, scopes: CALL_SCOPES, endpoint: { url: path.url } });
  onTestFinished(async () => {
    await client.close();
    await path.close();
  });
  path.leadTo(client.api.url);
  await client.tokens.use(client.credentials);
  return { client, path };
}

const callOf = (name: TestedCall['name']): TestedCall => {
  const call = CALLS.find(one => one.name === name);
  if (!call) throw new Error(`there is no call ${name}`);
  return call;
};

const LOSSES: readonly { readonly name: string; readonly loss: Loss & { readonly afterBytes: number } }[] = [
  { name: 'is closed before a byte of it', loss: { is: 'closed', afterBytes: 0 } },
  { name: 'is closed in its headers', loss: { is: 'closed', afterBytes: 20 } },
  { name: 'is reset in its headers', loss: { is: 'reset', afterBytes: 20 } },
  { name: 'stays silent after its first bytes', loss: { is: 'silent', afterBytes: 20 } },
];

describe.each(CALLS)('16. the call $name, where the connection of a response', call => {
  it.each(LOSSES)('$name, ends in time, and succeeds afterwards', async ({ loss }) => {
    const { client, path } = await clientOnPath();
    const { api, clock } = client;
    const send = await call.prepare(client);
    const stepMs = loss.is === 'silent' ? 100 : 5;
    const expected = loss.is === 'silent' ? 'no response within 15 s' : 'the connection was closed before';

    path.lose(loss, 1);
    const once = await outcomeOf(client, send, stepMs);
    if (call.isRetried) expect(once.error).toBeUndefined();
    else expect(once.error).toMatchObject({ reason: 'Unreachable' });

    path.lose(loss);
    const { error, tookMs } = await outcomeOf(client, send, stepMs);
    expect(error).toMatchObject({ reason: 'Unreachable' });
    expect(error?.message).toContain(expected);
    // The creation of a key is followed by the list with which a key that exists is revoked.
    expect(tookMs).toBeLessThanOrEqual((call.name === 'createKey' ? 15_000 : 0) + CALL_BOUND_MS + stepMs);

    path.heal();
    await clock.advance(10_000);
    expect((await outcomeOf(client, send, 5)).error).toBeUndefined();
    if (call.name !== 'createKey') api.audit();
  });

  it('is slow, succeeds', async () => {
    const { client, path } = await clientOnPath();
    const send = await call.prepare(client);
    path.lose({ is: 'slow', delayMs: 300, bytesPerSecond: 4096 });
    const { error, tookMs } = await outcomeOf(client, send, 20);
    expect(error).toBeUndefined();
    expect(tookMs).toBeGreaterThanOrEqual(300);
  });
});

describe('a join key on a lossy path', () => {
  it('is created once for each request, and revoked once a list arrives', async () => {
    const { client, path } = await clientOnPath();
    const { api, control, clock } = client;
    const send = await callOf('createKey').prepare(client);
    path.lose({ is: 'closed', afterBytes: 20 });
    expect((await outcomeOf(client, send, 5)).error).toMatchObject({ reason: 'Unreachable' });
    expect(api.countByRoute()['keys.create']).toBe(1);
    path.heal();
    await clock.advance(10_000);
    const left = (await control.keys()).filter(({ description }) => description.startsWith('mesh-gateway'));
    expect(left).toHaveLength(1);
    for (const key of left) await control.revokeKey(key);
    path.lose({ is: 'closed', afterBytes: 20 }, 1);
    expect((await outcomeOf(client, send, 5)).error).toMatchObject({ reason: 'Unreachable' });
    expect(api.countByRoute()['keys.create']).toBe(2);
    api.audit();
  });
});

describe('a long list on a slow path', () => {
  it('fails in time where a try is too short for it, and succeeds where it is not', async () => {
    const { client, path } = await clientOnPath();
    const { api, control } = client;
    for (let index = 0; index < 200; index++) api.addDevice({ hostname: `web-${index}` });
    path.lose({ is: 'slow', delayMs: 100, bytesPerSecond: 4096 });
    const slow = await outcomeOf(client, () => control.devices(), 50);
    expect(slow.error).toMatchObject({ reason: 'Unreachable', message: 'no response within 15 s' });
    expect(slow.tookMs).toBeLessThanOrEqual(CALL_BOUND_MS + 50);
    path.lose({ is: 'slow', delayMs: 100, bytesPerSecond: 32_768 });
    expect((await outcomeOf(client, () => control.devices(), 50)).error).toBeUndefined();
  });

  it('fails in time although garbage is collected while its body arrives', async () => {
    const { client, path } = await clientOnPath();
    const { api, control, clock } = client;
    for (let index = 0; index < 200; index++) api.addDevice({ hostname: `web-${index}` });
    path.lose({ is: 'slow', delayMs: 100, bytesPerSecond: 4096 });
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const timer = clock.after(10_000, collectGarbage);
    onTestFinished(timer);
    const slow = await outcomeOf(client, () => control.devices(), 50);
    expect(slow.error).toMatchObject({ reason: 'Unreachable', message: 'no response within 15 s' });
  });
});
