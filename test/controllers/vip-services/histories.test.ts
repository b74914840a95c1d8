import fc from 'fast-check';
import { expect, it } from 'vitest';
import { HOLDERS_KEY, parseLedger } from '../../../src/controllers/vip-services/ledger.ts';
import { OWNERS } from '../../../src/controllers/vip-services/owners.ts';
import { MemoryNamespace } from '../../support/controllers/mesh-tailnet/namespace.ts';
import { INSTALLATION, startVipScene } from '../../support/controllers/vip-services/scene.ts';
import { ServingPods } from '../../support/controllers/vip-services/serving-pods.ts';
import { named } from '../../support/declared.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';
import { runs } from '../../support/runs.ts';

const SERVICE = 'svc:payments';
const ADDRESSES = { one: '100.64.0.1', two: '100.64.0.2' } as const;

const ACTS = [
  ...(['lose the entry', 'overwrite the entry', 'lose the service'] as const),
  ...(['restart', 'change the leader', 'stop a pod', 'let pods go on'] as const),
] as const;

type Who = keyof typeof ADDRESSES;
type Step =
  | { readonly do: 'put'; readonly who: Who; readonly lists: boolean; readonly paused: boolean }
  | { readonly do: 'remove'; readonly who: Who }
  | { readonly do: (typeof ACTS)[number] }
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
      do: fc.constantFrom(...ACTS),
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
  const overwrite = (owners: readonly object[]) => {
    const service = services.current(SERVICE);
    const annotations = { [OWNERS]: JSON.stringify({ owners }) };
    if (service) services.put(SERVICE, { ...service, annotations });
  };
  const ofAnotherCluster = () => ({
    ...{ installation: '99999999', cluster: 'other', object: 'two/payments', strategy: 'shared' },
    ...{ ports: ['tcp:443'], tags: ['tag:mesh'], shareWith: [INSTALLATION] },
    heartbeat: new Date(Date.UTC(2026, 0, 15, 12) + scene.clock.now()).toISOString(),
  });
  const acts: Readonly<Record<(typeof ACTS)[number], () => unknown>> = {
    'lose the entry': () => overwrite([]),
    'overwrite the entry': () => overwrite([ofAnotherCluster()]),
    'lose the service': () => services.delete(SERVICE),
    restart: scene.restart,
    'change the leader': scene.changeLeader,
    'stop a pod': () => meshPods.stopOne(),
    'let pods go on': () => meshPods.goOn(),
  };
  const take = async (taken: Step) => {
    if (taken.do === 'put') await put(taken.who, taken.lists, taken.paused);
    else if (taken.do === 'wait') await pass(taken.seconds);
    else if (taken.do === 'remove') {
      const ref = { kind: 'MeshEndpoints', namespace: taken.who, name: 'payments' } as const;
      await scene.memory.author.remove(ref);
    } else await acts[taken.do]();
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
