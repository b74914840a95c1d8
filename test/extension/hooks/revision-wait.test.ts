import { describe, expect, it } from 'vitest';
import type { Binding } from '../../../src/extension/hooks/bindings.ts';
import { CLUSTER, gatewayCluster, read } from '../../support/extension/clusters.ts';
import { bindingObject, startHooks, translation, whole } from '../../support/extension/hooks.ts';
import { valuesOf } from '../../../src/extension/wire.ts';
import type { Bytes } from '../../../src/extension/grpc/method.ts';
import { needs } from '../../support/extension/needs.ts';

/** Hooks over caches whose revision a test moves. */
function caches(revision: string) {
  const state = { revision, listeners: new Set<() => void>(), looks: 0 };
  const isCurrent = (binding: Binding) => {
    state.looks++;
    return binding.revision === state.revision;
  };
  const onChange = (listener: () => void) => {
    state.listeners.add(listener);
    return () => void state.listeners.delete(listener);
  };
  const needsOf = () => (state.revision === 'new' ? needs() : undefined);
  const hooks = startHooks({ needsOf, revisions: { isCurrent, onChange } });
  const move = (to: string) => {
    state.revision = to;
    for (const listener of state.listeners) listener();
  };
  const translate = () =>
    hooks.call('PostTranslateModify', translation({ clusters: [gatewayCluster()] }, [bindingObject('new')]));
  return { state, move, translate, ...hooks };
}

/** Whether the answer is there, and with what the new caches say. */
function watched(answer: Bytes | Promise<Bytes>) {
  const seen = { isThere: false, isNew: false };
  void Promise.resolve(answer).then(bytes => {
    const [cluster = new Uint8Array()] = valuesOf(whole(bytes), 1, 9);
    seen.isThere = true;
    seen.isNew = read(cluster).edsClusterConfig?.edsConfig?.configSourceSpecifier.case === 'apiConfigSource';
  });
  return seen;
}

describe('a translation', () => {
  it('is answered at once where the caches have the revision that it was asked for', () => {
    const { translate } = caches('new');
    expect(read(valuesOf(whole(translate()), 1, 9)[0] ?? new Uint8Array()).name).toBe(CLUSTER);
  });

  it('waits for the caches where they are older, and then answers by the new ones', async () => {
    const { translate, move, clock, state } = caches('old');
    const seen = watched(translate());
    await clock.advance(100);
    expect(seen.isThere).toBe(false);
    move('new');
    await clock.advance(5);
    expect(seen).toEqual({ isThere: true, isNew: true });
    expect([state.listeners.size, clock.timers]).toEqual([0, 0]);
  });

  it('waits for 250 ms, and then answers by what is known', async () => {
    const { translate, clock, state } = caches('old');
    const seen = watched(translate());
    await clock.advance(249);
    expect(seen.isThere).toBe(false);
    await clock.advance(1);
    expect(seen).toEqual({ isThere: true, isNew: false });
    expect([state.listeners.size, clock.timers]).toEqual([0, 0]);
  });

  it('does not wait again for a revision that did not come, until it has been there', async () => {
    const { translate, move, clock } = caches('old');
    const seen = watched(translate());
    await clock.advance(250);
    expect(seen.isThere).toBe(true);
    expect(translate()).toBeInstanceOf(Uint8Array);
    move('other');
    expect(translate()).toBeInstanceOf(Uint8Array);
    move('new');
    expect(translate()).toBeInstanceOf(Uint8Array);
    move('old');
    expect(translate()).toBeInstanceOf(Promise);
  });

  it('waits for a new revision of a Gateway, whatever did not come before', async () => {
    const { call, clock } = caches('old');
    const about = (...objects: object[]) => call('PostTranslateModify', translation({}, objects));
    const first = watched(about(bindingObject('a'), bindingObject('b')));
    await clock.advance(250);
    expect(first.isThere).toBe(true);
    expect(about(bindingObject('b'), bindingObject('a'))).toBeInstanceOf(Uint8Array);
    expect(about(bindingObject('a'), bindingObject('c'))).toBeInstanceOf(Promise);
    expect(about(bindingObject('a', 'elsewhere'))).toBeInstanceOf(Promise);
  });

  it('does not wait for what no revision of ours can be', () => {
    const { call } = caches('old');
    expect(call('PostTranslateModify', translation({}, [bindingObject('r'.repeat(2000))]))).toBeInstanceOf(
      Uint8Array,
    );
  });

  it('remembers no more than the last 1,024 revisions that did not come', async () => {
    const { call, clock } = caches('old');
    const about = (revision: string) =>
      call('PostTranslateModify', translation({}, [bindingObject(revision)]));
    for (let first = 0; first <= 1024; first += 16) {
      for (let n = first; n < first + 16; n++) watched(about(`r${n}`));
      await clock.advance(250);
    }
    expect(about('r1039')).toBeInstanceOf(Uint8Array);
    expect(about('r0')).toBeInstanceOf(Promise);
  });

  it('looks once for many changes that come together', async () => {
    const { translate, move, clock, state } = caches('old');
    const seen = watched(translate());
    const { looks } = state;
    for (let change = 0; change < 1000; change++) move('other');
    await clock.advance(5);
    expect([seen.isThere, state.looks - looks]).toEqual([false, 1]);
    move('new');
    await clock.advance(5);
    expect(seen.isNew).toBe(true);
  });

  it('does not wait where 16 wait already, and does again when they are gone', async () => {
    const { translate, move, clock } = caches('old');
    const waiting = Array.from({ length: 16 }, () => watched(translate()));
    expect(translate()).toBeInstanceOf(Uint8Array);
    move('new');
    await clock.advance(5);
    expect(waiting.every(({ isNew }) => isNew)).toBe(true);
    move('old');
    expect(translate()).toBeInstanceOf(Promise);
  });

  it('is answered where nobody can tell whether the caches are current', () => {
    const { call, told } = startHooks({
      revisions: {
        isCurrent: () => {
          throw new Error('the cache is broken');
        },
        onChange: () => () => undefined,
      },
    });
    expect(whole(call('PostTranslateModify', translation({}, [bindingObject('new')])))).toHaveLength(0);
    expect(told.failures).toEqual(['translation']);
  });

  it('is answered where changes cannot be heard of', async () => {
    const { call, clock } = startHooks({
      revisions: {
        isCurrent: () => false,
        onChange: () => {
          throw new Error('the cache is closed');
        },
      },
    });
    const answer = await call(
      'PostTranslateModify',
      translation({ clusters: [gatewayCluster()] }, [bindingObject('new')]),
    );
    await clock.advance(250);
    expect([valuesOf(whole(answer), 1, 9), clock.timers]).toEqual([[gatewayCluster()], 0]);
  });
});
