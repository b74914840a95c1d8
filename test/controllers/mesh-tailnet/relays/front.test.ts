import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseDestinations } from '../../../../src/api/front.ts';
import { MAX_CALLERS, RELAY_DATA_LENGTH } from '../../../../src/api/shares.ts';
import { frontListsOf } from '../../../../src/controllers/mesh-tailnet/relays/front.ts';
import { frontInput } from '../../../support/controllers/mesh-tailnet/relays/front.ts';
import type { Enforcement } from '../../../../src/controllers/mesh-tailnet/enforcement/verdict.ts';
import { RelayScene } from '../../../support/controllers/mesh-tailnet/relays/scene.ts';
import { named } from '../../../support/declared.ts';
import { endpoint, meshEndpoints } from '../../../support/objects.ts';

const ANY = { callers: 'any\n', destinations: 'any\n' };
const WEB = '100.64.0.1 web.example.ts.net 8080\n';

let scene: RelayScene;

beforeEach(() => {
  scene = new RelayScene();
});

afterEach(() => scene.close());

/** Sets the addresses of the pods of Envoys and of the operator. */
function putCallers(...addresses: readonly string[]): void {
  scene.callers.set({ addresses, nodeAddresses: ['192.0.2.1'] });
}

/** A tailnet with one caller and the endpoint `web`, and more of its pool. */
async function startFront(pool: object = {}): Promise<void> {
  scene.putTailnet({ pool });
  scene.put(named(meshEndpoints(), 'default/web'));
  putCallers('10.0.0.7');
  await scene.advance(1000);
}

function putEndpoint(fields: object, name = 'default/web', spec: object = {}): void {
  scene.put(named(meshEndpoints({ endpoints: [endpoint({ ...fields })], ...spec }), name));
}

function destinations(): readonly string[] {
  return (scene.storedFront()?.destinations ?? '').split('\n').slice(0, -1);
}

describe('the callers of a front', () => {
  it('are those of the cluster, as they come and go', async () => {
    await startFront();
    expect(scene.storedFront()).toEqual({ callers: '10.0.0.7\n', destinations: WEB });
    putCallers('10.0.0.7', 'fd00::8');
    await scene.advance(1000);
    expect(scene.storedFront()?.callers).toBe('10.0.0.7\nfd00::8\n');
    putCallers('fd00::8');
    await scene.advance(1000);
    expect(scene.storedFront()?.callers).toBe('fd00::8\n');
    putCallers();
    await scene.advance(1000);
    expect(scene.storedFront()?.callers).toBe('');
  });

  it('are written at once, and those that change within 500 ms together', async () => {
    await startFront();
    const before = scene.writes().length;
    putCallers('10.0.1.0');
    await scene.advance(0);
    expect(scene.storedFront()?.callers).toBe('10.0.1.0\n');
    for (let n = 1; n < 50; n++) {
      putCallers(`10.0.1.${n}`);
      await scene.advance(10);
    }
    expect(scene.writes().length - before).toBe(1);
    await scene.advance(10);
    expect(scene.storedFront()?.callers).toBe('10.0.1.49\n');
    expect(scene.writes().length - before).toBe(2);
    await scene.advance(60_000);
    expect(scene.writes().length - before).toBe(2);
  });

  it('are written without delay beside a target, which waits for nothing', async () => {
    await startFront();
    putCallers('10.0.0.8');
    await scene.advance(0);
    putCallers('10.0.0.9');
    scene.putTargets(['100.64.0.9:53']);
    await scene.advance(0);
    expect(scene.storedFront()?.callers).toBe('10.0.0.9\n');
    expect(scene.stored()).toContain('100.64.0.9:53');
  });

  it('are also the allowed ones of the MeshTailnet, and no address of a node by itself', async () => {
    await startFront({ allowedCallers: ['192.0.2.9', '198.51.100.0/24', 'FD00:0::7', '10.0.0.7'] });
    expect(scene.storedFront()?.callers).toBe('10.0.0.7\n192.0.2.9\n198.51.100.0/24\nfd00::7\n');
  });

  it('are the same for all tailnets, each with destinations of its own', async () => {
    await startFront();
    scene.putTailnet({ tailnet: 'other.ts.net' }, 'other');
    await scene.advance(1000);
    expect(scene.storedFront('other')).toEqual({ callers: '10.0.0.7\n', destinations: '' });
    putCallers('10.0.0.8');
    await scene.advance(1000);
    for (const name of ['example', 'other']) expect(scene.storedFront(name)?.callers).toBe('10.0.0.8\n');
  });

  it('are not listed before they are known, and neither is any destination', async () => {
    scene.putTailnet();
    scene.put(named(meshEndpoints(), 'default/web'));
    await scene.advance(60_000);
    expect(scene.stored()).toBe('');
    expect(scene.storedFront()).toBeUndefined();
  });

  it('stay as they are stored, with their destinations, while a new operator does not know them yet', async () => {
    await startFront();
    scene.callers.set(undefined);
    await scene.restart();
    putEndpoint({ port: 9090 });
    scene.putTargets(['100.64.0.9:53']);
    await scene.advance(60_000);
    expect(scene.stored()).toContain('100.64.0.9:53');
    expect(scene.storedFront()).toEqual({ callers: '10.0.0.7\n', destinations: WEB });
    putCallers('10.0.0.8');
    await scene.advance(0);
    expect(scene.storedFront()).toEqual({ callers: '10.0.0.8\n', destinations: WEB.replace('8080', '9090') });
  });

  it.each(['enforced', 'not-enforced'] as const)(
    'are as before while a new operator does not know whether policies are enforced: %s',
    async enforcement => {
      await startFront();
      scene.enforcement.set(enforcement);
      await scene.advance(1000);
      const before = scene.storedFront();
      expect(before?.callers).toBe(enforcement === 'enforced' ? ANY.callers : '10.0.0.7\n');
      scene.enforcement.set(undefined);
      await scene.restart();
      await scene.advance(60_000);
      expect(scene.storedFront()).toEqual(before);
      expect(scene.fronts.of('example')?.isOn).toBe(enforcement !== 'enforced');
      scene.enforcement.set('unknown');
      await scene.advance(1000);
      expect(scene.storedFront()?.callers).toBe('10.0.0.7\n');
    },
  );

  it('heal where others have edited or removed them', async () => {
    await startFront();
    const before = scene.storedFront();
    await scene.edit('');
    await scene.advance(31_000);
    expect(scene.storedFront()).toEqual(before);
    await scene.edit('', { callers: '0.0.0.0/0\n', destinations: '' });
    await scene.advance(31_000);
    expect(scene.storedFront()).toEqual(before);
  });
});

describe('what the condition of a front is made of', () => {
  it('is published with the lists, and is removed with the MeshTailnet', async () => {
    scene.putTailnet({});
    await scene.advance(0);
    expect(scene.fronts.of('example')).toMatchObject({ isOn: true, areCallersKnown: false });
    putCallers('10.0.0.7');
    await scene.advance(1000);
    expect(scene.fronts.of('example')).toEqual({
      ...{ isOn: true, areCallersKnown: true, cut: [], omittedCallers: 0, nodeAddresses: ['192.0.2.1'] },
    });
    scene.enforcement.set('enforced');
    await scene.advance(1000);
    expect(scene.fronts.of('example')?.isOn).toBe(false);
    scene.remove('MeshTailnet', 'example');
    await scene.advance(0);
    expect(scene.fronts.of('example')).toBeUndefined();
  });
});

describe('a front', () => {
  it.each<[string | undefined, Enforcement, 'lists' | 'any']>([
    ['Off', 'unknown', 'any'],
    ['Off', 'not-enforced', 'any'],
    ['Off', 'enforced', 'any'],
    ['On', 'unknown', 'lists'],
    ['On', 'not-enforced', 'lists'],
    ['On', 'enforced', 'lists'],
    ['Auto', 'unknown', 'lists'],
    ['Auto', 'not-enforced', 'lists'],
    ['Auto', 'enforced', 'any'],
    [undefined, 'unknown', 'lists'],
    [undefined, 'not-enforced', 'lists'],
    [undefined, 'enforced', 'any'],
  ])('that is %s where policies are %s serves %s', async (front, enforcement, serves) => {
    scene.enforcement.set(enforcement);
    await startFront(front === undefined ? {} : { front });
    const lists = { callers: '10.0.0.7\n', destinations: WEB };
    expect(scene.storedFront()).toEqual(serves === 'any' ? ANY : lists);
  });

  it('that serves all needs no callers to be known', async () => {
    scene.putTailnet({ pool: { front: 'Off' } });
    await scene.advance(0);
    expect(scene.storedFront()).toEqual(ANY);
  });

  it('follows what becomes known of the policies, and the MeshTailnet', async () => {
    await startFront();
    const lists = scene.storedFront();
    scene.enforcement.set('enforced');
    await scene.advance(1000);
    expect(scene.storedFront()).toEqual(ANY);
    scene.putTailnet({ pool: { front: 'On' } });
    await scene.advance(1000);
    expect(scene.storedFront()).toEqual(lists);
    scene.putTailnet({ pool: { front: 'Auto' } });
    await scene.advance(1000);
    expect(scene.storedFront()).toEqual(ANY);
    scene.enforcement.set('not-enforced');
    await scene.advance(1000);
    expect(scene.storedFront()).toEqual(lists);
  });
});

describe('the destinations of a front', () => {
  it('are the endpoints of a tailnet as they are edited, by address and name, with all ports of a device in one line', async () => {
    await startFront();
    const ports = [443, 80].map(port => endpoint({ name: `p${port}`, port }));
    const ipv6 = endpoint({ name: 'v6', meshIP: 'FD7A:115C:A1E0:0::9', meshFQDN: 'six.example.ts.net' });
    scene.put(named(meshEndpoints({ endpoints: [...ports, ipv6] }), 'default/web'));
    await scene.advance(1000);
    expect(destinations()).toEqual([
      '100.64.0.1 web.example.ts.net 80,443',
      'fd7a:115c:a1e0::9 six.example.ts.net 8080',
    ]);
    scene.remove('MeshEndpoints', 'default/web');
    await scene.advance(1000);
    expect(destinations()).toEqual([]);
  });

  it('have the form that the front reads', async () => {
    await startFront();
    const found = parseDestinations(scene.storedFront()?.destinations ?? '');
    expect([...(found ?? [])]).toEqual(['100.64.0.1 8080', 'web.example.ts.net 8080']);
  });

  it.each<[string, object, object]>([
    ['of another tailnet', {}, { tailnet: 'other.ts.net' }],
    ['with an external target', { externalTarget: 'web.example.com:443' }, {}],
    ['of UDP', { protocol: 'UDP' }, {}],
    ['of UDP with an external target', { protocol: 'UDP', externalTarget: 'dns.example.com:53' }, {}],
    ['whose address must get no traffic', { meshIP: '100.88.0.1' }, {}],
  ])('are no endpoints %s', async (_, fields, spec) => {
    await startFront();
    putEndpoint({ meshIP: '100.64.0.2', ...fields }, 'default/other', spec);
    await scene.advance(1000);
    expect(destinations()).toEqual([WEB.trim()]);
  });

  it('have a name only inside the domain of the tailnet', async () => {
    await startFront();
    putEndpoint({ meshFQDN: 'metadata.example.com' });
    await scene.advance(1000);
    expect(destinations()).toEqual(['100.64.0.1 - 8080']);
  });

  it('are also discovered endpoints, as they appear in a status', async () => {
    await startFront();
    const spec = { endpoints: [endpoint()], tagSelectors: [{ key: 'web', operator: 'Exists' }] };
    const object = named(meshEndpoints(spec), 'default/web');
    const entry = { name: 'found', source: 'TagSelector', status: 'Healthy', protocol: 'HTTP' };
    const found = { ...entry, address: '100.64.0.5:9090', meshFQDN: 'found.example.ts.net' };
    const discovery = { tailnet: 'example.ts.net' };
    scene.observe({ ...object, status: { endpoints: [found], discovery } });
    await scene.advance(1000);
    expect(destinations()).toEqual([WEB.trim(), '100.64.0.5 found.example.ts.net 9090']);
    scene.observe({ ...object, status: { endpoints: [], discovery } });
    await scene.advance(1000);
    expect(destinations()).toEqual([WEB.trim()]);
  });

  it('are those of namespaces that may use the tailnet, as their labels change', async () => {
    const labelled = (labels: object) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'default', labels },
    });
    await startFront();
    const selector = { matchLabels: { team: 'a' } };
    scene.putTailnet({ allowedNamespaces: { from: 'Selector', selector } });
    await scene.advance(1000);
    expect(destinations()).toEqual([]);
    scene.put(labelled({ team: 'a' }));
    await scene.advance(1000);
    expect(destinations()).toEqual([WEB.trim()]);
    scene.put(labelled({}));
    await scene.advance(1000);
    expect(destinations()).toEqual([]);
  });
});

describe('more callers than a list may have', () => {
  const addresses = Array.from({ length: MAX_CALLERS }, (_, n) => `10.1.${n >> 8}.${n & 255}`);
  const listsWith = (allowedCallers: readonly string[]) => {
    const input = frontInput({ callers: { addresses, nodeAddresses: [] } }, { allowedCallers });
    const { texts, state } = frontListsOf(input, undefined, RELAY_DATA_LENGTH);
    return { lines: texts?.callers.split('\n').slice(0, -1) ?? [], state };
  };

  it('are those of the MeshTailnet before others, and the condition counts the others', () => {
    const { lines, state } = listsWith(['192.0.2.9']);
    expect(lines).toHaveLength(MAX_CALLERS);
    expect(lines).toContain('192.0.2.9');
    expect(state.omittedCallers).toBe(1);
  });

  it('need no line where the MeshTailnet allows a range with them', () => {
    const { lines, state } = listsWith(['192.0.2.9', '10.1.0.0/24']);
    expect(lines).toHaveLength(MAX_CALLERS - 256 + 2);
    expect(state.omittedCallers).toBe(0);
  });
});
