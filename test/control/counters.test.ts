import { afterEach, describe, expect, it } from 'vitest';
import { failureOf, inTime, startClient } from '../support/control/client.ts';
import type { Client } from '../support/control/client.ts';
import { parseExposition } from '../support/telemetry/exposition.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function authorizedClient(): Promise<Client> {
  const client = await startClient();
  closing.push(client.close);
  await client.tokens.use(client.credentials);
  return client;
}

/** The values of a counter by its label `result`. */
async function byResult({ metrics }: Client, name: string) {
  const series = parseExposition(await metrics()).get(name)?.series ?? [];
  return Object.fromEntries(series.map(({ labels: { result = '' }, value }) => [result, value] as const));
}

const KEY = {
  description: 'mesh-gateway 0a1b2c3d example 0',
  tags: ['tag:mesh'],
  expirySeconds: 3600,
  ephemeral: false,
  preauthorized: true,
};

describe('counters by result, which start at zero, have', () => {
  it('join keys that were created, refused, failed and revoked', async () => {
    const client = await authorizedClient();
    const { api, control, clock } = client;
    const keys = () => byResult(client, 'mesh_gateway_join_keys_total');
    expect(await keys()).toEqual({ created: 0, refused: 0, failed: 0, revoked: 0 });
    await control.revokeKey(await control.createKey(KEY));
    await control.revokeKey({ id: 'k404' });
    const { id, secret } = await control.createKey(KEY);
    api.join(secret, { hostname: 'meshd-example-0-0a1b2c3d' });
    await control.revokeKey({ id, isInvalid: true });
    api.fail({ routes: ['keys.create'], times: 1, fault: { is: 'answer', status: 400, json: {} } });
    await failureOf(control.createKey(KEY));
    // Such a key exists, and is revoked.
    api.fail({ routes: ['keys.create'], times: 1, fault: { is: 'lost-answer', status: 504, json: {} } });
    await inTime(clock, failureOf(control.createKey(KEY)));
    expect(await keys()).toEqual({ created: 2, refused: 1, failed: 1, revoked: 2 });
  });

  it('devices that were deleted, were absent, or could not be deleted', async () => {
    const client = await authorizedClient();
    const { api, control } = client;
    const deletions = () => byResult(client, 'mesh_gateway_devices_deleted_total');
    expect(await deletions()).toEqual({ deleted: 0, absent: 0, failed: 0 });
    const { nodeId } = api.addDevice({ hostname: 'web-1', tags: ['tag:mesh'] });
    await control.deleteDevice(nodeId);
    await control.deleteDevice(nodeId);
    api.fail({ routes: ['device.delete'], fault: { is: 'answer', status: 501, json: {} } });
    await failureOf(control.deleteDevice(nodeId));
    expect(await deletions()).toEqual({ deleted: 1, absent: 1, failed: 1 });
  });
});
