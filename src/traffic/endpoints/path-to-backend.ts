import type { Kinds } from '../../api/generated/types.ts';
import { within } from '../../api/problem.ts';
import type { Why } from '../../api/problem.ts';
import { addressText } from '../../api/socket-address.ts';
import type { SocketAddress } from '../../api/socket-address.ts';
import type { AddressGuard } from '../address-guard.ts';
import { proxiesOf } from '../data-path.ts';
import type { DataPathMode } from '../data-path.ts';
import { externalAddressesOf } from './external-targets.ts';
import type { ExternalAddresses } from './external-targets.ts';
import { proxySelector } from './proxy-selector.ts';
import { relayPortsOf } from './relays.ts';
import type { ResolvedEndpoint } from '../resolve-backend-ref.ts';
import type { ResolvedBackend, ResolvedRule } from '../resolve-route.ts';
import type { TrafficResources } from '../traffic-resources.ts';
import { unreachableBackend } from '../unused.ts';
import type { UnusedBackend } from '../unused.ts';

/** The address to which Envoy sends what is for an endpoint. */
export type DialledAddress = SocketAddress & {
  /** The proxy through which Envoy connects; none where Envoy is on the mesh. */
  readonly proxy?: SocketAddress;
  /** The endpoint, if the address is that of a relay. */
  readonly relayedTo?: SocketAddress;
  /** The externalTarget, if the address is one of those that it resolves to. */
  readonly externalTarget?: string;
};

/** How Envoy reaches the endpoints of a backend, and which it cannot reach. */
export type Path = {
  /** None for an endpoint that Envoy cannot reach. */
  readonly placesOf: (
    resolved: ResolvedEndpoint,
  ) => readonly (DialledAddress & { readonly isDraining?: boolean })[];
  readonly unused: readonly UnusedBackend[];
};

/** The path to a backend; all its endpoints are in this tailnet. */
type PathTo = (backend: ResolvedBackend, tailnet: Kinds['MeshTailnet']) => Path;

/** What paths depend on, beside the rule. */
export type PathResources = Pick<TrafficResources, 'relays' | 'guard'>;

/**
 * The paths to the backends of a rule. Without a proxy or relay, Envoy never gets an endpoint in the tailnet to dial
 * directly; to an externalTarget it connects without either. What the guard refuses has no path.
 */
export function pathsOf(rule: ResolvedRule, dataPath: DataPathMode, resources: PathResources): PathTo {
  const { guard } = resources;
  const external = externalAddressesOf(rule.backends, guard);
  const refused = refusedIn(rule.backends, guard);
  const isInMesh = (resolved: ResolvedEndpoint) => !external.has(resolved) && !refused.has(resolved);
  const onlyInMesh = (backend: ResolvedBackend) => ({
    ...backend,
    endpoints: backend.endpoints.filter(isInMesh),
  });
  const intoMesh = pathsIntoMesh({ ...rule, backends: rule.backends.map(onlyInMesh) }, dataPath, resources);
  return (backend, tailnet) => {
    const inMesh = onlyInMesh(backend);
    const path = inMesh.endpoints.length > 0 ? intoMesh(inMesh, tailnet) : noPath();
    return {
      placesOf: resolved => {
        const found = external.get(resolved);
        if (found) return externalPlacesOf(resolved, found);
        return refused.has(resolved) ? [] : path.placesOf(resolved);
      },
      unused: [...refusedOf(backend, refused), ...path.unused, ...unresolvedOf(backend, external)],
    };
  };
}

/** The endpoints in a tailnet that may not get traffic, and why. */
function refusedIn(
  backends: readonly ResolvedBackend[],
  { meshProblem }: AddressGuard,
): ReadonlyMap<ResolvedEndpoint, Why> {
  const refused = new Map<ResolvedEndpoint, Why>();
  for (const resolved of backends.flatMap(({ endpoints }) => endpoints)) {
    const { externalTarget, meshIP } = resolved.endpoint;
    const why = externalTarget === undefined ? meshProblem(meshIP) : undefined;
    if (why !== undefined) refused.set(resolved, why);
  }
  return refused;
}

function refusedOf(
  backend: ResolvedBackend,
  refused: ReadonlyMap<ResolvedEndpoint, Why>,
): readonly UnusedBackend[] {
  return backend.endpoints.flatMap(resolved => {
    const why = refused.get(resolved);
    return why === undefined ? [] : [unreachableBackend.addressRefused(backend, resolved.endpoint, why)];
  });
}

function externalPlacesOf(
  { endpoint }: ResolvedEndpoint,
  found: ExternalAddresses,
): readonly DialledAddress[] {
  const { externalTarget } = endpoint;
  if (found.are !== 'known' || externalTarget === undefined) return [];
  return found.addresses.map(address => ({ address, port: found.port, externalTarget }));
}

function unresolvedOf(
  backend: ResolvedBackend,
  external: ReadonlyMap<ResolvedEndpoint, ExternalAddresses>,
): readonly UnusedBackend[] {
  return backend.endpoints.flatMap(resolved => {
    const found = external.get(resolved);
    const { endpoint } = resolved;
    switch (found?.are) {
      case undefined:
      case 'known':
        return [];
      case 'missing':
        return [unreachableBackend.notResolved(backend, endpoint, found.why)];
      case 'refused':
        return [unreachableBackend.addressRefused(backend, endpoint, within('externalTarget', found.why))];
      case 'used':
        return [unreachableBackend.sameResolvedAddress(backend, endpoint, found.by)];
    }
  });
}

function pathsIntoMesh(
  { protocol, backends }: ResolvedRule,
  dataPath: DataPathMode,
  resources: Pick<TrafficResources, 'relays'>,
): PathTo {
  if (dataPath === 'Direct') return () => ({ placesOf: resolved => [placeOf(resolved)], unused: [] });
  return protocol === 'UDP' ? pathThroughRelays(backends, resources) : pathThroughProxies;
}

function placeOf({ endpoint: { meshIP, port } }: ResolvedEndpoint): SocketAddress {
  return { address: meshIP, port };
}

function noPath(...unused: readonly UnusedBackend[]): Path {
  return { placesOf: () => [], unused };
}

function pathThroughProxies(backend: ResolvedBackend, tailnet: Kinds['MeshTailnet']): Path {
  const proxies = proxiesOf(tailnet);
  switch (proxies.are) {
    case 'known': {
      const proxyOf = proxySelector(proxies.addresses);
      return {
        placesOf: resolved => {
          const proxy = proxyOf(addressText(resolved.endpoint));
          return proxy ? [{ ...placeOf(resolved), proxy }] : [];
        },
        unused: [],
      };
    }
    case 'unknown':
      return noPath(unreachableBackend.proxyUnknown(backend, tailnet));
    case 'names':
      return noPath(unreachableBackend.proxyNotAnAddress(backend, tailnet.metadata.name, proxies.names));
  }
}

/** Datagrams cannot pass a CONNECT proxy. Each mesh pod relays them, and has a port for each endpoint. */
function pathThroughRelays(
  backends: readonly ResolvedBackend[],
  resources: Pick<TrafficResources, 'relays'>,
): PathTo {
  const ports = relayPortsOf(backends);
  return (backend, tailnet) => {
    if (tailnet.spec.pool.mode === 'External') {
      return noPath(unreachableBackend.datagramsThroughProxy(backend, tailnet));
    }
    if (proxiesOf(tailnet).are === 'unknown')
      return noPath(unreachableBackend.proxyUnknown(backend, tailnet));
    const relays = resources.relays(tailnet.metadata.name);
    const unused = backend.endpoints.flatMap(resolved => {
      const found = ports.get(resolved);
      return found && 'missing' in found
        ? [unreachableBackend.relayPortMissing(backend, resolved.endpoint, found.missing)]
        : [];
    });
    const hasPort = unused.length < backend.endpoints.length;
    if (hasPort && relays?.length === 0) unused.push(unreachableBackend.noRelay(backend, tailnet));
    return {
      placesOf: resolved => {
        const found = ports.get(resolved);
        if (!found || 'missing' in found) return [];
        const relayedTo = placeOf(resolved);
        return (relays ?? []).map(relay => ({ ...relay, port: found.port, relayedTo }));
      },
      unused,
    };
  };
}
