import { describe, expect, it } from 'vitest';
import { isEqual } from '../../../src/api/json.ts';
import type { Key } from '../../../src/api/key.ts';
import { ANCHORED_OF_NAMESPACE } from '../../../src/api/shares.ts';
import { MAX_IN_ANCHOR, plan } from '../../../src/controllers/anchors/plan.ts';
import type { Anchor, AnchoredGateway } from '../../../src/controllers/anchors/plan.ts';

const web = (number: number, namespace = 'default'): Key =>
  `MeshEndpoints/${namespace}/web-${String(number).padStart(6, '0')}`;
const webs = (count: number, namespace?: string) =>
  Array.from({ length: count }, (_, index) => web(index, namespace));

const gateway = (name: string, meshEndpoints: readonly Key[], className = 'mesh'): AnchoredGateway => ({
  gateway: `Gateway/default/${name}`,
  className,
  meshEndpoints,
});

const firstAnchors = (...gateways: readonly AnchoredGateway[]) => plan({ anchors: [], gateways }).anchors;
const namesOf = (anchors: readonly Anchor[]) => anchors.map(({ name }) => name);
const contentOf = (anchors: readonly Anchor[]) =>
  anchors.flatMap(({ meshEndpoints }) => meshEndpoints).sort();
const changedIn = (before: readonly Anchor[], after: readonly Anchor[]) =>
  after.filter(anchor => !before.some(each => isEqual(each, anchor)));

describe('the plan of anchors', () => {
  it('names each MeshEndpoints once in a GatewayClass, whichever Gateways need it', () => {
    const [a, b] = [web(1), web(2)];
    expect(firstAnchors(gateway('one', [a, b]), gateway('two', [b]))).toEqual([
      { name: 'mesh-anchor-0', gateway: 'Gateway/default/one', meshEndpoints: [a, b] },
    ]);
  });

  it('has anchors of its own for each GatewayClass', () => {
    const anchors = firstAnchors(gateway('one', [web(1)], 'a'), gateway('two', [web(1)], 'b'));
    expect(anchors.map(anchor => anchor.gateway)).toEqual(['Gateway/default/one', 'Gateway/default/two']);
    expect(new Set(namesOf(anchors)).size).toBe(2);
  });

  it('divides 1,000 MeshEndpoints', () => {
    const anchors = firstAnchors(gateway('one', webs(1000)));
    expect(contentOf(anchors)).toEqual(webs(1000));
    expect(anchors.every(({ meshEndpoints }) => meshEndpoints.length <= MAX_IN_ANCHOR)).toBe(true);
    expect(anchors).toHaveLength(Math.ceil(1000 / MAX_IN_ANCHOR));
  });

  it('changes one anchor where one MeshEndpoints is new, even the first by name, or not needed any more', () => {
    const all = webs(100);
    const before = firstAnchors(gateway('one', all.slice(1)));
    const added = plan({ anchors: before, gateways: [gateway('one', all)] }).anchors;
    expect(contentOf(added)).toEqual(all);
    expect(changedIn(before, added)).toHaveLength(1);
    const removed = plan({ anchors: added, gateways: [gateway('one', all.slice(0, 99))] }).anchors;
    expect(contentOf(removed)).toEqual(all.slice(0, 99));
    expect(changedIn(added, removed)).toHaveLength(1);
  });

  it('removes an anchor that is empty', () => {
    const anchors = firstAnchors(gateway('one', webs(MAX_IN_ANCHOR + 1)));
    expect(plan({ anchors, gateways: [gateway('one', webs(MAX_IN_ANCHOR))] })).toEqual({
      anchors: [anchors[0]],
      remove: ['mesh-anchor-1'],
    });
    expect(plan({ anchors, gateways: [] })).toEqual({ anchors: [], remove: namesOf(anchors) });
  });

  it('moves to another Gateway of the class what has lost its own, under the same names', () => {
    const anchors = firstAnchors(gateway('a', webs(20)), gateway('b', [web(1)]));
    expect(plan({ anchors, gateways: [gateway('b', webs(20))] })).toEqual({
      anchors: anchors.map(anchor => ({ ...anchor, gateway: 'Gateway/default/b' })),
      remove: [],
    });
  });

  it('stays with its Gateway when one appears that comes first by name', () => {
    const anchors = firstAnchors(gateway('b', webs(20)));
    const gateways = [gateway('b', webs(20)), gateway('a', [web(1)])];
    expect(plan({ anchors, gateways })).toEqual({ anchors, remove: [] });
  });

  it('has a share for each namespace, and what has a place keeps it', () => {
    const many = webs(100_000, 'greedy');
    const before = firstAnchors(gateway('one', many.slice(50_000)));
    const { anchors } = plan({
      anchors: before,
      gateways: [gateway('one', [...many, web(1, 'other')])],
    });
    expect(contentOf(anchors)).toContain(web(1, 'other'));
    expect(contentOf(anchors)).toHaveLength(ANCHORED_OF_NAMESPACE + 1);
    expect(contentOf(anchors)).toEqual(expect.arrayContaining([...contentOf(before)]));
  });

  it('has one share for all GatewayClasses, because a Gateway can name any number that do not exist', () => {
    const names = Array.from({ length: 100 }, (_, index) => `class-${index}`);
    const gateways = names.map(name => gateway(name, webs(100, 'greedy'), name));
    const before = firstAnchors(...gateways);
    expect(contentOf(before)).toHaveLength(ANCHORED_OF_NAMESPACE);
    const { anchors } = plan({
      anchors: before,
      gateways: [...gateways, gateway('first', [web(0, 'greedy'), web(1, 'other')], 'a')],
    });
    expect(contentOf(anchors)).toEqual([...contentOf(before), web(1, 'other')]);
  });
});
