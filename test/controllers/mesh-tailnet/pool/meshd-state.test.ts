import { createServer } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readMeshdState } from '../../../../src/controllers/mesh-tailnet/pool/meshd-state.ts';

/** An address of loopback that serves these metrics on the port of meshd. */
async function meshdWith(body: string): Promise<string> {
  const server = createServer((_, response) => response.end(body));
  const address = '127.0.14.7';
  await new Promise<void>(resolve => server.listen(9002, address, resolve));
  onTestFinished(() => void server.close());
  return address;
}

const metrics = (relay: number, problems: number) =>
  [
    '# TYPE tailscaled_health_messages gauge',
    `tailscaled_health_messages{type="warning"} ${problems}`,
    '# TYPE tailscaled_home_derp_region_id gauge',
    `tailscaled_home_derp_region_id ${relay}`,
    'tailscaled_inbound_bytes_total{path="derp"} 92',
  ].join('\n');

describe('what meshd reports about itself', () => {
  it.each([
    [7, 0, { hasRelay: true, problems: 0 }],
    [7, 2, { hasRelay: true, problems: 2 }],
    [0, 1, { hasRelay: false, problems: 1 }],
  ])('with the relay %i and %i health messages is %j', async (relay, problems, state) => {
    expect(await readMeshdState(await meshdWith(metrics(relay, problems)))).toEqual(state);
  });

  it.each([
    ['it has other metrics', 'up 1\n'],
    ['its metrics are too long', `# ${'x'.repeat(200_000)}\n${metrics(7, 0)}`],
  ])('is not known where %s', async (_, body) => {
    expect(await readMeshdState(await meshdWith(body))).toBeUndefined();
  });

  it.each([
    [
      'the addresses that its front has refused',
      { front: { refusedCallers: ['10.0.0.9', 'fd00::9'] } },
      ['10.0.0.9', 'fd00::9'],
    ],
    ['only addresses', { front: { refusedCallers: ['<b>', 7, '10.0.0.9'] } }, ['10.0.0.9']],
    [
      'at most 16 of them',
      { front: { refusedCallers: Array.from({ length: 99 }, () => '10.0.0.9') } },
      Array(16).fill('10.0.0.9'),
    ],
    ['none where it has no list', { front: { refusedCallers: 'all' } }, undefined],
    ['none where it has no front', { version: '0a' }, undefined],
  ])('has %s', async (_, report, refusedCallers) => {
    const address = await meshdWith(metrics(7, 0));
    const server = createServer((_request, response) => response.end(JSON.stringify(report)));
    await new Promise<void>(resolve => server.listen(9003, address, resolve));
    onTestFinished(() => void server.close());
    const state = { hasRelay: true, problems: 0, ...(refusedCallers && { refusedCallers }) };
    expect(await readMeshdState(address)).toEqual(state);
  });

  it('is not known where it does not respond', async () => {
    expect(await readMeshdState('127.0.14.8')).toBeUndefined();
  });
});
