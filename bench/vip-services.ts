import type { Kinds } from '../src/api/generated/types.ts';
import { servedServicesOf } from '../src/controllers/mesh-tailnet/relays/served.ts';
import type { ServicesOfTailnet, VipServiceState } from '../src/controllers/mesh-endpoints/vip-services.ts';
import { controllerIndexes } from '../src/controllers/registry.ts';
import { claimsOf, namesOf, statesOf } from '../src/controllers/vip-services/gather.ts';
import type { Claims } from '../src/controllers/vip-services/gather.ts';
import { nextLedger } from '../src/controllers/vip-services/ledger.ts';
import type { Holder, Ledger } from '../src/controllers/vip-services/ledger.ts';
import { offeringReader, usersFrom } from '../src/controllers/vip-services/offering.ts';
import { systemClock } from '../src/runtime/clock.ts';
import { keptLast } from '../src/runtime/kept.ts';
import { createPublished } from '../src/runtime/published.ts';
import { inSlices } from '../src/runtime/slices.ts';
import { admit } from '../src/store/lifecycle.ts';
import { ResourceStore } from '../src/store/store.ts';
import { Tracking } from '../src/store/tracking.ts';
import { trafficIndexes } from '../src/store/traffic/resources.ts';
import { trafficValues } from '../src/store/traffic/values.ts';
import { DEFAULT_GUARD } from '../src/traffic/address-guard.ts';
import type { OnStep } from '../lab/process/steps.ts';
import { median } from './figures.ts';
import type { Bench, Figure } from './figures.ts';
import { manyEndpoints } from './many-endpoints.ts';

const [OBJECTS, LISTED, NAMES] = [5000, 100, 1000];
/** The first changes run code that is not compiled yet. */
const [WARM_UP_CHANGES, CHANGES] = [300, 50];
const TAILNET = 'example';

/** Measures how long it takes to decide who has which VIP service, and what mesh pods serve: at first, and after a change. */
export const vipServices: Bench = { duration: () => ({ aboutMs: 20_000 }), run: vipServicesFigures };

/** An object that lists 100 of the names of its tailnet, from another one on than the object before. */
function listing(index: number, first: number): Readonly<Record<string, unknown>> {
  const object = manyEndpoints(index) as { readonly spec: object };
  const services = Array.from({ length: LISTED }, (_, at) => {
    return { name: `service-${(first + at) % NAMES}`, port: 443, targetEndpoint: 'e0' };
  });
  const serviceDiscovery = { vipServices: services };
  return { ...object, spec: { ...object.spec, tailnet: `${TAILNET}.ts.net`, serviceDiscovery } };
}

function openStore() {
  const store = new ResourceStore([...trafficIndexes, ...controllerIndexes], failure => {
    throw failure;
  });
  const put = (object: object) => void store.put(admit(object));
  const spec = { tailnet: `${TAILNET}.ts.net`, pool: { mode: 'Managed' } };
  put({ apiVersion: 'mesh-gateway.dev/v1alpha1', kind: 'MeshTailnet', metadata: { name: TAILNET }, spec });
  for (let index = 0; index < OBJECTS; index++) put(listing(index, index));
  return { store, put };
}

/** As the control API has them, which is not asked while claims are the same. */
const registrations = keptLast<ReadonlyMap<string, VipServiceState>>();

/** What controllers do of a tailnet, without requests: each function runs to its end, or yields by itself. */
function decisions(store: ResourceStore) {
  const tracking = new Tracking(store);
  const options = { dataPath: 'Proxy', settingsFrom: 'MeshGateway', clusterEncoding: '' } as const;
  const values = trafficValues(tracking, options);
  const reads = tracking.readsOf({ affected: () => undefined });
  const offerings = offeringReader(usersFrom(tracking), systemClock);
  const published = createPublished<ServicesOfTailnet>();
  const ledgers = new Map<string, Ledger>();
  const registered = (claims: Claims) =>
    registrations(claims, [], () => {
      const state = { status: 'Registered', reason: 'Served', text: '' } as const;
      return new Map([...claims.claims.keys()].map(name => [name, state]));
    });
  const addresses = new Set<string>();
  return async () => {
    const read = reads.open();
    const tailnet = read.get({ kind: 'MeshTailnet', namespace: '', name: TAILNET }) as Kinds['MeshTailnet'];
    const offering = await offerings(tailnet, read);
    const rest = { hasDropped: () => true, isUnserved: () => true, registrants: new Map<string, string>() };
    const most = { maxNames: NAMES, maxVipServices: NAMES };
    const before = ledgers.get(TAILNET) ?? new Map<string, Holder>();
    const { listers } = offering;
    const input = {
      before,
      listers,
      changed: offering.changedSince(before),
      now: new Date(),
      ...rest,
      ...most,
    };
    const ledger = await inSlices(nextLedger(input), systemClock);
    offering.settle(ledger);
    ledgers.set(TAILNET, ledger);
    const claimed = claimsOf(tailnet, offering, ledger, { connection: undefined, read, values });
    const claims = await inSlices(claimed, systemClock);
    // Meanwhile the ledger is stored.
    await turn();
    const names = namesOf(claims, ledger, { addresses, ...most });
    await turn();
    const states = statesOf(claims, registered(claims));
    published.publish(TAILNET, { states, names, all: undefined, problem: undefined });
    await turn();
    const holders = [...new Set(names.holders.values())].flatMap(place => offering.userAt(place, read) ?? []);
    const served = servedServicesOf(holders, { guard: DEFAULT_GUARD, before: new Map(), states, names });
    reads.close(read, true);
    if (served.length !== NAMES) throw new Error(`${served.length} services are served, not ${NAMES}`);
  };
}

const turn = () => new Promise<void>(resolve => setImmediate(resolve));

/** The CPU time of some work, and the most of it without a turn of the event loop. */
async function measured(
  work: () => Promise<void>,
): Promise<{ readonly ms: number; readonly sliceMs: number }> {
  const start = cpuMs();
  let [turnAt, sliceMs, isDone] = [start, 0, false];
  const tick = () => {
    const now = cpuMs();
    sliceMs = Math.max(sliceMs, now - turnAt);
    turnAt = now;
    if (!isDone) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  const ms = cpuMs() - start;
  isDone = true;
  await turn();
  return { ms, sliceMs };
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

async function vipServicesFigures(onStep: OnStep): Promise<readonly Figure[]> {
  onStep(`${OBJECTS} MeshEndpoints that list ${LISTED} VIP services each`);
  const { store, put } = openStore();
  const decide = decisions(store);
  onStep('the first decision, and changes');
  const first = await measured(decide);
  const changes: number[] = [];
  for (let change = 0; change < WARM_UP_CHANGES + CHANGES; change++) {
    // It lists one other name.
    const index = OBJECTS - 1 - change;
    put(listing(index, index + 1));
    changes.push((await measured(decide)).ms);
  }
  const name = `${OBJECTS} objects with ${LISTED} VIP services each, of ${NAMES}`;
  return [
    { name: `${name}: who has which, and what is served`, value: first.ms, unit: 'ms of CPU', aim: 300 },
    { name: 'the longest slice of that', value: first.sliceMs, unit: 'ms of CPU', aim: 20 },
    {
      name: 'the same after a change of one object',
      value: median(changes.slice(WARM_UP_CHANGES)),
      unit: 'ms of CPU',
      aim: 1,
    },
  ];
}
