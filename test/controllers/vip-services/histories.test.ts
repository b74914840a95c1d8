import fc from 'fast-check';
import { expect, it } from 'vitest';
import { HOLDERS_KEY, parseLedger } from '../../../src/controllers/vip-services/ledger.ts';
import { OWNERS } from '../../../src/controllers/vip-services/owners.ts';
import { MemoryNamespace } from '../../support/controllers/mesh-tailnet/namespace.ts';
import { startVipScene } from '../../support/controllers/vip-services/scene.ts';
import { ServingPods } from '../../support/controllers/vip-services/serving-pods.ts';
import { named } from '../../support/declared.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';
import { runs } from '../../support/runs.ts';

const SERVICE = 'svc:payments';
const ADDRESSES = { one: '100.64.0.1', two: '100.64.0.2' } as const;

type Who = keyof typeof ADDRESSES;
type Step =
  | { readonly do: 'put'; readonly who: Who; readonly lists: boolean; readonly paused: boolean }
  | { readonly do: 'remove'; readonly who: Who }
  | { readonly do: 'lose the entry' | 'lose the service' | 'restart' | 'stop a pod' | 'let pods go on' }
  | { readonly do: 'wait'; readonly seconds: number };

const who = fc.constantFrom<Who>('one', 'two');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      who,
      lists: fc.boolean(),
      paused: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), who }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom(
        ...(['lose the entry', 'lose the service', 'restart', 'stop a pod', 'let pods go on'] as const),
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(5, 90, 620) }),
  },
);

/** A world of two namespaces that want one name; fails where a mesh pod serves it for another than its holder. */
async function startWorld() {
  const namespace = new MemoryNamespace();
  const meshPods = new ServingPods(namespace);
  const scene = await startVipScene({ namespace, meshPods });
  const holder = () => {
    const [configMap] = namespace.list().filter(({ metadata }) => metadata.name.startsWith('vip-services-'));
    const data = (configMap?.['data'] ?? {}) as Readonly<Record<string, string>>;
    return parseLedger(data[HOLDERS_KEY] ?? '', () => undefined).get(SERVICE)?.object;
  };
  const check = () => {
    const served = meshPods.targetsOf(SERVICE);
    if (served.length === 0) return;
    const [namespaceOfHolder] = (holder() ?? '').split('/');
    expect(served).toEqual([`${ADDRESSES[namespaceOfHolder as Who]}:8080`]);
  };
  const pass = async (seconds: number) => {
    for (let left = seconds; left > 0; left--) {
      await scene.clock.advance(1000);
      for (let turns = 3; turns > 0; turns--) await new Promise(setImmediate);
      check();
    }
  };
  const put = (owner: Who, lists: boolean, paused: boolean) => {
    const vipServices = lists ? [{ name: 'payments', port: 443, targetEndpoint: 'web' }] : [];
    const endpoints = [endpoint({ name: 'web', meshIP: ADDRESSES[owner], port: 8080 })];
    const spec = { endpoints, paused, serviceDiscovery: { vipServices } };
    return scene.put(named(meshEndpoints(spec), `${owner}/payments`));
  };
  const { services } = scene.api.state;
  const lose = () => {
    const service = services.current(SERVICE);
    const annotations = { [OWNERS]: JSON.stringify({ owners: [] }) };
    if (service) services.put(SERVICE, { ...service, annotations });
  };
  const take = async (taken: Step) => {
    switch (taken.do) {
      case 'put': {
        await put(taken.who, taken.lists, taken.paused);
        return;
      }
      case 'remove': {
        await scene.memory.author.remove({
          kind: 'MeshEndpoints',
          namespace: taken.who,
          name: 'payments',
        });
        return;
      }
      case 'lose the entry': {
        lose();
        return;
      }
      case 'lose the service': {
        services.delete(SERVICE);
        return;
      }
      case 'restart': {
        await scene.restart();
        return;
      }
      case 'stop a pod': {
        meshPods.stopOne();
        return;
      }
      case 'let pods go on': {
        meshPods.goOn();
        return;
      }
      case 'wait': {
        await pass(taken.seconds);
        return;
      }
    }
  };
  return { scene, meshPods, put, take, pass, check };
}

it('a name is served for its holder or not at all, whatever happens to objects, the tailnet, pods and the operator', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async steps => {
      const { scene, meshPods, put, take, pass, check } = await startWorld();
      for (const taken of steps) {
        await take(taken);
        await pass(2);
      }
      // In the end one of two that list it has it.
      meshPods.goOn();
      for (const each of ['one', 'two'] as const) await put(each, true, false);
      await scene.until(() => {
        check();
        expect(meshPods.targetsOf(SERVICE)).toHaveLength(1);
      });
    }),
    runs(30),
  );
}, 600_000);
