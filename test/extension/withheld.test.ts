import { describe, expect, it } from 'vitest';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { cacheOver } from '../support/store/traffic.ts';
import type { ResolutionCache } from '../../src/extension/resolution-cache.ts';
import { createGuard } from '../../src/traffic/address-guard.ts';
import { createMemory } from '../support/store/memory.ts';
import { openGateway } from '../support/declared.ts';
import { endpoint } from '../support/objects.ts';
import { CERTIFICATE } from '../support/traffic/certificates.ts';
import {
  backend,
  configMapObject,
  endpointList,
  endpointsObject,
  httpRoute,
  tailnetObject,
} from '../support/traffic/objects.ts';

const WEB = 'httproute/default/web/rule/0';
const GATEWAY = 'default/public';
const gateway = { kind: 'Gateway', namespace: 'default', name: 'public' } as const;
const settings = { dataPath: 'Proxy', edsTarget: 'a:5005' } as const;

async function memoryOf(objects: readonly object[]) {
  const memory = createMemory(trafficIndexes, objects);
  await memory.start();
  return memory;
}

describe('addresses that must get no traffic', () => {
  it('are in no snapshot, and move no revision, which the operator may compute with other settings', async () => {
    const { read } = await memoryOf([
      openGateway('public'),
      httpRoute('web', [backend('web')]),
      endpointsObject('web', endpointList(2)),
      tailnetObject(),
    ]);
    const guard = createGuard({ allow: [], refuse: ['100.64.0.2'], apiServer: [] });
    const [guarded, open] = [{ guard }, {}].map(more => cacheOver(read, { ...settings, ...more }));
    const addressesOf = (cache: ResolutionCache | undefined) =>
      cache
        ?.snapshot(WEB, GATEWAY)
        ?.assignment.localities.flatMap(({ endpoints }) => endpoints.map(({ address }) => address));
    expect(addressesOf(guarded)).toEqual(['100.64.0.1']);
    expect(addressesOf(open)).toEqual(['100.64.0.1', '100.64.0.2']);
    expect(guarded?.snapshot(WEB, GATEWAY)?.unused).toMatchObject([{ reason: 'AddressRefused' }]);
    expect(guarded?.revisionOf(gateway)).toBeDefined();
    expect(guarded?.revisionOf(gateway)).toBe(open?.revisionOf(gateway));
  });
});

describe('TLS settings over the budget of a namespace', () => {
  it('close the sockets of rules until there is room, and change no snapshot', async () => {
    const full = CERTIFICATE.repeat(Math.floor((255 * 1024) / CERTIFICATE.length));
    const rules = Array.from({ length: 16 }, () => [backend('large')]);
    const first = httpRoute('a', ...rules);
    const { read, author } = await memoryOf([
      openGateway('public'),
      tailnetObject(),
      configMapObject('ca', { 'ca.crt': full }),
      endpointsObject('large', [endpoint({ protocol: 'HTTPS', tls: { caRef: { name: 'ca' } } })]),
      ...[first, httpRoute('b', ...rules), httpRoute('c', ...rules)],
      httpRoute('web', [backend('large')]),
    ]);
    const cache = cacheOver(read, settings);
    const open = cache.snapshot(WEB, GATEWAY);
    const before = cache.revisionOf(gateway);
    let notifications = 0;
    cache.watch(WEB, GATEWAY, { invalidated: () => (notifications += 1) });
    expect(cache.settingsOf('httproute/default/a/rule/0', [])?.socketMatches).toHaveLength(1);
    expect(cache.settingsOf(WEB, [])).toMatchObject({ defaultSocket: { is: 'closed' }, socketMatches: [] });
    expect(cache.settingsOf(WEB, [])).toBe(cache.settingsOf(WEB, []));
    await author.remove({ kind: 'HTTPRoute', namespace: 'default', name: 'a' });
    expect(cache.settingsOf(WEB, [])?.socketMatches).toHaveLength(1);
    expect(cache.revisionOf(gateway)).not.toBe(before);
    expect(cache.snapshot(WEB, GATEWAY)).toEqual(open);
    expect(notifications).toBe(0);
    await author.put(first);
    expect(cache.settingsOf(WEB, [])?.socketMatches).toHaveLength(0);
    expect(cache.revisionOf(gateway)).toBe(before);
  });
});
