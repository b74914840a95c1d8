import { describe, expect, it } from 'vitest';
import type { Route } from '../../src/api/objects/gateway-api.ts';
import { GROUP } from '../../src/api/generated/kinds.ts';
import { NAMESPACE } from '../../src/api/names.ts';
import { unusedOfRoute } from '../../src/traffic/endpoints/route-traffic.ts';
import { statusOf } from '../../src/controllers/mesh-endpoints/status.ts';
import type { UnusedReason } from '../../src/api/reasons.ts';
import { endpoint } from '../support/objects.ts';
import { resourceOf } from '../support/store/resources.ts';
import { tracedRoutes } from '../support/tools/routes.ts';
import { CERTIFICATE } from '../support/traffic/certificates.ts';
import {
  reportedIn,
  resourcesFrom,
  resourcesOf,
  trafficOf,
  tlsBudgetsOf,
} from '../support/traffic/resolve.ts';
import {
  backend,
  configMapObject,
  endpointList,
  endpointsObject,
  httpRoute,
  managedTailnet,
  relaysObject,
  routeObject,
  service,
  tailnetObject,
  tlsPolicyObject,
} from '../support/traffic/objects.ts';

const tailnet = tailnetObject();
const route = httpRoute('web', [backend('web')]);
const only = { from: 'Selector', selector: { matchLabels: { team: 'a' } } };
const far = endpointsObject('far/web');
const UDP = 'udproute/default/web/rule/-1';
const udpRoute = routeObject('UDPRoute', 'web', [backend('web')]);
const udp = endpointsObject('web', [endpoint({ protocol: 'UDP' })]);
const udpWithPort = endpointsObject('web', [endpoint({ protocol: 'UDP' })], {
  status: { endpoints: [{ name: 'web', status: 'Healthy', address: '100.64.0.1:8080', relayPort: 20_001 }] },
});
const relays = relaysObject('main', { '10.1.0.1': 'ready' });

const withCaRef = endpointsObject('web', [endpoint({ protocol: 'HTTPS', tls: { caRef: { name: 'ca' } } })]);
const BROKEN = `${CERTIFICATE}-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n`;
const manyAuthorities = endpointList(10, {
  protocol: 'HTTPS',
  tls: { ca: CERTIFICATE.repeat(45) },
});

type Case = {
  readonly reason: UnusedReason;
  readonly world: readonly object[];
  readonly cluster?: string;
  /** The message after the path of the backendRef. */
  readonly message: string;
};

/** At least one case for every reason, with the only message. */
const CASES: readonly Case[] = [
  {
    reason: 'BackendNotFound',
    world: [tailnet, route],
    message: 'MeshEndpoints default/web does not exist: create it, or correct name and namespace',
  },
  {
    reason: 'RefNotPermitted',
    world: [tailnet, far, httpRoute('web', [backend('far/web')])],
    message: `no ReferenceGrant lets any HTTPRoute of namespace default refer to MeshEndpoints far/web: create one in namespace far, from group gateway.networking.k8s.io, kind HTTPRoute, namespace default, to group ${GROUP}, kind MeshEndpoints`,
  },
  {
    reason: 'PortMissing',
    world: [tailnet, endpointsObject('web'), httpRoute('web', [{ ...backend('web'), port: undefined }])],
    message: 'port is missing: set it to a port of MeshEndpoints default/web (it has 8080)',
  },
  {
    reason: 'PortNotFound',
    world: [
      tailnet,
      endpointsObject('web', [...endpointList(2), endpoint({ name: 'tls', port: 443 })]),
      httpRoute('web', [backend('web', { port: 81 })]),
    ],
    message: 'port 81 is not a port of MeshEndpoints default/web: use one that it has (it has 443, 8080)',
  },
  {
    reason: 'ProtocolMismatch',
    world: [tailnet, udp, route],
    message:
      'HTTPRoute does not support protocol UDP of endpoint web of MeshEndpoints default/web: use UDPRoute, or change the protocol (HTTPRoute supports HTTP, HTTPS or gRPC)',
  },
  {
    reason: 'ProtocolConflict',
    world: [
      tailnet,
      endpointsObject('web', [endpoint(), endpoint({ name: 'b', meshIP: '100.64.0.2', protocol: 'gRPC' })]),
      route,
    ],
    message:
      'endpoint b of MeshEndpoints default/web needs HTTP/2, but endpoint web of MeshEndpoints default/web, which comes first, needs HTTP/1.1, and Envoy uses one protocol for all endpoints of a rule: give them rules of their own',
  },
  {
    reason: 'DuplicateAddress',
    world: [tailnet, endpointsObject('web', [endpoint(), endpoint({ name: 'b' })]), route],
    message:
      'endpoint b of MeshEndpoints default/web has the same address and port as endpoint web of MeshEndpoints default/web, which is used: remove one of them',
  },
  {
    reason: 'TailnetNotFound',
    world: [endpointsObject('web'), route],
    message:
      'no MeshTailnet has spec.tailnet example.ts.net, which is that of MeshEndpoints default/web: create one, or correct spec.tailnet of MeshEndpoints default/web',
  },
  {
    reason: 'NamespaceNotAllowed',
    world: [tailnetObject('main', { allowedNamespaces: only }), endpointsObject('web'), route],
    message:
      'spec.allowedNamespaces of MeshTailnet main does not select namespace default: add the labels that it selects to the namespace, or change the selector',
  },
  {
    reason: 'MixedBackends',
    world: [tailnet, udp, routeObject('UDPRoute', 'web', [backend('web'), service()])],
    cluster: UDP,
    message:
      'a UDPRoute cannot mix MeshEndpoints with other backends: keep one kind of backend, or give the others weight 0',
  },
  {
    reason: 'MixedBackends',
    world: [
      tailnet,
      endpointsObject('web', [endpoint({ protocol: 'TCP' })]),
      routeObject('TCPRoute', 'web', [backend('web'), service()]),
      tlsPolicyObject('shop', 'shop'),
    ],
    cluster: 'tcproute/default/web/rule/-1',
    message:
      'a TCPRoute cannot mix MeshEndpoints with other backends than Services, nor with a Service that a BackendTLSPolicy targets: keep one kind of backend, or give the others weight 0',
  },
  {
    reason: 'ExternalTargetNotResolved',
    world: [tailnet, endpointsObject('web', [endpoint({ externalTarget: 'db.example.com:5432' })]), route],
    message:
      'externalTarget db.example.com:5432 of endpoint web of MeshEndpoints default/web has no addresses: the operator has not resolved it yet: check that the operator runs. Where objects have no status, as in files, its addresses are not known',
  },
  {
    reason: 'AddressRefused',
    world: [
      tailnet,
      endpointsObject('web', [endpoint({ externalTarget: 'db.example.com:5432' })], {
        status: {
          endpoints: [
            {
              name: 'web',
              status: 'Healthy',
              externalTarget: 'db.example.com:5432',
              resolvedAddresses: ['127.0.0.1'],
            },
          ],
        },
      }),
      route,
    ],
    message:
      'endpoint web of MeshEndpoints default/web has an address that must get no traffic: externalTarget: 127.0.0.1, an address of db.example.com, is a loopback address, which is never allowed: name another service',
  },
  {
    reason: 'CertificateNotFound',
    world: [tailnet, withCaRef, route],
    message:
      'tls.caRef of endpoint web of MeshEndpoints default/web cannot be used: ConfigMap default/ca does not exist: create it, or correct tls.caRef',
  },
  {
    reason: 'CertificateNotFound',
    world: [tailnet, withCaRef, configMapObject('ca', { 'root.pem': CERTIFICATE }), route],
    message:
      'tls.caRef of endpoint web of MeshEndpoints default/web cannot be used: ConfigMap default/ca has no key ca.crt with text (it has root.pem): add it, or correct tls.caRef.key',
  },
  {
    reason: 'InvalidCertificate',
    world: [tailnet, withCaRef, configMapObject('ca', { 'ca.crt': BROKEN }), route],
    message:
      'tls.caRef of endpoint web of MeshEndpoints default/web cannot be used: key ca.crt of ConfigMap default/ca cannot be read: certificate 2 is malformed: write whole PEM certificates, each from its BEGIN line to its END line',
  },
  {
    reason: 'TooManyTlsSettings',
    world: [tailnet, withCaRef, configMapObject('ca', { 'ca.crt': CERTIFICATE.repeat(500) }), route],
    message:
      'tls.caRef of endpoint web of MeshEndpoints default/web cannot be used: key ca.crt of ConfigMap default/ca exceeds 256 KB: use fewer certificates',
  },
  {
    reason: 'InvalidCertificate',
    world: [tailnet, endpointsObject('web', [endpoint({ protocol: 'HTTPS', tls: { ca: BROKEN } })]), route],
    message:
      'tls.ca of endpoint web of MeshEndpoints default/web cannot be read: certificate 2 is malformed: write whole PEM certificates, each from its BEGIN line to its END line, and nothing else',
  },
  {
    reason: 'TooManyTlsSettings',
    world: [tailnet, endpointsObject('web', manyAuthorities), route],
    message:
      'with endpoint e10 of MeshEndpoints default/web the TLS settings of the rule, certificates included, exceed 256 KB: use equal settings or fewer certificates, or give endpoints rules of their own',
  },
  {
    reason: 'ProxyUnknown',
    world: [tailnetObject('main', { pool: {} }), endpointsObject('web'), route],
    message:
      'MeshTailnet main of MeshEndpoints default/web has no proxy: it has no condition PoolReady, which the operator writes: check that the operator runs. Without a cluster set spec.pool.mode to External, and list your own proxies in spec.pool.addresses',
  },
  {
    reason: 'ProxyNotAnAddress',
    world: [
      tailnetObject('main', { pool: { mode: 'External', addresses: ['proxy.example.com:1055'] } }),
      endpointsObject('web'),
      route,
    ],
    message:
      'spec.pool.addresses of MeshTailnet main of MeshEndpoints default/web has host names only (proxy.example.com:1055), and Envoy needs IP addresses: write IP:port',
  },
  {
    reason: 'DatagramsThroughProxy',
    world: [tailnet, udp, udpRoute],
    cluster: UDP,
    message:
      'MeshEndpoints default/web has UDP endpoints, and the proxies in spec.pool.addresses of MeshTailnet main carry no datagrams: set spec.pool.mode to Managed, which needs a cluster, or run Envoy on the mesh itself, with data path Direct',
  },
  {
    reason: 'RelayPortMissing',
    world: [managedTailnet(), relays, udp, udpRoute],
    cluster: UDP,
    message:
      'endpoint web of MeshEndpoints default/web has no relay port: the operator has assigned none yet: check that the operator runs',
  },
  {
    reason: 'ProxyUnknown',
    world: [managedTailnet(), udpWithPort, udpRoute],
    cluster: UDP,
    message:
      'MeshTailnet main of MeshEndpoints default/web has no relay for UDP: Service mesh-relay-main has no endpoints: check that its mesh pods are ready and have the container relay',
  },
];

describe('an unused backend', () => {
  it.each(CASES)(
    'is reported with the reason $reason, the field and the fix',
    ({ world, cluster, reason, message }) => {
      const { rule, through } = trafficOf(resourcesFrom(world), cluster);
      const reported = reportedIn([...rule.unused, ...through.Proxy.unused]);
      expect(reported).toMatchObject([{ reason, message: `spec.rules[0].backendRefs[0]: ${message}` }]);
    },
  );

  it.each(CASES)(
    'is in the status of its object as trace prints it: $reason',
    ({ world, reason, message }) => {
      const objects = world.map(resourceOf);
      const resources = resourcesOf(objects);
      const routes = objects.filter((object): object is Route => 'parentRefs' in object);
      const named = objects.filter(each => each.kind === 'MeshEndpoints');
      const [{ text } = { text: '' }] = tracedRoutes(world, { podNamespace: NAMESPACE });
      const expected = `${reason}: spec.rules[0].backendRefs[0]: ${message}`;
      expect(text).toContain(expected);
      expect(named).toHaveLength(reason === 'BackendNotFound' ? 0 : 1);
      for (const object of named) {
        const { conditions, routes: statuses } = statusOf({
          object,
          stored: object,
          discovery: { is: 'off' },
          planned: [],
          now: new Date(),
          routes,
          tailnet: undefined,
          isAllowed: false,
          controlURL: undefined,
          verdictOf: () => undefined,
          gateways: [],
          unanchored: undefined,
          unseen: undefined,
          services: undefined,
          unusedOf: each => unusedOfRoute(resources, each, 'Proxy', tlsBudgetsOf(resources)),
        });
        expect(statuses).toMatchObject([{ resolved: false, message: expected }]);
        expect(conditions?.find(({ type }) => type === 'RoutesResolved')).toMatchObject({
          status: 'False',
          reason,
          message: expect.stringContaining(expected) as string,
        });
      }
    },
  );

  it('is reported with its object, and with the endpoint if it is one', () => {
    const far = endpointsObject('web', [
      endpoint(),
      endpoint({ name: 'raw', meshIP: '100.64.0.9', protocol: 'TCP' }),
    ]);
    const { rule } = trafficOf(
      resourcesFrom([tailnet, far, httpRoute('web', [backend('web'), backend('gone')])]),
    );
    expect(rule.unused.map(({ object, endpoint }) => [object, endpoint])).toEqual([
      ['MeshEndpoints/default/web', 'raw'],
      ['MeshEndpoints/default/gone', undefined],
    ]);
  });

  it('does not affect the others', () => {
    const { through } = trafficOf(
      resourcesFrom([tailnet, endpointsObject('web'), httpRoute('web', [backend('gone'), backend('web')])]),
    );
    expect(through.Proxy.assignment.localities).toMatchObject([{ backend: 1, endpoints: [{}] }]);
  });

  it('that is not permitted does not reveal whether the object exists', () => {
    const world = [tailnet, httpRoute('web', [backend('far/web')])];
    const [with_, without] = [trafficOf(resourcesFrom([...world, far])), trafficOf(resourcesFrom(world))];
    expect(with_.rule.unused).toEqual(without.rule.unused);
  });

  it('is not one that is passed through, regardless of its TLS settings', () => {
    const tls = { caRef: { name: 'ca' } };
    const web = endpointsObject('web', [endpoint({ protocol: 'HTTPS', tls })]);
    const raw = routeObject('TLSRoute', 'web', [backend('web')]);
    const { rule, settings } = trafficOf(resourcesFrom([tailnet, web, raw]), 'tlsroute/default/web/rule/-1');
    expect(rule.unused).toEqual([]);
    expect(settings).toMatchObject({ protocol: 'TCP', socketMatches: [{ socket: { is: 'clear' } }] });
  });
});
