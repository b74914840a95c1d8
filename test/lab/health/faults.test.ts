import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestThrough } from '../../../lab/gateway/envoy.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { startMeshNode } from '../../../lab/tailnet/mesh-node.ts';
import { eventually, expectWithin, IS_LONG } from '../../support/eventually.ts';
import { FAULTS } from '../../support/lab/health/faults.ts';
import type { Fault, FaultyService } from '../../support/lab/health/faults.ts';
import { startHealthWorld } from '../../support/lab/health/world.ts';
import type { HealthWorld } from '../../support/lab/health/world.ts';
import { ownFolder, remoteOf } from '../../support/lab/lab.ts';
import { clusterOf, meshEndpoint, meshEndpoints, meshRoute } from '../../support/lab/traffic/objects.ts';

let world: HealthWorld;
const services = new Map<string, FaultyService>();
const own = ownFolder();
beforeAll(async () => {
  world = await startHealthWorld({ tcpListeners: FAULTS.filter(isTcp).map(({ name }) => name) });
  own.folder.create();
  const addresses = await Promise.all(FAULTS.map(startFault));
  // Once the machine has no more devices to start, which would make checks late.
  for (const [index, fault] of FAULTS.entries()) putFault(fault, addresses[index] ?? '');
});
afterAll(async () => {
  await world.end();
  await own.end();
  for (const { close } of services.values()) await close();
});

const isTcp = ({ kind }: Fault) => kind === 'TCPRoute';

function serviceOf({ name }: Fault): FaultyService {
  const service = services.get(name);
  if (!service) throw new Error(`${name} has no service`);
  return service;
}

/**
 * Starts a service that fails on command, behind a device that forwards to nothing else: if it did, it would refuse a
 * connection now and then: see the limits of docs/tailnets.md. Returns the address of the device.
 */
async function startFault(fault: Fault): Promise<string> {
  const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const device = { hostname: fault.name, tags: ['tag:web'] };
  const [{ addresses }, service] = await Promise.all([
    startMeshNode(starter, world.lab.tailnet, device),
    fault.start(),
  ]);
  services.set(fault.name, service);
  return addresses[0] ?? '';
}

/** A route to a service that fails on command, and to one of the lab that is not checked and never fails. */
function putFault(fault: Fault, meshIP: string): void {
  const { name, kind, substitute, endpoint, healthCheck } = fault;
  const { lab, gateway } = world;
  const other = meshEndpoint(remoteOf(lab, 'web-2'), substitute);
  const { port } = serviceOf(fault);
  const listener = isTcp(fault) ? name : 'http';
  const refs = [
    { name, port },
    { name: `${name}-substitute`, port: Number(other['port']) },
  ];
  world.put(name, [
    meshEndpoints(lab, name, [world.endpoint(name, port, { ...endpoint, meshIP }, healthCheck)]),
    meshEndpoints(lab, `${name}-substitute`, [other]),
    meshRoute(gateway, {
      name,
      kind,
      listener,
      refs,
      ...(isTcp(fault) ? {} : { hostnames: [`${name}.test`] }),
    }),
  ]);
}

/** The services that answer some requests. */
async function backendsOf({ name }: Fault): Promise<ReadonlySet<string>> {
  const backends = new Set<string>();
  for (let request = 0; request < 6; request++) {
    const response = await requestThrough(world.listeners['http'] ?? '', { host: `${name}.test` });
    expect(response.status).toBe(200);
    backends.add((JSON.parse(response.body) as { readonly backend: string }).backend);
  }
  return backends;
}

/** Whether there was an Event about an endpoint: without a cluster, a line of the log. */
function isLogged(reason: string, { name }: Fault, text = ''): boolean {
  const events = world.standalone.lines.filter(line => line.includes(`"reason":"${reason}"`));
  return events.some(line => line.includes(`endpoint ${name} (`) && line.includes(text));
}

/** Waits until status, metric and Envoy agree that an endpoint is healthy. */
async function expectHealthy(fault: Fault): Promise<void> {
  const { name } = fault;
  const { port } = serviceOf(fault);
  await eventually(() => expect(world.entry(name)).toMatchObject({ status: 'Healthy' }));
  await eventually(async () => expect(await world.gauge(name)).toBe(1));
  await eventually(async () => expect(await world.usable(clusterOf(fault), port)).toBe(true));
  expect(world.entry(name)?.error).toBeUndefined();
  expect(world.condition(name, 'Ready')).toMatchObject({ status: 'True', reason: 'EndpointsConfigured' });
}

/** Waits until status, Event, metric and Envoy agree that an endpoint is healthy again. */
async function expectRecovered(fault: Fault): Promise<void> {
  await expectHealthy(fault);
  await eventually(() => expect(isLogged('EndpointHealthy', fault)).toBe(true));
}

/** Waits until status, Event, metric and Envoy agree that an endpoint is unhealthy. */
async function expectUnhealthy(fault: Fault): Promise<void> {
  const { name, error } = fault;
  const { port } = serviceOf(fault);
  await eventually(() => expect(world.entry(name)).toMatchObject({ status: 'Unhealthy', error }));
  await eventually(async () => expect(await world.gauge(name)).toBe(0));
  await eventually(async () => expect(await world.usable(clusterOf(fault), port)).toBe(false));
  await eventually(() => expect(isLogged('EndpointUnhealthy', fault, error)).toBe(true));
  expect(world.condition(name, 'Ready')).toMatchObject({ status: 'False', reason: 'NoHealthyEndpoints' });
}

describe('an endpoint whose service fails and recovers', { concurrent: !IS_LONG }, () => {
  it.each(FAULTS)('is reported alike by status, Event, metric and Envoy: $name', async fault => {
    await expectHealthy(fault);
    await serviceOf(fault).bad();
    await expectWithin(3, expectUnhealthy(fault));
    if (fault.kind === 'HTTPRoute') expect([...(await backendsOf(fault))]).toEqual(['web-2']);
    await serviceOf(fault).good();
    await expectWithin(2, expectRecovered(fault));
    if (fault.kind === 'HTTPRoute') {
      await eventually(async () =>
        expect([...(await backendsOf(fault))].sort()).toEqual(['health', 'web-2']),
      );
    }
  });
});
