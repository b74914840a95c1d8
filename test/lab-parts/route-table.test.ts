import { expect, it, onTestFinished } from 'vitest';
import { showRoutes } from '../../lab/quickstart/route-table.ts';
import { Screen } from '../../lab/screen.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { named, route } from '../support/declared.ts';
import { meshEndpoints } from '../support/objects.ts';
import { resourceOf } from '../support/store/resources.ts';

it('a route that is only meant for MeshEndpoints is shown, with the fix', () => {
  const store = new ResourceStore(trafficIndexes, failure => expect(failure).toBeUndefined());
  const refs = [
    { kind: 'MeshEndpoints', name: 'web', port: 80 },
    { name: 'web', port: 80 },
    { name: 'other', port: 80 },
  ];
  const stray = route('HTTPRoute', 'default/stray', { rules: [{ backendRefs: refs }] });
  for (const object of [named(meshEndpoints(), 'default/web'), stray]) store.put(resourceOf(object), true);
  let written = '';
  const screen = new Screen({
    isTerminal: false,
    columns: 80,
    rows: 24,
    write: text => void (written += text),
  });
  onTestFinished(showRoutes(store, screen));
  expect(written.trim().split('\n')).toEqual([
    'HTTPRoute default/stray has no MeshEndpoints among its backends',
    expect.stringMatching(
      /not used: GroupMissing: spec\.rules\[0\]\.backendRefs\[0\]: .*: add group: mesh-gateway\.dev$/,
    ),
    expect.stringMatching(/not used: KindMissing: spec\.rules\[0\]\.backendRefs\[1\]: /),
  ]);
});
