import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startControlApi } from '../../../lab/control-api/control-api.ts';
import type { ControlApi } from '../../../lab/control-api/control-api.ts';
import { FAULTS } from '../../../lab/control-api/faults.ts';
import type { FaultRule } from '../../../lab/control-api/faults.ts';
import { tailnetBehind } from '../../../lab/control-api/real-tailnet.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import type { Starter } from '../../../lab/process/starter.ts';
import { startMeshNode } from '../../../lab/tailnet/mesh-node.ts';
import { changeNode, listNodes, removeNode, setTags } from '../../../lab/tailnet/tailnet.ts';
import type { TailnetNode } from '../../../lab/tailnet/tailnet.ts';
import { OAUTH_SECRET } from '../../../src/api/names.ts';
import { eventually, IS_LONG } from '../../support/eventually.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { hostOf, routeWithEndpointHeader, untilEndpoints } from '../../support/lab/traffic/changing-world.ts';
import { startLoad } from '../../support/lab/traffic/load.ts';
import type { Load } from '../../support/lab/traffic/load.ts';
import { clusterOf, meshEndpoints, meshTailnet } from '../../support/lab/traffic/objects.ts';
import { startSystem } from '../../support/lab/traffic/system.ts';
import type { System } from '../../support/lab/traffic/system.ts';

/** How often devices change, and how long lists of devices are wrong. */
const FORM = IS_LONG ? { changes: 50, wrongMs: 150_000 } : { changes: 2, wrongMs: 2_500 };

const PER_SECOND = 50;
const CLUSTER = clusterOf({ kind: 'HTTPRoute', name: 'found' });
const STAYING = ['web-1', 'web-2'];
const CHANGING = ['changing-1', 'changing-2'];

/** The dialects of spec.dialect. */
const DIALECTS = { vendor: 'Vendor', headscale: 'Headscale' } as const;

let secrets: string;
let system: System;
let starter: Starter;
let port: number;
beforeAll(async () => {
  secrets = mkdtempSync(join(tmpdir(), 'mesh-secrets-'));
  system = await startSystem({ variables: { SECRETS_DIR: secrets } });
  const { lab, folder, gateway } = system;
  starter = starterIn(folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  // Each device forwards this port to the service of web-1.
  port = remoteOf(lab, 'web-1').ports['http'] ?? 0;
  await Promise.all(CHANGING.map(joined));
  system.put('route', [routeWithEndpointHeader(gateway, { name: 'found', refs: [{ name: 'found', port }] })]);
  const found = meshEndpoints(lab, 'found', []);
  const spec = {
    tailnet: lab.tailnet.domain,
    tagSelectors: [{ key: 'web', operator: 'Exists' }],
    endpointTemplate: { port, protocol: 'HTTP' },
  };
  system.put('found', [{ ...found, spec }]);
});
afterAll(async () => {
  await system.end();
  rmSync(secrets, { recursive: true, force: true });
});

async function joined(hostname: string): Promise<TailnetNode> {
  return await startMeshNode(starter, system.lab.tailnet, { hostname, tags: ['tag:web'] });
}

async function nodeNamed(hostname: string): Promise<TailnetNode> {
  const node = (await listNodes(system.lab.tailnet.admin)).find(one => one.hostname === hostname);
  if (!node) throw new Error(`the tailnet has no ${hostname}`);
  return node;
}

async function addressOf(hostname: string): Promise<string> {
  return `${(await nodeNamed(hostname)).addresses[0] ?? ''}:${port}`;
}

/** Waits until Envoy has the endpoints of exactly these devices; those that drain do not count. */
async function untilDevices(hostnames: readonly string[]): Promise<void> {
  const expected = await Promise.all(hostnames.map(addressOf));
  await untilEndpoints(
    system.gateway,
    CLUSTER,
    ({ address, health }) => (health === 'DRAINING' ? '' : address),
    expected,
  );
}

describe.each(['vendor', 'headscale'] as const)('devices of a control server of the dialect %s', dialect => {
  let api: ControlApi;
  let load: Load;
  beforeEach(async () => {
    const { lab, gateway } = system;
    api = await startControlApi({ dialect, behind: tailnetBehind(lab.tailnet.admin) });
    const { id, secret } = api.addClient(['devices:core:read']);
    const folder = join(secrets, OAUTH_SECRET);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'client-id'), id);
    writeFileSync(join(folder, 'client-secret'), secret);
    const tailnet = meshTailnet(lab, [lab.proxy]);
    const spec = {
      ...(tailnet['spec'] as object),
      controlURL: api.url,
      syncInterval: '1s',
      dialect: DIALECTS[dialect],
    };
    system.put('tailnet', [{ ...tailnet, spec }]);
    await untilDevices([...STAYING, ...CHANGING]);
    // Envoy may still have them from before: at the second list of this API the first was taken over.
    await eventually(() => expect(lists()).toBeGreaterThan(1));
    const targets = [{ host: hostOf('found') }];
    load = startLoad({ listener: gateway.listeners.http, targets, perSecond: PER_SECOND });
  });
  afterEach(async () => {
    await load.stop();
    await api.close();
  });

  const lists = () => api.countByRoute()['devices.list'] ?? 0;

  /** The failures of requests that were not sent to a device that has left. */
  async function failuresOfStaying(): Promise<readonly unknown[]> {
    const left = await Promise.all(CHANGING.map(addressOf));
    return load.failures().filter(({ message }) => !left.some(address => message.includes(address)));
  }

  it('get traffic while they are online and have the tags, and no request to others fails', async () => {
    const { admin } = system.lab.tailnet;
    for (let count = 0; count < FORM.changes; count++) {
      const [name = '', other = ''] = count % 2 === 0 ? CHANGING : CHANGING.toReversed();
      const [tagged, away] = [await nodeNamed(name), await nodeNamed(other)];
      await setTags(admin, tagged.id, ['tag:other']);
      await changeNode(admin, away.id, 'offline');
      await untilDevices(STAYING);
      await setTags(admin, tagged.id, ['tag:web']);
      await untilDevices([...STAYING, name]);
      await changeNode(admin, away.id, 'online');
      await untilDevices([...STAYING, ...CHANGING]);
    }
    await load.stop();
    console.log(dialect, { answered: load.answered(), failed: load.failures().length });
    expect(await failuresOfStaying()).toEqual([]);
    expect(load.answered()).toBeGreaterThan(PER_SECOND);
  });

  it('stay while the control API returns wrong lists, and when it is back', async () => {
    const wrong: readonly FaultRule['fault'][] = [
      { is: 'answer', status: 200, json: { devices: [] } },
      { is: 'half-lists' },
      FAULTS.internalError,
      FAULTS.html,
      { is: 'truncate' },
    ];
    for (const fault of wrong) {
      const before = lists();
      const restore = api.fail({ routes: ['devices.list'], fault });
      await sleep(FORM.wrongMs);
      // After a failure the next list is asked for later.
      await eventually(() => expect(lists(), 'wrong lists were answered').toBeGreaterThan(before));
      await untilDevices([...STAYING, ...CHANGING]);
      restore();
    }
    await untilDevices([...STAYING, ...CHANGING]);
    await load.stop();
    expect(load.failures()).toEqual([]);
    expect(load.answered()).toBeGreaterThan(PER_SECOND);
  });

  it('join, and leave', async () => {
    const { admin } = system.lab.tailnet;
    const names = ['expiring', 'removed'].map(name => `${name}-${dialect}`);
    const nodes = await Promise.all(names.map(joined));
    await untilDevices([...STAYING, ...CHANGING, ...names]);
    const [expiring, removed] = nodes;
    await changeNode(admin, expiring?.id ?? '', 'expire');
    await removeNode(admin, removed?.id ?? '');
    await untilDevices([...STAYING, ...CHANGING]);
    await removeNode(admin, expiring?.id ?? '');
    await load.stop();
    const left = nodes.map(({ addresses }) => `${addresses[0] ?? ''}:${port}`);
    const others = load.failures().filter(({ message }) => !left.some(address => message.includes(address)));
    expect(others).toEqual([]);
    expect(load.answered()).toBeGreaterThan(PER_SECOND);
  });
});
