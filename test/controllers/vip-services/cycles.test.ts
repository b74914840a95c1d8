import { expect, it } from 'vitest';
import { startVipScene } from '../../support/controllers/vip-services/scene.ts';
import { named } from '../../support/declared.ts';
import { IS_LONG } from '../../support/eventually.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';

type Scene = Awaited<ReturnType<typeof startVipScene>>;

/** More than in a life, so that names are used again. */
const CYCLES = IS_LONG ? 1000 : 30;

/** Objects that are created in the same round. */
const AT_ONCE = 4;

/** What an object wants of its service in each round of its life; then it is deleted. */
const WANTED = [
  { port: 443, targetEndpoint: 'web', tags: ['tag:mesh'] },
  { port: 8443, targetEndpoint: 'web', tags: ['tag:mesh'] },
  { port: 8443, targetEndpoint: 'web', tags: ['tag:web'] },
  { port: 8443, targetEndpoint: 'api', tags: ['tag:web'] },
];

const LIFE = WANTED.length + 1;

/** Every second service has the name of one whose object was deleted in the round before, and which may still exist. */
function serviceOf(cycle: number): string {
  return cycle % 2 === 0 ? `new-${cycle}` : `again-${cycle % (AT_ONCE * LIFE)}`;
}

/** Changes the object of a cycle as its round requires; returns what is expected afterwards. */
async function change(scene: Scene, cycle: number, round: number): Promise<() => void> {
  const [object, name] = [`web-${cycle}`, serviceOf(cycle)];
  const wanted = WANTED[round];
  if (!wanted) {
    await scene.remove(object);
    return () => expect(scene.entry(object, name)).toBeUndefined();
  }
  const addresses = round > 0 && { addrs: scene.service(`svc:${name}`)?.addrs };
  const endpoints = [endpoint(), endpoint({ name: 'api' })];
  const serviceDiscovery = { vipServices: [{ name, ...wanted }] };
  await scene.put(named(meshEndpoints({ endpoints, serviceDiscovery }), `default/${object}`));
  return () => {
    const { port, tags } = wanted;
    expect(scene.service(`svc:${name}`)).toMatchObject({ ports: [`tcp:${port}`], tags, ...addresses });
    expect(scene.entry(object, name)).toMatchObject({ status: 'Registered' });
  };
}

it('objects that are created, changed and deleted in many cycles leave nothing in the tailnet', async () => {
  const policy = { tagOwners: { 'tag:mesh': [], 'tag:web': ['tag:mesh'] } };
  const scene = await startVipScene({ api: { policy }, spec: { serviceTags: ['tag:web'] } });
  const rounds = Math.ceil(CYCLES / AT_ONCE) + LIFE - 1;
  for (let now = 0; now < rounds; now++) {
    const expectations: (() => void)[] = [];
    for (let round = 0; round < LIFE; round++) {
      const first = (now - round) * AT_ONCE;
      for (let cycle = Math.max(0, first); cycle < Math.min(CYCLES, first + AT_ONCE); cycle++)
        expectations.push(await change(scene, cycle, round));
    }
    await scene.until(() => {
      for (const expectation of expectations) expectation();
    });
  }
  await scene.until(() => expect(scene.tailnet()?.metadata.finalizers ?? []).toEqual([]), 5000);
  // The rate limit of a MeshTailnet by default, and its burst.
  scene.api.audit({ callsPerMinute: 310 });
  expect(scene.services()).toEqual([]);
  expect(scene.api.countByRoute()['services.delete']).toBeGreaterThanOrEqual(CYCLES / 2);
  await scene.memory.author.remove({ kind: 'MeshTailnet', namespace: '', name: 'example' });
  await scene.until(() => expect(scene.tailnet()).toBeUndefined());
}, 600_000);
