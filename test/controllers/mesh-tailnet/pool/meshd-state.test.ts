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

  it('is not known where it does not respond', async () => {
    expect(await readMeshdState('127.0.14.8')).toBeUndefined();
  });
});
