import { describe, expect, it, onTestFinished } from 'vitest';
import { ENVOY_POD } from '../../src/api/names.ts';
import { watchPodAddresses } from '../../src/kubernetes/pod-addresses.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import type { PodAddresses } from '../../src/store/callers.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { sourceMetrics } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import { eventually } from '../support/eventually.ts';
import { PodServer } from '../support/kubernetes/pod-server.ts';

const GATEWAYS = 'gateways';

type PodFields = {
  readonly uid?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
  readonly spec?: object;
  readonly status?: unknown;
};

/** The pod of an Envoy, which is not ready yet. */
function envoyPod(name: string, ip: string, fields: PodFields = {}) {
  const { uid = name, labels = ENVOY_POD.labels, spec = {}, status, ...metadata } = fields;
  return {
    metadata: { name, namespace: GATEWAYS, uid, labels, ...metadata },
    spec,
    status: status ?? statusOf(ip),
  };
}

function statusOf(ip: string, more: object = {}): object {
  const state = { running: { startedAt: '2026-11-26T10:00:00Z' } };
  const containerStatuses = [
    { name: 'envoy', state },
    { name: 'shutdown-manager', state },
  ];
  return { phase: 'Running', hostIPs: [{ ip: '192.0.2.1' }], podIPs: [{ ip }], containerStatuses, ...more };
}

const RUNNING = { running: {} };
const TERMINATED = { terminated: { exitCode: 0 } };

/** Watches the Envoys of a namespace; each set is added to `seen`. */
function watched(server: PodServer) {
  const seen: (readonly PodAddresses[])[] = [];
  const lines: string[] = [];
  const watch = watchPodAddresses({
    transport: server,
    namespace: GATEWAYS,
    labels: ENVOY_POD.labels,
    clock: systemClock,
    random: () => 0.5,
    telemetry: {
      log: createLog({ level: 'info', to: { write: line => void lines.push(line) } }),
      metrics: createRegistry({ metrics: sourceMetrics, version: 'test', known: { kind: ['Pod'] } }),
    },
    onChange: pods => seen.push(pods),
    timing: { firstBackoffMs: 2, maxBackoffMs: 4, watchMs: [60_000, 60_000] },
  });
  onTestFinished(() => watch.close());
  watch.start();
  const addresses = () => seen.at(-1)?.flatMap(pod => pod.addresses);
  const expectAddresses = (...expected: readonly string[]) =>
    eventually(() => expect(addresses()).toEqual(expected));
  return { seen, lines, addresses, expectAddresses };
}

describe('the addresses of pods', () => {
  it('are known, without any, once the pods have been listed', async () => {
    const { seen } = watched(new PodServer());
    await eventually(() => expect(seen).toEqual([[]]));
  });

  it('are those of the labels in the namespace', async () => {
    const server = new PodServer();
    server.put(envoyPod('a', '10.0.0.1'));
    server.put(envoyPod('other', '10.0.0.2', { labels: { app: 'other' } }));
    const { expectAddresses } = watched(server);
    await expectAddresses('10.0.0.1');
    expect(server.requests[0]?.path).toBe('/api/v1/namespaces/gateways/pods');
  });

  it('follow a Deployment that is scaled up and down', async () => {
    const server = new PodServer();
    const pods = Array.from({ length: 10 }, (_, at) => envoyPod(`envoy-${at}`, `10.0.0.${at}`));
    const ips = pods.map((_, at) => `10.0.0.${at}`);
    for (const pod of pods.slice(0, 1)) server.put(pod);
    const { expectAddresses } = watched(server);
    await expectAddresses('10.0.0.0');
    for (const pod of pods.slice(1)) server.put(pod);
    await expectAddresses(...ips);
    for (const pod of pods.slice(1)) server.remove(pod);
    await expectAddresses('10.0.0.0');
  });

  it('count from the moment a pod has one, before it is ready', async () => {
    const server = new PodServer();
    server.put(envoyPod('a', '', { status: { phase: 'Pending' } }));
    const { seen, expectAddresses } = watched(server);
    await eventually(() => expect(seen).toEqual([[]]));
    server.put(envoyPod('a', '', { status: { phase: 'Pending', podIPs: [{ ip: '10.0.0.1' }] } }));
    await expectAddresses('10.0.0.1');
  });

  it('have both families, in canonical text, and those of the node', async () => {
    const server = new PodServer();
    const podIPs = [{ ip: '10.0.0.1' }, { ip: 'FD00:0::0007' }];
    const hostIPs = [{ ip: '192.0.2.1' }, { ip: '2001:db8::1' }];
    server.put(envoyPod('a', '', { status: statusOf('', { podIPs, hostIPs }) }));
    const { seen } = watched(server);
    await eventually(() =>
      expect(seen.at(-1)).toEqual([
        {
          ...{ uid: 'a', isHostNetwork: false },
          addresses: ['10.0.0.1', 'fd00::7'],
          nodeAddresses: ['192.0.2.1', '2001:db8::1'],
        },
      ]),
    );
  });

  it('are those of the node where a pod uses its network', async () => {
    const server = new PodServer();
    server.put(envoyPod('a', '192.0.2.1', { spec: { hostNetwork: true } }));
    const { seen } = watched(server);
    await eventually(() => expect(seen.at(-1)).toMatchObject([{ isHostNetwork: true }]));
  });

  it('do not change with anything else of a pod', async () => {
    const server = new PodServer();
    server.put(envoyPod('a', '10.0.0.1'));
    const { seen, expectAddresses } = watched(server);
    await expectAddresses('10.0.0.1');
    server.put(envoyPod('a', '10.0.0.1', { status: statusOf('10.0.0.1', { conditions: [{}] }) }));
    server.put(envoyPod('b', '10.0.0.2'));
    await expectAddresses('10.0.0.1', '10.0.0.2');
    expect(seen).toHaveLength(2);
  });
});

describe('the address of a pod that ends', () => {
  const ended = (first: object, second: object) =>
    envoyPod('a', '10.0.0.1', {
      deletionTimestamp: '2026-11-26T12:00:00Z',
      status: statusOf('10.0.0.1', {
        containerStatuses: [
          { name: 'envoy', state: first },
          { name: 'shutdown-manager', state: second },
        ],
      }),
    });

  it('stays while any of its containers runs, and is removed before the pod is', async () => {
    const server = new PodServer();
    server.put(envoyPod('a', '10.0.0.1'));
    const { seen, expectAddresses } = watched(server);
    await expectAddresses('10.0.0.1');
    server.put(ended(RUNNING, RUNNING));
    server.put(ended(TERMINATED, RUNNING));
    server.put(envoyPod('b', '10.0.0.2'));
    await expectAddresses('10.0.0.1', '10.0.0.2');
    server.put(ended(TERMINATED, TERMINATED));
    await expectAddresses('10.0.0.2');
    expect(seen).toHaveLength(3);
  });

  it('stays while its containers are restarted', async () => {
    const server = new PodServer();
    const state = { terminated: { exitCode: 1 } };
    const status = statusOf('10.0.0.1', { containerStatuses: [{ name: 'envoy', state }] });
    server.put(envoyPod('a', '', { status }));
    await watched(server).expectAddresses('10.0.0.1');
  });

  it.each(['Succeeded', 'Failed'])('is removed in phase %s', async phase => {
    const server = new PodServer();
    server.put(envoyPod('a', '10.0.0.1'));
    const { expectAddresses } = watched(server);
    await expectAddresses('10.0.0.1');
    server.put(envoyPod('a', '10.0.0.1', { status: statusOf('10.0.0.1', { phase }) }));
    await expectAddresses();
  });

  it('is that of a later pod which has it, and not of one with other labels', async () => {
    const server = new PodServer();
    server.put(envoyPod('a', '10.0.0.1'));
    const { seen, expectAddresses } = watched(server);
    await expectAddresses('10.0.0.1');
    server.put(ended(TERMINATED, TERMINATED));
    server.put(envoyPod('other', '10.0.0.1', { labels: { app: 'other' } }));
    server.remove(ended(TERMINATED, TERMINATED));
    await expectAddresses();
    server.put(envoyPod('b', '10.0.0.1'));
    await expectAddresses('10.0.0.1');
    expect(seen.map(pods => pods.map(({ uid }) => uid))).toEqual([['a'], [], ['b']]);
  });

  it('is that of the new pod where one of the same name takes its place', async () => {
    const server = new PodServer();
    server.put(envoyPod('a', '10.0.0.1'));
    const { seen, expectAddresses } = watched(server);
    await expectAddresses('10.0.0.1');
    server.remove(envoyPod('a', '10.0.0.1'));
    server.put(envoyPod('a', '10.0.0.2', { uid: 'second' }));
    await expectAddresses('10.0.0.2');
    expect(seen.at(-1)).toMatchObject([{ uid: 'second' }]);
  });
});

describe('a status that is not one of Kubernetes', () => {
  it.each<[string, unknown]>([
    ['no status', null],
    ['a text', 'Running'],
    ['addresses that are no list', { podIPs: { ip: '10.0.0.9' } }],
    ['addresses of other types', { podIPs: [null, 7, {}, { ip: 7 }, ['10.0.0.9']] }],
    ['a name', { podIPs: [{ ip: 'localhost' }] }],
    ['a range', { podIPs: [{ ip: '10.0.0.0/8' }] }],
    ['a zone', { podIPs: [{ ip: 'fe80::1%eth0' }] }],
    ['an IPv4-mapped address', { podIPs: [{ ip: '::ffff:10.0.0.9' }] }],
    ['loopback', { podIPs: [{ ip: '127.0.0.1' }, { ip: '::1' }] }],
    ['all addresses', { podIPs: [{ ip: '0.0.0.0' }, { ip: '::' }] }],
    ['multicast', { podIPs: [{ ip: '224.0.0.1' }, { ip: 'ff02::1' }] }],
  ])('has no address: %s', async (_what, status) => {
    const server = new PodServer();
    server.put({ ...envoyPod('a', ''), status });
    server.put(envoyPod('b', '10.0.0.2'));
    await watched(server).expectAddresses('10.0.0.2');
  });
});

describe('a namespace whose pods may not be listed', () => {
  it('counts as empty once it was refused repeatedly, is named in the log once, and is tried again', async () => {
    const server = new PodServer();
    server.refuse(GATEWAYS);
    server.put(envoyPod('a', '10.0.0.1'));
    const { seen, lines, expectAddresses } = watched(server);
    await eventually(() => expect(seen).toEqual([[]]));
    expect(server.listsOf(GATEWAYS)).toBeGreaterThanOrEqual(5);
    await eventually(() => expect(server.listsOf(GATEWAYS)).toBeGreaterThan(10));
    const refusals = lines.filter(line => line.includes('count as none'));
    expect(refusals).toEqual([expect.stringContaining('"namespace":"gateways"')]);
    server.permit(GATEWAYS);
    await expectAddresses('10.0.0.1');
  });

  it('keeps its addresses over a short refusal, and loses them in a long one', async () => {
    const server = new PodServer();
    server.put(envoyPod('a', '10.0.0.1'));
    const { seen, expectAddresses } = watched(server);
    await expectAddresses('10.0.0.1');
    server.refuse(GATEWAYS);
    await eventually(() => expect(server.listsOf(GATEWAYS)).toBeGreaterThan(1));
    await expectAddresses();
    server.permit(GATEWAYS);
    await expectAddresses('10.0.0.1');
    expect(seen).toHaveLength(3);
  });
});
