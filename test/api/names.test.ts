import { describe, expect, it } from 'vitest';
import { ANNOTATIONS, COMPONENTS, FINALIZER, LABELS, NAMESPACE, poolNames } from '../../src/api/names.ts';

describe('names that users and other programs rely on', () => {
  it.each([
    ['the namespace', NAMESPACE, 'mesh-system'],
    ['the operator', COMPONENTS.operator, 'mesh-operator'],
    ['the extension server', COMPONENTS.extensionServer, 'mesh-extension-server'],
    ['the finalizer', FINALIZER, 'mesh-gateway.dev/finalizer'],
    ['the label of a tailnet', LABELS.tailnet, 'mesh-gateway.dev/tailnet'],
    ['the label of an owner', LABELS.owner, 'mesh-gateway.dev/owner'],
    ['the wish to sweep', ANNOTATIONS.forceCleanup, 'mesh-gateway.dev/force-cleanup'],
    ['the way out', ANNOTATIONS.skipCleanup, 'mesh-gateway.dev/skip-cleanup'],
    ['a pool', poolNames('main').pool, 'meshd-main'],
    ['the pods of a pool', poolNames('main').headless, 'meshd-main-pods'],
  ])('do not change: %s', (_, name, wanted) => {
    expect(name).toBe(wanted);
  });

  it('leave room for the number of a pod where a tailnet has the longest name there is', () => {
    const longest = 'a'.repeat(40);
    expect(`${poolNames(longest).pool}-999`.length).toBeLessThanOrEqual(52);
    expect(poolNames(longest).headless.length).toBeLessThanOrEqual(63);
  });
});
