import { describe, expect, it } from 'vitest';
import { Derived } from '../../src/store/derived.ts';
import { gatewayObject, openGateway, route } from '../support/declared.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { createMemory } from '../support/store/memory.ts';
import { derivedFrom } from '../support/store/traffic.ts';
import { namespaceObject } from '../support/traffic/objects.ts';

const KEY = 'Gateway/infra/public';
const parent = { name: 'public', namespace: 'infra' };
const selected = { namespaces: { from: 'Selector', selector: { matchLabels: { mesh: 'yes' } } } };
const listeners = [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: selected }];
const gateway = (spec: object = {}) => openGateway('infra/public', { listeners, ...spec });
const toGateway = (name: string) => route('HTTPRoute', name, { parentRefs: [parent] });
const bySet = (name: string) =>
  route('HTTPRoute', name, { parentRefs: [{ kind: 'ListenerSet', name: 'more' }] });
const listenerSet = (name: string) =>
  gatewayObject('ListenerSet', name, {
    parentRef: parent,
    listeners: [{ name: 'http', port: 81, protocol: 'HTTP' }],
  });
const ours = namespaceObject('team', { mesh: 'yes' });

/** The routes that attach to the Gateway, and how often something derived from them is derived. */
async function attachedOn(...objects: readonly object[]) {
  const memory = createMemory(trafficIndexes, objects);
  await memory.start();
  const { tracking, traffic } = derivedFrom(memory.read);
  let derivations = 0;
  const names = new Derived(tracking, [], (key, read) => {
    derivations++;
    return read.value(traffic.attachedRoutes.keys, key).map(route => route.slice(route.indexOf('/') + 1));
  });
  names.watch(KEY, { invalidated: () => undefined });
  return {
    author: memory.author,
    attached: () => [...names.read(KEY)].sort(),
    countDerivations: () => derivations,
  };
}

describe('the routes of a Gateway', () => {
  it('are those that it accepts, also by ListenerSets that it accepts, until it does not', async () => {
    const { author, attached } = await attachedOn(
      ...[gateway({ allowedListeners: selected }), ours, listenerSet('team/more'), listenerSet('far/more')],
      ...[toGateway('team/a'), bySet('team/b'), toGateway('far/c'), bySet('far/d')],
    );
    expect(attached()).toEqual(['team/a', 'team/b']);
    await author.put(namespaceObject('far', { mesh: 'yes' }));
    expect(attached()).toEqual(['far/c', 'far/d', 'team/a', 'team/b']);
    await author.put(namespaceObject('team'));
    expect(attached()).toEqual(['far/c', 'far/d']);
    await author.put(gateway());
    expect(attached()).toEqual(['far/c']);
    await author.remove({ kind: 'Gateway', ...parent });
    expect(attached()).toEqual([]);
  });

  it('are derived group by group in steps, after which a read derives no group', async () => {
    const routes = Array.from({ length: 50 }, (_, at) => toGateway(`team/r${at}`));
    const memory = createMemory(trafficIndexes, [gateway(), ours, ...routes]);
    await memory.start();
    const { traffic } = derivedFrom(memory.read);
    const groups: number[] = [];
    const counted = traffic.attachedRoutes.combined<number, number>({
      reads: [],
      ofGroup: ({ length }) => {
        groups.push(length);
        return length;
      },
      ofGateway: parts => parts.reduce((sum, length) => sum + length, 0),
    });
    let most = 0;
    for (const step of traffic.attachedRoutes.steps(KEY)) {
      expect(step).toBeUndefined();
      most = Math.max(most, groups.length);
      if (groups.length === 1) expect(groups[0]).toBeLessThan(50);
    }
    const before = groups.length;
    expect(before).toBeGreaterThan(10);
    expect([most, counted.read(KEY), groups.length]).toEqual([before, 50, before]);
  });

  it('are derived from no route and no ListenerSet that it refuses', async () => {
    const { author, attached, countDerivations } = await attachedOn(
      gateway({ allowedListeners: selected }),
      ours,
      toGateway('team/a'),
    );
    expect(attached()).toEqual(['team/a']);
    for (const n of ['1', '2', '3']) {
      for (const object of [toGateway(`far/${n}`), listenerSet(`far/more`), bySet(`far/x${n}`)]) {
        await author.put(object);
        expect(attached()).toEqual(['team/a']);
      }
    }
    await author.put(namespaceObject('far', { other: 'label' }));
    expect([attached(), countDerivations()]).toEqual([['team/a'], 1]);
    await author.put(toGateway('team/b'));
    expect([attached(), countDerivations()]).toEqual([['team/a', 'team/b'], 2]);
  });
});
