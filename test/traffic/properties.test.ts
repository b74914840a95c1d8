import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MeshEndpoint } from '../../src/api/generated/types.ts';
import { isEqual } from '../../src/api/json.ts';
import { keyOf } from '../../src/api/key.ts';
import { refTo } from '../../src/api/objects/references.ts';
import type { SocketAddress } from '../../src/api/socket-address.ts';
import type { Resource } from '../../src/api/objects/resource.ts';
import type { EnvoyEndpoint, LoadAssignment } from '../../src/traffic/endpoints/load-assignment.ts';
import type { UpstreamTls } from '../../src/traffic/upstream-tls.ts';
import type { ResolvedRule } from '../../src/traffic/resolve-route.ts';
import { arbitraryObject } from '../support/schema/arbitrary.ts';
import { resourceOf } from '../support/store/resources.ts';
import { productKinds } from '../support/schema/product-schemas.ts';
import { resourcesOf, ruleOf, trafficOf } from '../support/traffic/resolve.ts';
import type { Traffic } from '../support/traffic/resolve.ts';
import { CLUSTERS, randomUdpWorld, randomWorld } from '../support/traffic/random-objects.ts';
import { backend, endpointsObject, routeObject, tailnetObject } from '../support/traffic/objects.ts';
import { IS_LONG } from '../support/eventually.ts';
import { runs } from '../support/runs.ts';

/** How many cases a test has to have seen: they are random, and rare in a third of the runs. */
const ENOUGH = IS_LONG ? 100 : 20;

/** Objects as they are read, of which the last of the same key counts. */
function readAll(objects: readonly object[]): readonly Resource[] {
  const resources = objects.map(resourceOf);
  return [...new Map(resources.map(each => [keyOf(refTo(each)), each])).values()];
}

type Listed = {
  readonly spec: {
    readonly endpoints?: readonly { readonly port: number; readonly externalTarget?: string }[];
  };
};

const KINDS = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const;

/** The traffic of all mesh clusters. */
function allTraffic(objects: readonly Resource[]): readonly Traffic[] {
  const resources = resourcesOf(objects);
  return CLUSTERS.filter(cluster => ruleOf(resources, cluster)).map(cluster => trafficOf(resources, cluster));
}

function forAllTraffic(check: (traffic: Traffic) => void, most = 1000): number {
  let seen = 0;
  const property = fc.property(fc.oneof(randomWorld, randomUdpWorld), world => {
    for (const traffic of allTraffic(readAll(world))) {
      check(traffic);
      seen += traffic.through.Direct.assignment.localities.length;
    }
  });
  fc.assert(property, runs(most));
  return seen;
}

function endpointsIn({ localities }: LoadAssignment): readonly EnvoyEndpoint[] {
  return localities.flatMap(({ endpoints }) => endpoints);
}

function textOf({ address, port }: SocketAddress): string {
  return `${address}:${port}`;
}

/** What identifies an endpoint within a rule. */
function idOf({ meshIP, port, externalTarget }: MeshEndpoint): string {
  return externalTarget ?? `${meshIP}:${port}`;
}

function idIn(endpoint: EnvoyEndpoint): string {
  return endpoint.externalTarget ?? textOf(endpoint.relayedTo ?? endpoint);
}

/** The TLS that endpoints take. */
function takenIn({ backends }: ResolvedRule): ReadonlyMap<string, UpstreamTls | undefined> {
  const all = backends.flatMap(({ endpoints }) => endpoints);
  return new Map(all.map(({ endpoint, tls }) => [idOf(endpoint), tls]));
}

describe('with random resources', () => {
  it('an endpoint without externalTarget has a proxy or a relay exactly with data path Proxy', () => {
    const seen = forAllTraffic(({ through: { Proxy, Direct } }) => {
      for (const { proxy, relayedTo, externalTarget } of endpointsIn(Proxy.assignment)) {
        expect([proxy, relayedTo, externalTarget].filter(each => each !== undefined)).toHaveLength(1);
      }
      expect(endpointsIn(Direct.assignment).filter(({ proxy, relayedTo }) => proxy ?? relayedTo)).toEqual([]);
    });
    expect(seen).toBeGreaterThan(ENOUGH);
  });

  it('datagrams go to relays of the tailnet of the endpoint only, on the port that status has for its address', () => {
    let seen = 0;
    const seenIn = forAllTraffic(({ rule, through }) => {
      const { Proxy } = through;
      for (const { backend: index, endpoints } of Proxy.assignment.localities) {
        const listed = rule.backends.find(each => each.index === index)?.endpoints ?? [];
        for (const { address, port, relayedTo, weight } of endpoints) {
          if (!relayedTo) continue;
          const service = textOf(relayedTo);
          const { object, tailnet, endpoint } =
            listed.find(
              each => idOf(each.endpoint) === service && each.endpoint.externalTarget === undefined,
            ) ?? expect.fail(`${service} is not of the backend`);
          const entry = object.status?.endpoints?.find(({ name }) => name === endpoint.name);
          expect(address).toMatch(tailnet.metadata.name === 'a' ? /^10\.1\.0\./ : /^10\.2\.0\./);
          const isScaled = endpointsIn(Proxy.assignment).some(each => each.externalTarget !== undefined);
          expect([entry?.address, entry?.relayPort]).toEqual([service, port]);
          if (!isScaled) expect(weight).toBe(endpoint.weight);
          expect([rule.protocol, tailnet.spec.pool.mode]).toEqual(['UDP', 'Managed']);
          seen++;
        }
      }
    });
    expect(seenIn).toBeGreaterThan(ENOUGH);
    expect(seen).toBeGreaterThan(ENOUGH / 2);
  });

  it('all endpoints of a locality have equally many relays', () => {
    forAllTraffic(({ through }) => {
      for (const { endpoints } of through.Proxy.assignment.localities) {
        const counts = new Map<string, number>();
        for (const { relayedTo } of endpoints.filter(each => each.relayedTo)) {
          const service = relayedTo ? textOf(relayedTo) : '';
          counts.set(service, (counts.get(service) ?? 0) + 1);
        }
        expect(new Set(counts.values()).size).toBeLessThan(2);
      }
    });
  });

  it('endpoints of a locality share its traffic by their weights, whatever number of addresses they have', () => {
    let seen = 0;
    forAllTraffic(({ rule, through }) => {
      for (const { backend: index, endpoints } of through.Direct.assignment.localities) {
        const listed = rule.backends.find(each => each.index === index)?.endpoints ?? [];
        const shares = [...new Set(endpoints.map(idIn))].map(id => {
          const places = endpoints.filter(each => idIn(each) === id);
          const weight = places.reduce((sum, each) => sum + each.weight, 0);
          if (places.length > 1 && endpoints.length > places.length) seen++;
          return weight / (listed.find(({ endpoint }) => idOf(endpoint) === id)?.endpoint.weight ?? NaN);
        });
        for (const share of shares) expect(share / (shares[0] ?? NaN)).toBeCloseTo(1, 1);
      }
    }, 3000);
    expect(seen).toBeGreaterThan(IS_LONG ? 3 : 0);
  });

  it('every endpoint that resolves is used or reported with the data path', () => {
    const seen = forAllTraffic(({ rule, through: { Proxy } }) => {
      for (const { index, place, endpoints } of rule.backends) {
        const reported = Proxy.unused.filter(({ at }) => isEqual(at, place.at));
        const isWhole = reported.some(({ endpoint }) => endpoint === undefined);
        const served = Proxy.assignment.localities
          .filter(({ backend: at }) => at === index)
          .flatMap(locality => locality.endpoints);
        const used = served.map(idIn);
        const isServedOutside = served.some(each => each.externalTarget && each.health !== 'DRAINING');
        for (const { endpoint } of endpoints) {
          // Draining relays are left out beside an externalTarget that does not drain.
          const mayDrain = rule.protocol === 'UDP' && endpoint.externalTarget === undefined;
          if (mayDrain && isServedOutside && !used.includes(idOf(endpoint))) continue;
          const isReported =
            (isWhole && endpoint.externalTarget === undefined) ||
            reported.some(({ endpoint: name }) => name === endpoint.name);
          expect(used.includes(idOf(endpoint))).toBe(!isReported);
        }
      }
    });
    expect(seen).toBeGreaterThan(ENOUGH);
  });

  it('no address occurs twice, weights are positive, and priorities have no gaps', () => {
    const seen = forAllTraffic(({ through }) => {
      for (const { assignment } of [through.Proxy, through.Direct]) {
        const endpoints = endpointsIn(assignment);
        expect(new Set(endpoints.map(({ address, port }) => `${address}:${port}`)).size).toBe(
          endpoints.length,
        );
        const weights = [...assignment.localities, ...endpoints].map(({ weight }) => weight);
        expect(weights.filter(weight => weight < 1)).toEqual([]);
        const inUse = new Set(assignment.localities.map(({ priority }) => priority));
        expect([...inUse].sort()).toEqual([...inUse.keys()].map((_, at) => at));
        expect(assignment.localities.filter(({ endpoints }) => endpoints.length === 0)).toEqual([]);
      }
    });
    expect(seen).toBeGreaterThan(ENOUGH);
  });

  it('every endpoint selects a socket of its cluster', () => {
    const seen = forAllTraffic(({ rule, settings, through }) => {
      const taken = takenIn(rule);
      for (const endpoint of endpointsIn(through.Direct.assignment)) {
        const { socketMatch } = endpoint;
        const match = settings?.socketMatches.find(({ name }) => name === socketMatch);
        const socket = socketMatch === undefined ? settings?.defaultSocket : match?.socket;
        const tls = taken.get(idIn(endpoint));
        if (rule.protocol !== 'UDP') expect(socket).toEqual(tls ? { is: 'tls', tls } : { is: 'clear' });
      }
    });
    expect(seen).toBeGreaterThan(ENOUGH);
  });

  it('no endpoint selects a socket of an earlier cluster with other settings', () => {
    let seen = 0;
    const property = fc.property(randomWorld, randomWorld, (before, after) => {
      const early = new Map(allTraffic(readAll(before)).map(each => [each.rule.cluster.text, each.settings]));
      for (const { rule, through } of allTraffic(readAll(after))) {
        const settings = early.get(rule.cluster.text);
        if (!settings || settings.protocol === 'UDP' || rule.protocol === 'UDP') continue;
        const taken = takenIn(rule);
        for (const endpoint of endpointsIn(through.Direct.assignment)) {
          const { socketMatch } = endpoint;
          const match = settings.socketMatches.find(({ name }) => name === socketMatch);
          const socket = match?.socket ?? settings.defaultSocket;
          const tls = taken.get(idIn(endpoint));
          expect([{ is: 'closed' }, tls ? { is: 'tls', tls } : { is: 'clear' }]).toContainEqual(socket);
          seen++;
        }
      }
    });
    fc.assert(property, runs(800));
    expect(seen).toBeGreaterThan(ENOUGH);
  });

  it('every referenced endpoint is used or reported as unused', () => {
    const seen = forAllTraffic(({ rule }) => {
      for (const { ref, endpoints, place } of rule.backends) {
        const reported = rule.unused.filter(({ at }) => isEqual(at, place.at));
        const isWhole = reported.some(({ endpoint }) => endpoint === undefined);
        if (ref.weight === 0 || isWhole) expect(endpoints).toEqual([]);
        else {
          const [first] = endpoints;
          const names = [
            ...endpoints.map(({ endpoint }) => endpoint.name),
            ...reported.map(({ endpoint }) => endpoint),
          ];
          const all = first?.object.spec.endpoints?.filter(({ port }) => port === ref.port);
          if (all) expect(names.sort()).toEqual(all.map(({ name }) => name).sort());
          else expect(reported.length).toBeGreaterThan(0);
        }
      }
    });
    expect(seen).toBeGreaterThan(ENOUGH);
  });

  it('results do not depend on the order of lists or on earlier calls', () => {
    const property = fc.property(randomWorld, world => {
      const resources = readAll(world);
      const first = allTraffic(resources);
      expect(allTraffic(resources)).toEqual(first);
      expect(allTraffic([...resources].reverse())).toEqual(first);
    });
    fc.assert(property, runs(200));
  });

  it('cluster settings do not depend on status or proxies', () => {
    const property = fc.property(randomWorld, world => {
      const resources = readAll(world);
      const silent = resources.map(each => {
        if (each.kind === 'MeshEndpoints') return { ...each, status: {} };
        if (each.kind !== 'MeshTailnet') return each;
        return { ...each, spec: { ...each.spec, pool: { ...each.spec.pool, addresses: [] } }, status: {} };
      });
      const settings = (all: readonly Resource[]) => allTraffic(all).map(({ settings }) => settings);
      expect(settings(silent)).toEqual(settings(resources));
    });
    fc.assert(property, runs(300));
  });

  it('nothing throws for valid objects', () => {
    const kind = productKinds().find(({ name }) => name === 'MeshEndpoints');
    if (!kind) throw new Error('no schema');
    const someEndpoints = arbitraryObject(kind).map(object => (object as Listed).spec.endpoints ?? []);
    let seen = 0;
    const property = fc.property(
      someEndpoints,
      fc.constantFrom(...KINDS),
      fc.boolean(),
      (all, kind, isWithin) => {
        const endpoints = all.map(({ externalTarget, ...rest }) =>
          isWithin ? rest : { ...rest, externalTarget },
        );
        const refs = endpoints.map(({ port }) => backend('web', { port }));
        const world = readAll([
          tailnetObject(),
          endpointsObject('web', endpoints),
          routeObject(kind, 'r', refs),
        ]);
        for (const { through } of allTraffic(world)) seen += endpointsIn(through.Proxy.assignment).length;
      },
    );
    fc.assert(property, runs(500));
    expect(seen).toBeGreaterThan(20);
  });
});
