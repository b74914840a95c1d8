import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Kinds } from '../../../src/api/generated/types.ts';
import type { ServedService } from '../../../src/api/served-services.ts';
import type { VipService } from '../../../src/control/control.ts';
import { servedServicesOf } from '../../../src/controllers/mesh-tailnet/relays/served.ts';
import type { VipServiceState } from '../../../src/controllers/mesh-endpoints/vip-services.ts';
import { controllerIndexes } from '../../../src/controllers/registry.ts';
import { claimsOf, namesOf } from '../../../src/controllers/vip-services/gather.ts';
import type { Claims } from '../../../src/controllers/vip-services/gather.ts';
import { nextLedger } from '../../../src/controllers/vip-services/ledger.ts';
import type { Ledger } from '../../../src/controllers/vip-services/ledger.ts';
import { offeringReader, usersFrom } from '../../../src/controllers/vip-services/offering.ts';
import { withOwners } from '../../../src/controllers/vip-services/owners.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { inSlices } from '../../../src/runtime/slices.ts';
import { Tracking } from '../../../src/store/tracking.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { trafficValues } from '../../../src/store/traffic/values.ts';
import { DEFAULT_GUARD } from '../../../src/traffic/address-guard.ts';
import { TRAFFIC } from '../../support/controllers/mesh-endpoints/scene.ts';
import { INSTALLATION } from '../../support/controllers/vip-services/scene.ts';
import { named } from '../../support/declared.ts';
import { endpoint, meshEndpoints, meshGateway, meshTailnet } from '../../support/objects.ts';
import { runs } from '../../support/runs.ts';
import { createMemory } from '../../support/store/memory.ts';

const place = fc.constantFrom('x/one', 'x/two', 'y/one', 'y/two');
const TAILNET = meshTailnet({ tags: ['tag:mesh'], allowedTags: ['tag:old'] }) as {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly tailnet: string };
};

const listed = fc.record({
  name: fc.constantFrom('a', 'svc:a', 'b', 'c'),
  port: fc.constantFrom(80, 443),
  targetEndpoint: fc.constantFrom('web', 'api'),
  tags: fc.constantFrom(undefined, ['tag:mesh'], ['tag:old'], ['tag:new']),
});

const step = fc.oneof(
  fc.record({
    do: fc.constant('put' as const),
    place,
    services: fc.uniqueArray(listed, { selector: ({ name }) => name, maxLength: 4 }),
    paused: fc.boolean(),
    autoRegister: fc.boolean(),
    meshIP: fc.constantFrom('100.64.0.1', '100.64.0.2'),
  }),
  fc.record({ do: fc.constant('remove' as const), place }),
  fc.record({
    do: fc.constant('put a gateway' as const),
    place: fc.constantFrom('x/edge', 'y/edge'),
    spec: fc.record({
      serviceCoordination: fc.record({
        enabled: fc.boolean(),
        strategy: fc.constantFrom('shared', 'isolated'),
        clusterID: fc.constantFrom('east', 'west'),
      }),
      access: fc.constantFrom({}, { deniedTags: ['tag:mesh'] }),
    }),
  }),
  fc.record({ do: fc.constant('remove a gateway' as const), place: fc.constantFrom('x/edge', 'y/edge') }),
  fc.record({
    do: fc.constant('put the tailnet' as const),
    spec: fc.record({
      tags: fc.constantFrom(['tag:mesh'], ['tag:mesh', 'tag:new']),
      adoptableServices: fc.constantFrom([], ['a']),
      trustedInstallations: fc.constantFrom([], ['99999999']),
      allowedNamespaces: fc.constantFrom(
        { from: 'All' },
        { from: 'Selector', selector: { matchLabels: { 'kubernetes.io/metadata.name': 'x' } } },
      ),
    }),
  }),
  fc.record({ do: fc.constant('let a name go' as const), name: fc.constantFrom('svc:a', 'svc:b') }),
  fc.record({
    do: fc.constant('register' as const),
    name: fc.constantFrom('svc:a', 'svc:b'),
    object: place,
    tags: fc.constantFrom(['tag:mesh'], ['tag:old']),
  }),
  fc.record({
    do: fc.constant('have a state' as const),
    place,
    status: fc.constantFrom('Registered', 'Failed', undefined),
  }),
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const ADDRESSES = new Set(['100.64.0.2']);

/** All services of an object in one state. */
function statesOf(status: VipServiceState['status']) {
  const state: VipServiceState = { status, reason: 'Served', text: '' };
  return new Map(['a', 'svc:a', 'b', 'c'].map(name => [name, state]));
}

type States = ReturnType<typeof statesOf>;
const STATES = { Registered: statesOf('Registered'), Failed: statesOf('Failed') };

function entry(name: string, object: string, tags: readonly string[]): VipService {
  const heartbeat = new Date(Date.UTC(2026, 0, 15));
  const owner = { installation: INSTALLATION, cluster: 'here', object, strategy: 'shared', tags } as const;
  const annotations = withOwners({}, [{ ...owner, ports: ['tcp:443'], heartbeat }], false);
  return { name, addrs: ['100.96.0.9'], ports: ['tcp:443'], tags, annotations, fields: {} };
}

/** What mesh pods served before. */
const BEFORE = new Map<string, ServedService>([
  ['svc:a', { name: 'svc:a', port: 1, via: 'mesh', target: '100.64.0.9:1', isAdvertised: true }],
]);

/** A tailnet, with what is decided of it from what is kept, and from copies of which nothing is known. */
async function startWorld() {
  const memory = createMemory([...trafficIndexes, ...controllerIndexes], [TAILNET]);
  await memory.start();
  const tracking = new Tracking(memory.read);
  const values = trafficValues(tracking, TRAFFIC);
  const reads = tracking.readsOf({ affected: () => undefined });
  const offerings = offeringReader(usersFrom(tracking), systemClock);
  const services = new Map<string, VipService>();
  const statuses = new Map<string, States>();
  const known = { ledger: new Map() as Ledger };
  const freed = new Set<string>();
  const served = (objects: readonly Kinds['MeshEndpoints'][], claims: Claims, ledger: Ledger) => {
    const names = namesOf(claims, ledger, { addresses: ADDRESSES, maxVipServices: 100 });
    return {
      names,
      served: servedServicesOf(objects, { guard: DEFAULT_GUARD, before: BEFORE, states: statuses, names }),
    };
  };
  const take = async (taken: Step) => {
    const { author } = memory;
    const [namespace = '', name = ''] = 'place' in taken ? taken.place.split('/') : [];
    if (taken.do === 'put') {
      const { paused, autoRegister, meshIP } = taken;
      const endpoints = [endpoint({ name: 'web', meshIP }), endpoint({ name: 'api', meshIP: '100.64.0.3' })];
      const vipServices = taken.services.map(({ tags, ...rest }) => ({ ...rest, ...(tags && { tags }) }));
      const spec = { endpoints, paused, serviceDiscovery: { vipServices, autoRegister } };
      await author.put(named(meshEndpoints(spec), taken.place));
    } else if (taken.do === 'remove') await author.remove({ kind: 'MeshEndpoints', namespace, name });
    else if (taken.do === 'put a gateway') await author.put(named(meshGateway(taken.spec), taken.place));
    else if (taken.do === 'remove a gateway') await author.remove({ kind: 'MeshGateway', namespace, name });
    else if (taken.do === 'put the tailnet')
      await author.put({ ...TAILNET, spec: { ...TAILNET.spec, ...taken.spec } });
    else if (taken.do === 'let a name go') freed.add(taken.name);
    else if (taken.do === 'register') services.set(taken.name, entry(taken.name, taken.object, taken.tags));
    else if (taken.status === undefined) statuses.delete(taken.place);
    else statuses.set(taken.place, STATES[taken.status]);
  };
  const compare = async () => {
    const read = reads.open();
    const { name } = TAILNET.metadata;
    const tailnet = read.get({ kind: 'MeshTailnet', namespace: '', name });
    if (!tailnet) throw new Error('no tailnet');
    const offering = await offerings(tailnet, read);
    const options = {
      ...{ before: known.ledger, listers: offering.listers, registrants: new Map<string, string>() },
      ...{ isUnserved: (of: string) => freed.has(of), hasDropped: () => true },
      ...{ maxNames: 100, now: new Date() },
    };
    const changed = offering.changedSince(known.ledger);
    const ledger = await inSlices(nextLedger({ ...options, changed }), systemClock);
    expect(ledger).toEqual(await inSlices(nextLedger(options), systemClock));
    offering.settle(ledger);
    Object.assign(known, { ledger });
    freed.clear();
    const api = undefined as never;
    const usable = {
      is: 'usable',
      installation: INSTALLATION,
      api,
      services: [...services.values()],
    } as const;
    const deps = { connection: usable, read, values };
    const claims = await inSlices(claimsOf(tailnet, offering, ledger, deps), systemClock);
    const copies = {
      userAt: (...args: Parameters<typeof offering.userAt>) => structuredClone(offering.userAt(...args)),
    };
    const again = claimsOf(structuredClone(tailnet), copies, new Map(ledger), deps);
    const fresh = await inSlices(again, systemClock);
    const objects = [...new Set([...ledger.values()].map(({ object }) => object))].flatMap(
      object => offering.userAt(object, read) ?? [],
    );
    reads.close(read, true);
    expect(claims).toEqual(fresh);
    const present = served(objects, claims, ledger);
    expect(present).toEqual(served(structuredClone(objects), fresh, new Map(ledger)));
    return { claims: claims.claims.size, served: present.served.length };
  };
  return { take, compare };
}

it('what is kept of claims and of served services is what is decided from nothing, after any history', async () => {
  let [claimed, isServed] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 20 }), async steps => {
      const { take, compare } = await startWorld();
      for (const taken of steps) {
        await take(taken);
        const compared = await compare();
        claimed += compared.claims;
        isServed += compared.served;
      }
    }),
    runs(150),
  );
  expect(claimed).toBeGreaterThan(10);
  expect(isServed).toBeGreaterThan(0);
}, 30_000);
