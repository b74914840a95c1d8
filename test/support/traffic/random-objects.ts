import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { GATEWAY_GROUP } from '../../../src/api/objects/gateway-api.ts';
import type { MeshEndpoint } from '../../../src/api/generated/types.ts';
import { NAMESPACE } from '../../../src/api/names.ts';
import { named } from '../declared.ts';
import { endpoint } from '../objects.ts';
import { CERTIFICATE, OTHER_CERTIFICATE } from './certificates.ts';
import {
  backend,
  bindingObject,
  configMapObject,
  endpointsObject,
  grantObject,
  namespaceObject,
  relaysObject,
  routeObject,
  service,
  tailnetObject,
} from './objects.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The clusters that routes of random worlds may have, and some that they never have. */
export const CLUSTERS: readonly string[] = [
  'HTTPRoute',
  'GRPCRoute',
  'TLSRoute',
  'TCPRoute',
  'UDPRoute',
].flatMap(kind => {
  const route = `${kind.toLowerCase()}/default/r`;
  const rules = kind === 'HTTPRoute' || kind === 'GRPCRoute' ? ['0', '1', '7'] : ['-1'];
  return rules.flatMap(rule => [`${route}/rule/${rule}`, `${route}/rule/${rule}/backend/1`]);
});

const [NAMESPACES, NAMES, DOMAINS] = [
  ['default', 'far'],
  ['a', 'b'],
  ['example.ts.net', 'other.ts.net'],
] as const;
const PORTS = [80, 443] as const;
const aNamespace = fc.constantFrom('default', 'default', ...NAMESPACES);
const aName = fc.constantFrom(...NAMES);
const aDomain = fc.constantFrom('example.ts.net', ...DOMAINS);

const BROKEN = '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n';

/** The health checks that a protocol allows, and whether it allows TLS settings. */
const PROTOCOLS: Readonly<Record<string, readonly string[]>> = {
  HTTP: ['HTTP', 'TCP'],
  HTTPS: ['HTTP', 'GRPC', 'TCP'],
  gRPC: ['GRPC', 'TCP'],
  TCP: ['TCP'],
  TLS: ['TCP'],
  UDP: ['UDP'],
};

const someTls = fc.record(
  {
    serverName: fc.constantFrom('e0.example.ts.net', 'shop.example.com'),
    trust: fc.constantFrom(
      { ca: CERTIFICATE },
      { ca: BROKEN },
      { caRef: { name: 'a' } },
      { caRef: { name: 'b', key: 'other' } },
    ),
    insecureSkipVerify: fc.boolean(),
    minVersion: fc.constantFrom('1.2', '1.3'),
  },
  { requiredKeys: [] },
);

const withTrust = ({ trust, ...tls }: { readonly trust?: object }) => ({ ...trust, ...tls });

const anyProtocol = fc.oneof(
  { weight: 3, arbitrary: fc.constant('HTTP') },
  fc.constantFrom(...Object.keys(PROTOCOLS)),
);

const someEndpoint = (aProtocol: Arbitrary<string>) =>
  fc
    .record({
      host: fc.nat(5),
      port: fc.constantFrom(...PORTS),
      protocol: aProtocol,
      tls: fc.option(someTls.map(withTrust), { nil: undefined }),
      check: fc.nat(5),
      path: fc.constantFrom('/', '/up'),
      weight: fc.integer({ min: 1, max: 100 }),
      priority: fc.oneof(fc.constant(0), fc.nat(9)),
      external: fc.nat(9).map(number => ['db.example.com:5432', 'dns.example.com:53'][number]),
    })
    .map(({ host, port, protocol, tls, check, path, weight, priority, external }) => {
      const type = PROTOCOLS[protocol]?.[check];
      const hasTls = ['HTTPS', 'TLS', 'gRPC'].includes(protocol) && tls !== undefined;
      return {
        meshIP: `100.64.0.${host + 1}`,
        meshFQDN: `e${host}.example.ts.net`,
        port,
        protocol,
        weight,
        priority,
        ...(type && { healthCheck: { enabled: true, type, path } }),
        ...(hasTls && { tls }),
        ...(external !== undefined && { externalTarget: external }),
      };
    });

const someStatus = fc.record({
  endpoints: fc.uniqueArray(
    fc.record({
      name: fc.nat(7).map(at => `n${at}`),
      status: fc.constantFrom('Healthy', 'Unhealthy'),
      error: fc.constantFrom('refused', 'not checked yet'),
      relayPort: fc.option(fc.integer({ min: 20_000, max: 20_019 }), { nil: undefined }),
      isStale: fc.nat(7).map(number => number === 0),
      resolvedAddresses: fc.subarray(['1.1.1.1', '8.8.8.8', '2606:4700::1']),
    }),
    { selector: ({ name }) => name, maxLength: 6 },
  ),
});

const objectWith = (aProtocol: Arbitrary<string>) =>
  fc
    .record({
      namespace: aNamespace,
      name: aName,
      tailnet: aDomain,
      endpoints: fc.array(someEndpoint(aProtocol), { minLength: 1, maxLength: 8 }),
      status: fc.option(someStatus, { nil: undefined }),
      isGoing: fc.nat(9),
    })
    .map(({ namespace, name, tailnet, endpoints, status, isGoing }) =>
      endpointsObject(
        `${namespace}/${name}`,
        endpoints.map((fields, at) => endpoint({ ...fields, name: `n${at}` })),
        {
          tailnet,
          ...(status && { status: { endpoints: status.endpoints.map(entry => entryOf(entry, endpoints)) } }),
          ...(isGoing === 0 && { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
        },
      ),
    );

const anObject = objectWith(anyProtocol);

/** An entry of status.endpoints with the address of its endpoint, or of another one. */
function entryOf(
  {
    isStale,
    relayPort,
    resolvedAddresses,
    ...entry
  }: Fields & { readonly name: string; readonly isStale: boolean },
  endpoints: readonly Pick<MeshEndpoint, 'meshIP' | 'port' | 'externalTarget'>[],
): Fields {
  const { meshIP = '100.64.9.9', port = 1, externalTarget } = endpoints[Number(entry.name.slice(1))] ?? {};
  const address = `${isStale ? '100.64.8.8' : meshIP}:${port}`;
  if (externalTarget !== undefined) {
    const resolved = isStale ? 'earlier.example.com:1' : externalTarget;
    return { ...entry, address, externalTarget: resolved, resolvedAddresses };
  }
  return { ...entry, ...(relayPort !== undefined && { relayPort, address }) };
}

const somePool = fc.constantFrom<Fields>(
  {},
  { mode: 'External', addresses: ['10.0.0.1:1055'] },
  { mode: 'External', addresses: ['10.0.0.1:1055', '10.0.0.2:1055', 'proxy.example.com:1055'] },
  { mode: 'External', addresses: ['proxy.example.com:1055'] },
);

const someProxy = fc.option(fc.constantFrom('10.9.0.1:1055', 'name:1055'), { nil: undefined });

const tailnetWith = (aPool: Arbitrary<Fields>, aProxy: Arbitrary<string | undefined>) =>
  fc
    .record({
      name: aName,
      tailnet: aDomain,
      pool: aPool,
      restriction: fc.nat(3),
      creationTimestamp: fc.constantFrom('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'),
      proxyAddress: aProxy,
    })
    .map(({ name, tailnet, pool, restriction, creationTimestamp, proxyAddress }) => {
      const selector = { matchLabels: { team: 'a' } };
      return tailnetObject(name, {
        tailnet,
        pool,
        ...(restriction === 0 && { allowedNamespaces: { from: 'Selector', selector } }),
        metadata: { creationTimestamp },
        ...(proxyAddress !== undefined && { status: { pool: { proxyAddress } } }),
      });
    });

const aTailnet = tailnetWith(somePool, someProxy);

/** Most have ready mesh pods. */
const poolTailnet = tailnetWith(
  fc.oneof({ weight: 6, arbitrary: fc.constant({}) }, somePool),
  fc.oneof({ weight: 6, arbitrary: fc.constant('10.9.0.1:1055') }, someProxy),
);

const meshBackend = fc
  .record({ namespace: aNamespace, name: aName, port: fc.constantFrom(...PORTS), weight: fc.nat(3) })
  .map(({ namespace, name, port, weight }) => backend(`${namespace}/${name}`, { port, weight }));

const aBackend = fc.oneof(
  { weight: 6, arbitrary: meshBackend },
  fc.nat(2).map(weight => service({ weight })),
);

const aRoute = fc
  .record({
    kind: fc.constantFrom('HTTPRoute', 'HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'),
    rules: fc.array(fc.array(aBackend, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 2 }),
  })
  .map(({ kind, rules }) => routeObject(kind, 'r', ...rules));

/** The address of a relay names its MeshTailnet: 10.1.0.x for a, 10.2.0.x for b. Those in other namespaces are 10.9.0.x. */
const relaysOf = (aTailnetName: Arbitrary<(typeof NAMES)[number]>) =>
  fc
    .record({
      tailnet: aTailnetName,
      namespace: fc.constantFrom(NAMESPACE, NAMESPACE, NAMESPACE, 'default'),
      pods: fc.dictionary(
        fc.constantFrom('1', '2', '3'),
        fc.constantFrom('ready', 'ready', 'unready', 'terminating'),
        { minKeys: 1 },
      ),
    })
    .map(({ tailnet, namespace, pods }) => {
      const second = namespace === NAMESPACE ? NAMES.indexOf(tailnet) + 1 : 9;
      const byAddress = Object.entries(pods).map(([last, is]) => [`10.${second}.0.${last}`, is]);
      return relaysObject(tailnet, Object.fromEntries(byAddress) as typeof pods, namespace);
    });

const someRelays = relaysOf(aName);

const aConfigMap = fc
  .record({
    namespace: aNamespace,
    name: aName,
    key: fc.constantFrom('ca.crt', 'other'),
    pem: fc.constantFrom(CERTIFICATE, OTHER_CERTIFICATE, BROKEN),
  })
  .map(({ namespace, name, key, pem }) => configMapObject(`${namespace}/${name}`, { [key]: pem }));

const another = fc.oneof(
  aConfigMap,
  someRelays,
  aNamespace.map(name => grantObject(name)),
  aNamespace.map(name => namespaceObject(name, { team: 'a' })),
  aNamespace.map(name => namespaceObject(name)),
  fc.constantFrom('Proxy', 'Direct').map(mode => bindingObject('public', { dataPath: { mode } })),
  fc.constant(
    named({ apiVersion: `${GATEWAY_GROUP}/v1`, kind: 'Gateway', spec: { gatewayClassName: 'eg' } }, 'public'),
  ),
);

const udpRoute = fc
  .array(fc.array(meshBackend, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 2 })
  .map(rules => routeObject('UDPRoute', 'r', ...rules));

/** Random sets of objects with UDP endpoints, most of them with a relay port. */
export const randomUdpWorld: Arbitrary<readonly object[]> = fc
  .tuple(
    fc.array(poolTailnet, { minLength: 2, maxLength: 3 }),
    fc.array(objectWith(fc.constantFrom('UDP', 'UDP', 'UDP', 'TCP')), { minLength: 3, maxLength: 6 }),
    udpRoute.map(route => [route]),
    fc.tuple(relaysOf(fc.constant('a')), relaysOf(fc.constant('b'))),
    fc.array(another, { maxLength: 2 }),
  )
  .map(lists => lists.flat());

/** Random sets of objects with many references; of several objects with one name the last counts. */
export const randomWorld: Arbitrary<readonly object[]> = fc
  .tuple(
    fc.array(aTailnet, { minLength: 1, maxLength: 3 }),
    fc.array(anObject, { minLength: 2, maxLength: 5 }),
    fc.array(aRoute, { minLength: 1, maxLength: 3 }),
    fc.array(another, { maxLength: 4 }),
  )
  .map(lists => lists.flat());
