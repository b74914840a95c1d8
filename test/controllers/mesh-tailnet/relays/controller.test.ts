import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RelayScene } from '../../../support/controllers/mesh-tailnet/relays/scene.ts';

const [ONE, TWO] = ['100.64.0.1:53', '[fd7a:115c:a1e0::2]:53'];
const [POD, OTHER] = ['10.0.0.7', 'fd00::8'];

let scene: RelayScene;

beforeEach(() => {
  scene = new RelayScene();
});

afterEach(() => scene.close());

/** A tailnet with two relays. */
async function startPool(targets: readonly string[] = [ONE]): Promise<void> {
  scene.putTailnet();
  scene.putTargets(targets);
  scene.putPod('meshd-example-0', POD);
  scene.putPod('meshd-example-1', OTHER);
  await scene.advance(200);
}

function portOf(target: string, tailnet = 'example'): string {
  return scene.published(tailnet)?.[target]?.replace('?', '') ?? 'none';
}

describe('the ConfigMap of the relays of a tailnet', () => {
  it('has the port of each target, the labels of the pool and its owner', async () => {
    await startPool([ONE, TWO]);
    const [one, two] = [portOf(ONE), portOf(TWO)];
    expect(scene.stored()).toBe([`${one} ${ONE}\n`, `${two} ${TWO}\n`].sort().join(''));
    expect(scene.namespace.find('ConfigMap', 'mesh-relay-example')?.metadata).toMatchObject({
      labels: {
        'app.kubernetes.io/name': 'mesh-endpoint',
        'app.kubernetes.io/managed-by': 'mesh-gateway',
        'mesh-gateway.dev/tailnet': 'example',
      },
      ownerReferences: [{ kind: 'MeshTailnet', name: 'example', controller: true }],
    });
  });

  it('has no port for an address that must get no traffic', async () => {
    await startPool([ONE, '100.88.0.1:53']);
    expect(scene.stored()).toBe(`${portOf(ONE)} ${ONE}\n`);
    expect(portOf('100.88.0.1:53')).toBe('none');
  });

  it('is created for a tailnet without endpoints and before any pod, once', async () => {
    scene.putTailnet();
    await scene.advance(60_000);
    expect(scene.stored()).toBe('');
    expect(scene.namespace.list().map(({ kind }) => kind)).toEqual(['ConfigMap']);
    expect(scene.writes()).toEqual(['apply ConfigMap mesh-relay-example']);
    expect(scene.published()).toEqual({});
  });

  it.each([
    ['whose pool others run', { pool: { mode: 'External', addresses: ['10.0.0.9:1055'] } }],
    ['whose domain is that of an older one', { tailnet: 'older.ts.net' }],
  ])('is not created for a tailnet %s', async (_, spec) => {
    scene.putTailnet({ tailnet: 'older.ts.net' }, 'older');
    await scene.advance(5000);
    scene.putTailnet(spec);
    await scene.advance(60_000);
    expect(scene.stored('older')).toBe('');
    expect(scene.namespace.find('ConfigMap', 'mesh-relay-example')).toBeUndefined();
  });

  it('is created without targets where only other namespaces have UDP endpoints', async () => {
    const selector = { matchLabels: { team: 'a' } };
    scene.putTailnet({ allowedNamespaces: { from: 'Selector', selector } });
    scene.putTargets([ONE]);
    await scene.advance(200);
    expect(scene.stored()).toBe('');
    expect(scene.published()).toEqual({});
    const metadata = { name: 'default', labels: { team: 'a' } };
    scene.put({ apiVersion: 'v1', kind: 'Namespace', metadata });
    await scene.advance(200);
    expect(scene.stored()).toContain(ONE);
  });

  it('stays without targets when the last UDP endpoint is removed', async () => {
    await startPool();
    const port = portOf(ONE);
    scene.remove('MeshEndpoints', 'default/dns');
    await scene.advance(200);
    expect(scene.stored()).toBe('');
    expect(scene.published()).toEqual({});
    scene.putTargets([ONE]);
    await scene.advance(200);
    expect(scene.published()).toEqual({ [ONE]: port });
  });

  it('is written only where it differs, and applied again every 10 minutes', async () => {
    await startPool();
    expect(scene.writes()).toEqual(['apply ConfigMap mesh-relay-example']);
    await scene.advance(590_000);
    expect(scene.writes()).toHaveLength(1);
    const { resourceVersion } = scene.namespace.find('ConfigMap', 'mesh-relay-example')?.metadata ?? {};
    await scene.advance(60_000);
    expect(scene.writes()).toHaveLength(2);
    expect(scene.namespace.find('ConfigMap', 'mesh-relay-example')?.metadata).toMatchObject({
      resourceVersion,
    });
  });

  it('has no target of an endpoint with another protocol or with externalTarget', async () => {
    scene.putTailnet();
    scene.putTargets([ONE]);
    const fields = { name: 'web', meshIP: '100.64.0.9', meshFQDN: 'web.example.ts.net' };
    scene.put({
      apiVersion: 'mesh-gateway.dev/v1alpha1',
      kind: 'MeshEndpoints',
      metadata: { name: 'others', namespace: 'default' },
      spec: {
        tailnet: 'example.ts.net',
        endpoints: [
          { ...fields, port: 80, protocol: 'TCP' },
          { ...fields, name: 'dns', port: 53, protocol: 'UDP', externalTarget: 'dns.example.com:53' },
        ],
      },
    });
    await scene.advance(200);
    expect(Object.keys(scene.published() ?? {})).toEqual([ONE]);
  });

  it.each([
    ['lines that are no targets', (line: string) => `hello\n${line}20001\n99999 ${ONE}\n`],
    ['a target twice', (line: string) => `${line}29999 ${ONE}\n`],
    ['targets that no endpoint has', (line: string) => `${line}29999 100.64.0.200:53\n`],
    [
      'another order and format',
      (line: string) => `29999 100.64.0.200:53\n${line.replace('\n', ' \n')}${line}`,
    ],
  ])('heals where it has %s', async (_, edit) => {
    await startPool();
    const before = scene.stored() ?? '';
    await scene.edit(edit(before));
    await scene.advance(31_000);
    expect(scene.stored()).toBe(before);
    expect(scene.published()).toEqual({ [ONE]: portOf(ONE) });
  });

  it.each([
    ['no targets', undefined],
    ['empty targets', ''],
  ])('gets the same ports again where it has %s', async (_, text) => {
    await startPool([ONE, TWO]);
    const before = scene.stored();
    await scene.edit(text);
    await scene.advance(31_000);
    expect(scene.stored()).toBe(before);
  });

  it('gets other ports where the range has changed, and is confirmed again', async () => {
    await startPool();
    await scene.restart({ relayPortRange: { first: 1024, last: 1030 } });
    await scene.advance(200);
    expect(Number(portOf(ONE))).toBeLessThanOrEqual(1030);
    expect(scene.published()?.[ONE]).not.toContain('?');
  });
});

describe('the ports of a tailnet', () => {
  it('are confirmed once all relays have them', async () => {
    scene.putTailnet();
    scene.putTargets([ONE]);
    scene.putPod('meshd-example-0', POD);
    scene.putPod('meshd-example-1', OTHER, { behaviour: { version: '0'.repeat(16) } });
    await scene.advance(1500);
    expect(scene.published()).toEqual({ [ONE]: `${portOf(ONE)}?` });
    expect(scene.urls).toContain('http://[fd00::8]:9003/relay');
    scene.setRelay(OTHER, {});
    await scene.advance(1000);
    expect(scene.published()).toEqual({ [ONE]: portOf(ONE) });
    expect(scene.events).toEqual([]);
  });

  it('are polled 200 ms after each other at first, and not any more once they are confirmed', async () => {
    scene.putTailnet();
    scene.putTargets([ONE]);
    scene.putPod('meshd-example-0', POD, { behaviour: { version: '0'.repeat(16) } });
    await scene.advance(1100);
    const early = scene.urls.length;
    expect(early).toBeGreaterThanOrEqual(5);
    await scene.advance(4000);
    expect(scene.urls.length - early).toBeLessThanOrEqual(6);
    scene.setRelay(POD, {});
    await scene.advance(1000);
    const { length } = scene.urls;
    await scene.advance(20_000);
    expect(scene.urls.length - length).toBeLessThanOrEqual(1);
  });

  it('are confirmed within seconds while endpoints are added all the time, in a bounded number of writes', async () => {
    await startPool();
    scene.lagMs = 100;
    for (let n = 0; n < 600; n++) {
      scene.putTargets([`100.64.${1 + (n >> 8)}.${n & 255}:53`], `default/dns-${n}`);
      await scene.advance(20);
    }
    const confirmed = Object.values(scene.published() ?? {}).filter(port => !port.includes('?'));
    expect(confirmed.length).toBeGreaterThan(500);
    expect(scene.writes().length).toBeLessThan(100);
    expect(scene.events).toEqual([]);
  });

  it('wait for a ready relay, and name the condition that has the cause', async () => {
    scene.putTailnet();
    scene.putTargets([ONE]);
    scene.putPod('meshd-example-0', POD, { isReady: false });
    scene.putPod('meshd-example-1', OTHER, { hasRelay: false });
    await scene.advance(20_000);
    expect(scene.published()).toEqual({ [ONE]: `${portOf(ONE)}?` });
    expect(scene.missing()[ONE]).toContain('see its condition PoolReady');
    expect(scene.urls).toEqual([]);
    scene.putPod('meshd-example-0', POD);
    await scene.advance(200);
    expect(scene.published()).toEqual({ [ONE]: portOf(ONE) });
    expect(scene.missing()).toEqual({});
  });

  it('stay confirmed while all pods are replaced', async () => {
    await startPool();
    scene.removePod('meshd-example-0');
    scene.removePod('meshd-example-1');
    await scene.advance(60_000);
    expect(scene.published()).toEqual({ [ONE]: portOf(ONE) });
  });

  it.each([
    ['hangs', 'hangs', 'port 9003 .no response within 1000 ms'],
    ['is away', 'is away', 'ECONNREFUSED'],
    ['lies', { text: '{"version":"latest","failed":{}}' }, 'not the status of a relay'],
    ['stays behind', { version: '0'.repeat(16) }, 'has not read its current targets'],
  ] as const)('are confirmed by the other relay after 10 s where one %s', async (_, behaviour, why) => {
    scene.putTailnet();
    scene.putTargets([ONE]);
    scene.putPod('meshd-example-0', POD);
    scene.putPod('meshd-example-1', OTHER, { behaviour });
    await scene.advance(9000);
    expect(scene.published()?.[ONE]).toContain('?');
    await scene.advance(5000);
    expect(scene.published()).toEqual({ [ONE]: portOf(ONE) });
    expect(scene.events).toMatchObject([
      {
        regarding: { kind: 'MeshTailnet', name: 'example' },
        type: 'Warning',
        reason: 'RelayNotCurrent',
        note: expect.stringMatching(`mesh pod meshd-example-1: .*${why}`) as string,
      },
    ]);
    expect(
      scene.lines.filter(line => line.includes('a relay does not listen on all of its ports')),
    ).toHaveLength(1);
  });

  it('do not wait for a relay that is known to be late, and it is reported once', async () => {
    await startPool();
    scene.setRelay(OTHER, 'is away');
    scene.putTargets([ONE, TWO]);
    await scene.advance(15_000);
    expect(scene.published()).toEqual({ [ONE]: portOf(ONE), [TWO]: portOf(TWO) });
    const third = '100.64.0.3:53';
    scene.putTargets([ONE, TWO, third]);
    await scene.advance(300);
    expect(scene.published()?.[third]).toBe(portOf(third));
    expect(scene.events).toHaveLength(1);
    scene.setRelay(OTHER, {});
    await scene.advance(31_000);
    scene.setRelay(OTHER, 'is away');
    await scene.advance(60_000);
    expect(scene.events).toHaveLength(2);
  });

  it('are not confirmed where no relay responds, and have the reason', async () => {
    scene.putTailnet();
    scene.putTargets([ONE]);
    scene.putPod('meshd-example-0', POD, { behaviour: 'is away' });
    await scene.advance(30_000);
    expect(scene.published()?.[ONE]).toContain('?');
    expect(scene.missing()[ONE]).toMatch(
      /^no relay listens on the port yet \(meshd-example-0: its relay does not respond/,
    );
    const { length } = scene.urls;
    await scene.advance(60_000);
    expect(scene.urls.length - length).toBeLessThan(12);
  });

  it('are confirmed where one relay cannot listen and another one does; the first is reported', async () => {
    await startPool();
    const failed = { [portOf(ONE)]: 'EADDRINUSE' };
    scene.setRelay(POD, { failed });
    await scene.advance(31_000);
    expect(scene.published()).toEqual({ [ONE]: portOf(ONE) });
    expect(scene.events).toMatchObject([
      {
        reason: 'RelayPortsFailed',
        note: `mesh pod meshd-example-0: its relay cannot listen on UDP port ${portOf(ONE)} (EADDRINUSE)`,
      },
    ]);
  });

  it('are missing where no relay can listen, with the reason, until one does', async () => {
    scene.putTailnet();
    scene.putTargets([ONE, TWO]);
    scene.putPod('meshd-example-0', POD);
    await scene.advance(200);
    const port = portOf(ONE);
    scene.setRelay(POD, { failed: { [port]: 'EADDRINUSE', 1024: 'EACCES' } });
    await scene.advance(31_000);
    expect(scene.published()).toEqual({
      [ONE]: `no mesh pod can listen on UDP port ${port} (meshd-example-0: EADDRINUSE): choose other meshPods.relayPorts (RELAY_PORTS)`,
      [TWO]: portOf(TWO),
    });
    expect(scene.stored()).toContain(`${port} ${ONE}\n`);
    scene.setRelay(POD, {});
    await scene.advance(10_000);
    expect(scene.published()?.[ONE]).toBe(port);
  });

  it('are kept by other targets for 10 s after they were freed', async () => {
    await scene.restart({ relayPortRange: { first: 20_000, last: 20_000 }, relayPortsPerNamespace: 2 });
    await startPool();
    scene.putTargets([TWO]);
    await scene.advance(200);
    expect(scene.stored()).toBe('');
    expect(scene.published()?.[TWO]).toContain('no relay port is left');
    await scene.advance(10_000);
    expect(scene.published()).toEqual({ [TWO]: '20000' });
  });

  it('are an eighth of the range for a namespace, also while those that it had are not free yet', async () => {
    await scene.restart({ relayPortRange: { first: 20_000, last: 20_009 } });
    await startPool();
    scene.putTargets([TWO]);
    await scene.advance(200);
    expect(scene.published()?.[TWO]).toContain('all of its 1 relay ports');
    scene.putTargets(['100.64.0.3:53'], 'other/dns');
    await scene.advance(1000);
    expect(scene.published()?.['100.64.0.3:53']).toMatch(/^2000\d$/);
    await scene.advance(10_000);
    expect(scene.published()?.[TWO]).toMatch(/^2000\d$/);
  });

  it('are withdrawn where the operator runs no relays', async () => {
    await startPool();
    await scene.restart({ relayImage: undefined });
    await scene.advance(200);
    expect(scene.published()?.[ONE]).toContain('RELAY_IMAGE');
    expect(scene.stored()).toContain(ONE);
  });

  it('are published once for each change', async () => {
    await startPool();
    const { length } = scene.notified();
    await scene.advance(120_000);
    expect(scene.notified()).toHaveLength(length);
  });
});

describe('a MeshTailnet', () => {
  it.each([
    ['has a pool that others run', { pool: { mode: 'External', addresses: ['10.0.0.9:1055'] } }],
    ['moves to the domain of an older one', { tailnet: 'older.ts.net' }],
  ])('that %s has no ports', async (_, spec) => {
    scene.putTailnet({ tailnet: 'older.ts.net' }, 'older');
    await scene.advance(5000);
    await startPool();
    expect(scene.published()).toBeDefined();
    scene.putTailnet(spec);
    await scene.advance(200);
    expect(scene.published()).toBeUndefined();
  });

  it('that is deleted is forgotten', async () => {
    await startPool();
    scene.remove('MeshTailnet', 'example');
    await scene.advance(200);
    expect(scene.published()).toBeUndefined();
  });

  it('gets the ports of a domain when the older one is deleted', async () => {
    await startPool();
    await scene.advance(5000);
    scene.putTailnet({}, 'a-newer');
    await scene.advance(200);
    expect(scene.published('a-newer')).toBeUndefined();
    scene.remove('MeshTailnet', 'example');
    await scene.advance(200);
    expect(scene.published('a-newer')).toHaveProperty([ONE]);
  });

  it('has ports of its own, whatever another one has', async () => {
    await startPool();
    scene.putTailnet({ tailnet: 'other.ts.net' }, 'other');
    scene.putTargets([ONE], 'default/other', { tailnet: 'other.ts.net' });
    scene.putPod('meshd-other-0', '10.0.1.7', { tailnet: 'other', behaviour: 'hangs' });
    await scene.advance(200);
    expect(scene.stored('other')).toBe(scene.stored());
    expect(scene.published('other')).not.toEqual(scene.published());
    scene.putTargets([ONE, TWO]);
    await scene.advance(200);
    expect(scene.published()).toEqual({ [ONE]: portOf(ONE), [TWO]: portOf(TWO) });
    expect(scene.stored('other')).not.toContain(TWO);
  });
});

describe('a new process', () => {
  it('changes no port, and confirms all again', async () => {
    await startPool([ONE, TWO]);
    const [before, published] = [scene.stored(), scene.published()];
    await scene.restart();
    await scene.advance(0);
    expect([scene.stored(), scene.published()]).toEqual([before, published]);
  });

  it.each([1, 2, 3, 4])('continues where the one before crashed at its call %i', async at => {
    scene.putTailnet();
    scene.putPod('meshd-example-0', POD);
    await scene.advance(200);
    scene.disturb({ at, is: 'is followed by a crash' });
    scene.putTargets([ONE]);
    await scene.advance(200);
    const stored = scene.stored();
    scene.putTargets([ONE, TWO]);
    for (const _ of ['before the crash', 'after it']) await scene.advance(400);
    expect(scene.stored()).toContain(stored);
    expect(scene.published()).toEqual({ [ONE]: portOf(ONE), [TWO]: portOf(TWO) });
  });
});

describe('a process that ends', () => {
  it.each([
    ['waits for relays to read their targets', 50],
    ['reads a relay that does not respond', 150],
  ])('does not wait where a reconcile %s', async (_, ms) => {
    scene.putTailnet();
    scene.putPod('meshd-example-0', POD, { behaviour: 'hangs' });
    await scene.advance(1000);
    scene.putTargets([ONE]);
    await scene.advance(ms);
    expect(await scene.close()).toEqual([]);
  });
});

describe('errors of the API server', () => {
  it.each(['fails', 'loses its response', 'is the last to be carried out'] as const)(
    'delay ports and change none: a call %s',
    async is => {
      await startPool();
      for (const at of [1, 2]) {
        scene.disturb({ at, is });
        scene.putTargets([ONE, TWO, `100.64.0.1${at}:53`]);
        await scene.advance(1000);
        expect(Object.values(scene.published() ?? {}).join()).not.toMatch(/[^0-9,]/);
        expect(Object.keys(scene.published() ?? {})).toHaveLength(3);
      }
    },
  );
});
