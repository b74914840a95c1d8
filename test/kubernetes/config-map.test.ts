import { describe, expect, it, onTestFinished } from 'vitest';
import { watchConfigMap } from '../../src/kubernetes/config-map.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { restClientMetrics, sourceMetrics } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import { eventually } from '../support/eventually.ts';
import { startConfigMapServer } from '../support/relay/config-map-server.ts';
import type { ConfigMapServer } from '../support/relay/config-map-server.ts';

/** Watches the ConfigMap of a server, with short timeouts; each of its states is added to `seen`. */
async function watched(server: ConfigMapServer) {
  const seen: unknown[] = [];
  const lines: string[] = [];
  const metrics = { ...restClientMetrics, ...sourceMetrics };
  const watch = await watchConfigMap({
    namespace: 'mesh-system',
    name: 'mesh-relay-example',
    kubeconfig: server.kubeconfig('t'),
    environment: {},
    clock: systemClock,
    random: () => 0.5,
    now: () => new Date(),
    telemetry: {
      log: createLog({ level: 'info', to: { write: line => void lines.push(line) } }),
      metrics: createRegistry({ metrics, version: 'test', known: { kind: ['ConfigMap'] } }),
    },
    onData: data => seen.push(data),
    onMissing: () => seen.push('missing'),
    timing: { firstBackoffMs: 10, maxBackoffMs: 50, watchMs: [60_000, 60_000] },
  });
  onTestFinished(() => watch.close());
  watch.start();
  const expectLast = (state: unknown) => eventually(() => expect(seen.at(-1)).toEqual(state));
  return { seen, lines, expectLast };
}

describe('a watched ConfigMap', () => {
  it('is waited for, read, and missing once it is deleted', async () => {
    const server = await startConfigMapServer();
    const { seen, expectLast } = await watched(server);
    await expectLast('missing');
    server.put({ targets: 'a' });
    await expectLast({ targets: 'a' });
    server.put({ targets: 'b', more: 'c' });
    await expectLast({ targets: 'b', more: 'c' });
    server.remove();
    await expectLast('missing');
    expect(seen).toEqual(['missing', { targets: 'a' }, { targets: 'b', more: 'c' }, 'missing']);
  });

  it('is read by its name alone', async () => {
    const server = await startConfigMapServer();
    server.put({});
    const { expectLast } = await watched(server);
    await expectLast({});
    await eventually(() => expect(server.requests).toHaveLength(2));
    for (const request of server.requests)
      expect(request).toContain('fieldSelector=metadata.name%3Dmesh-relay-example');
  });

  it('is listed again when the resourceVersion of the watch is too old', async () => {
    const server = await startConfigMapServer();
    server.put({ targets: 'a' });
    const { expectLast } = await watched(server);
    await expectLast({ targets: 'a' });
    server.expire();
    server.put({ targets: 'b' });
    await expectLast({ targets: 'b' });
  });

  it('is not missing while the API server is unavailable, and is read again then', async () => {
    const server = await startConfigMapServer();
    server.put({ targets: 'a' });
    const { seen, lines, expectLast } = await watched(server);
    await expectLast({ targets: 'a' });
    await server.close();
    await eventually(() => expect(lines.join('')).toContain('the cluster cannot be read'));
    expect(seen).not.toContain('missing');
    server.put({ targets: 'b' });
    await server.listen();
    await expectLast({ targets: 'b' });
  });

  it.each([
    ['data of other types', { targets: 'a', number: 1, list: [], nothing: null }, { targets: 'a' }],
    ['no data', undefined, {}],
  ])('may have %s', async (_what, data, expected) => {
    const server = await startConfigMapServer();
    server.put(data);
    const { expectLast } = await watched(server);
    await expectLast(expected);
  });
});
