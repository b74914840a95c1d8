import { describe, expect, it } from 'vitest';
import { CLUSTER, gatewayCluster, read } from '../../support/extension/clusters.ts';
import { bindingObject, startHooks, translation, whole } from '../../support/extension/hooks.ts';
import { valuesOf } from '../../../src/extension/wire.ts';
import type { Bytes } from '../../../src/extension/grpc/method.ts';
import { settings } from '../../support/extension/cluster-settings.ts';

/** Hooks of a process that has just started, over a cache whose revision a test sets. */
function caches(revision: string) {
  const state = { revision, listeners: new Set<() => void>(), reads: 0 };
  const revisionOf = () => {
    state.reads++;
    return state.revision;
  };
  const onChange = (listener: () => void) => {
    state.listeners.add(listener);
    return () => void state.listeners.delete(listener);
  };
  const settingsOf = () => (state.revision === 'new' ? settings() : undefined);
  const hooks = startHooks({ settingsOf, revisions: { revisionOf, onChange } });
  const move = (to: string) => {
    state.revision = to;
    for (const listener of state.listeners) listener();
  };
  const translate = (...revisions: readonly string[]) =>
    hooks.call(
      'PostTranslateModify',
      translation(
        { clusters: [gatewayCluster()] },
        revisions.map(each => bindingObject(each)),
      ),
    );
  return { state, move, translate, ...hooks };
}

/** Whether the response has been sent, and whether it is that of the new cache. */
function watched(answer: Bytes | Promise<Bytes>) {
  const seen = { isSent: false, isNew: false };
  void Promise.resolve(answer).then(bytes => {
    const [cluster = new Uint8Array()] = valuesOf(whole(bytes), 1, 9);
    seen.isSent = true;
    seen.isNew = read(cluster).edsClusterConfig?.edsConfig?.configSourceSpecifier.case === 'apiConfigSource';
  });
  return seen;
}

const AT_ONCE = expect.any(Uint8Array) as Uint8Array;
const WAITS = expect.any(Promise) as Promise<Bytes>;

describe('a translation whose MeshBinding has a revision', () => {
  it('that the cache has proceeds at once', () => {
    const { translate } = caches('new');
    expect(read(valuesOf(whole(translate('new')), 1, 9)[0] ?? new Uint8Array()).name).toBe(CLUSTER);
  });

  it('that the cache had before proceeds at once: the cache is ahead', () => {
    const { translate, move, waits } = caches('old');
    expect(translate('old')).toEqual(AT_ONCE);
    move('new');
    expect(translate('old')).toEqual(AT_ONCE);
    expect(translate('new')).toEqual(AT_ONCE);
    expect(waits).toEqual([]);
  });

  it('that the cache never had waits for it, and then uses the new cache', async () => {
    const { translate, move, clock, state, waits } = caches('old');
    const seen = watched(translate('new'));
    await clock.advance(100);
    expect(seen.isSent).toBe(false);
    move('new');
    await clock.advance(5);
    expect(seen).toEqual({ isSent: true, isNew: true });
    expect([state.listeners.size, clock.timers, waits]).toEqual([0, 0, ['reached']]);
  });

  it('that the cache had only during the wait proceeds at its next change', async () => {
    const { translate, move, clock } = caches('old');
    const seen = watched(translate('passing'));
    move('passing');
    await clock.advance(5);
    move('new');
    expect(seen.isSent).toBe(true);
    expect(translate('passing')).toEqual(AT_ONCE);
  });

  it('that never arrives proceeds after 2 s with the current cache', async () => {
    const { translate, clock, state, waits } = caches('old');
    const seen = watched(translate('new'));
    await clock.advance(1999);
    expect(seen.isSent).toBe(false);
    await clock.advance(1);
    expect(seen).toEqual({ isSent: true, isNew: false });
    expect([state.listeners.size, clock.timers, waits]).toEqual([0, 0, ['timeout']]);
  });

  it('that never arrives shortens the waits for others to 250 ms, until one is reached', async () => {
    const { translate, move, clock, waits } = caches('old');
    watched(translate('other'));
    await clock.advance(2000);
    const short = watched(translate('another'));
    await clock.advance(250);
    expect(short.isSent).toBe(true);
    watched(translate('new'));
    move('new');
    await clock.advance(5);
    const long = watched(translate('newer'));
    await clock.advance(1999);
    expect([long.isSent, waits]).toEqual([false, ['timeout', 'timeout', 'reached']]);
  });

  it('from before a restart waits once, and not again', async () => {
    const { translate, clock, waits } = caches('new');
    const seen = watched(translate('old'));
    await clock.advance(2000);
    expect(seen).toEqual({ isSent: true, isNew: true });
    expect(translate('old')).toEqual(AT_ONCE);
    expect(waits).toEqual(['timeout']);
  });

  it('that is the ninth last of its Gateway waits', () => {
    const { translate, move } = caches('r0');
    for (let n = 0; n < 9; n++) {
      move(`r${n}`);
      expect(translate(`r${n}`)).toEqual(AT_ONCE);
    }
    expect(translate('r1')).toEqual(AT_ONCE);
    expect(translate('r0')).toEqual(WAITS);
  });

  it('that another Gateway has waits', async () => {
    const { call, clock } = caches('old');
    const about = (...objects: object[]) => call('PostTranslateModify', translation({}, objects));
    const first = watched(about(bindingObject('a'), bindingObject('b')));
    await clock.advance(2000);
    expect(first.isSent).toBe(true);
    expect(about(bindingObject('b'), bindingObject('a'))).toEqual(AT_ONCE);
    expect(about(bindingObject('a'), bindingObject('c'))).toEqual(WAITS);
    expect(about(bindingObject('a', 'elsewhere'))).toEqual(WAITS);
  });
});

describe('waiting translations', () => {
  it('keep revisions of the last 1,024 Gateways', async () => {
    const { call, clock } = caches('old');
    const about = (gateway: string) =>
      call('PostTranslateModify', translation({}, [bindingObject('r', gateway)]));
    for (let first = 0; first <= 1024; first += 16) {
      for (let n = first; n < first + 16; n++) watched(about(`g${n}`));
      await clock.advance(2000);
    }
    expect(about('g1039')).toEqual(AT_ONCE);
    expect(about('g0')).toEqual(WAITS);
  });

  it('read the cache once for several changes at once', async () => {
    const { translate, move, clock, state } = caches('old');
    const seen = watched(translate('new'));
    const { reads } = state;
    for (let change = 0; change < 1000; change++) move('other');
    await clock.advance(5);
    expect([seen.isSent, state.reads - reads]).toEqual([false, 1]);
    move('new');
    await clock.advance(5);
    expect(seen.isNew).toBe(true);
  });

  it('are 16 at most, and others proceed at once', async () => {
    const { translate, move, clock } = caches('old');
    const waiting = Array.from({ length: 16 }, () => watched(translate('new')));
    expect(translate('new')).toEqual(AT_ONCE);
    move('new');
    await clock.advance(5);
    expect(waiting.every(({ isNew }) => isNew)).toBe(true);
    expect(translate('newer')).toEqual(WAITS);
  });

  it('proceed if no revision can be computed', async () => {
    const revisionOf = () => {
      throw new Error('the cache is broken');
    };
    const { call, recorded, clock } = startHooks({
      revisions: { revisionOf, onChange: () => () => undefined },
    });
    const answer = call('PostTranslateModify', translation({}, [bindingObject('new')]));
    await clock.advance(2000);
    expect(whole(await answer)).toHaveLength(0);
    expect(recorded.failures).toContain('translation');
  });
});
