import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { keyOf, refOf } from '../../src/api/key.ts';
import type { Key } from '../../src/api/key.ts';
import type { Resource } from '../../src/api/objects/resource.ts';
import { eventually } from '../support/eventually.ts';
import { named } from '../support/declared.ts';
import { FAULTS } from '../support/kubernetes/api-answer.ts';
import type { Fault } from '../support/kubernetes/api-answer.ts';
import { expectInSync, openApiScene, expectedObjects } from '../support/kubernetes/api-scene.ts';
import type { ApiScene } from '../support/kubernetes/api-scene.ts';
import { meshEndpoints } from '../support/objects.ts';

/** The same sequences in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

type Act =
  | { readonly do: 'put' | 'write'; readonly name: string; readonly tailnet: string }
  | { readonly do: 'remove'; readonly name: string }
  | { readonly do: 'spoil'; readonly what: 'page' | 'watch'; readonly fault: Fault }
  | { readonly do: 'strike'; readonly fault: Fault }
  | { readonly do: 'compact' | 'disconnect' | 'define again' }
  | { readonly do: 'pause'; readonly ms: number };

const names = fc.constantFrom(
  ...['a', 'b', 'c', 'd', 'e', 'f', 'g'].flatMap(n => [`default/${n}`, `team-a/${n}`]),
);
const tailnets = fc.constantFrom('x.ts.net', 'y.ts.net', 'not a domain');
const faults = fc.constantFrom(...FAULTS);

const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('put' as const), name: names, tailnet: tailnets }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), name: names, tailnet: tailnets }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('remove' as const), name: names }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('spoil' as const),
      what: fc.constantFrom('page' as const, 'watch' as const),
      fault: faults,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('strike' as const), fault: faults }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Act>({ do: 'compact' }, { do: 'disconnect' }, { do: 'define again' }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('pause' as const), ms: fc.nat(30) }) },
);

function perform({ server, source }: ApiScene, act: Exclude<Act, { readonly do: 'pause' }>): void {
  switch (act.do) {
    case 'put':
      return void server.state.put(named(meshEndpoints({ tailnet: act.tailnet }), act.name));
    case 'write':
      source.updates.put(server.state.put(named(meshEndpoints({ tailnet: act.tailnet }), act.name)));
      return;
    case 'remove': {
      const [namespace = '', name = ''] = act.name.split('/');
      server.state.remove({ kind: 'MeshEndpoints', namespace, name });
      return;
    }
    case 'spoil':
      server.failNext(request => request.for === act.what, act.fault);
      return;
    case 'strike':
      server.watches.forEach(watch => watch.inject(act.fault));
      return;
    case 'compact':
      server.state.skip(3);
      server.state.compact();
      return;
    case 'disconnect':
      server.disconnect();
      return;
    case 'define again':
      server.state.serve('MeshEndpoints', []);
      server.state.serve('MeshEndpoints', ['v1alpha1']);
      {
        server.watches.forEach(watch => watch.end());
        return;
      }
  }
}

/** Invalid objects keep their last valid version, if there was one. */
function readable({ server }: ApiScene): ReadonlySet<Key> {
  const all = server.state.list('MeshEndpoints').map(({ metadata: { namespace = '', name } }) => ({
    key: keyOf({ kind: 'MeshEndpoints', namespace, name }),
  }));
  const truth = expectedObjects({ server }, 'MeshEndpoints');
  return new Set(all.map(({ key }) => key).filter(key => truth.has(key)));
}

/** The objects that a listener read at each change. */
function witness({ store }: ApiScene) {
  const seen = new Map<Key, Resource>();
  const needless: Key[] = [];
  store.subscribe(({ key }) => {
    const object = store.get(refOf(key));
    if (object === seen.get(key)) needless.push(key);
    if (object) seen.set(key, object);
    else seen.delete(key);
  });
  return { seen, needless };
}

/** Replaces invalid objects by valid ones. */
function mend(scene: ApiScene): void {
  const fine = readable(scene);
  for (const { metadata } of scene.server.state.list('MeshEndpoints')) {
    const { namespace = '', name } = metadata;
    if (fine.has(keyOf({ kind: 'MeshEndpoints', namespace, name }))) continue;
    scene.server.state.put(named(meshEndpoints(), `${namespace}/${name}`));
  }
}

it('after any writes and failures, the store equals the server, and listeners got each change', async () => {
  const property = fc.asyncProperty(
    fc.array(acts, { minLength: 10, maxLength: 60, size: 'max' }),
    async all => {
      const scene = await openApiScene();
      const { seen, needless } = witness(scene);
      try {
        scene.server.settings.maxPageSize = 3;
        scene.source.start();
        for (const act of all) {
          if (act.do === 'pause') await pause(act.ms);
          else perform(scene, act);
        }
        scene.server.recover();
        mend(scene);
        await eventually(() => expectInSync(scene));
        expect(seen).toEqual(expectedObjects(scene, 'MeshEndpoints'));
        expect(needless).toEqual([]);
        expect(scene.failures).toEqual([]);
      } finally {
        await scene.close();
      }
    },
  );
  await fc.assert(property, { seed, numRuns: 40 });
});
