import { beforeAll, describe, expect, it } from 'vitest';
import type { Protocol } from '../../src/api/generated/types.ts';
import { ROUTE_KINDS } from '../../src/api/key.ts';
import { routeKindsFor } from '../../src/traffic/upstream-protocol.ts';
import { compile } from '../support/library/compile.ts';
import { endpointText, moduleWith, routeText } from '../support/library/modules.ts';

/** Modules by title, each with the expected compiler error: none, or a part of it. */
type Cases = Readonly<Record<string, { readonly text: string; readonly error?: string }>>;

const PROTOCOLS: readonly Protocol[] = ['HTTP', 'HTTPS', 'gRPC', 'TCP', 'TLS', 'UDP'];

const cells: Cases = Object.fromEntries(
  PROTOCOLS.flatMap(protocol =>
    ROUTE_KINDS.map(kind => {
      const text = moduleWith([endpointText('a', 443, protocol)], routeText(kind, 'backend(web, 443)'));
      const kinds = routeKindsFor(protocol);
      if (kinds.includes(kind)) return [`a ${kind} to ${protocol} compiles`, { text }];
      const error = `Type '"${kind} does not support protocol ${protocol} of port 443: use ${kinds.join(' or ')}"' is not assignable to type '"fits"'`;
      return [`a ${kind} to ${protocol} does not compile`, { text, error }];
    }),
  ),
);

const TWO = [endpointText('web-1', 8080, 'HTTP'), endpointText('web-2', 9090, 'HTTP')];
const DNS = [endpointText('udp', 53, 'UDP'), endpointText('tcp', 53, 'TCP')];
const SELECTORS = "tagSelectors: [{ key: 'web', operator: 'Exists' }],";

const declarations: Cases = {
  'a port that is declared': { text: moduleWith(TWO, 'backend(web, 9090);') },
  'a name that is declared': { text: moduleWith(TWO, routeText('HTTPRoute', "backend(web, 'web-2')")) },
  'a port that is not declared': {
    text: moduleWith(TWO, 'backend(web, 8081);'),
    error: `Argument of type '8081' is not assignable to parameter of type '"port 8081 is not declared; declared are 8080 | 9090"'`,
  },
  'a name that is not declared': {
    text: moduleWith(TWO, "backend(web, 'web-3');"),
    error: '"endpoint web-3 is not declared; declared are web-1 | web-2"',
  },
  'a port of many': {
    text: moduleWith(
      Array.from({ length: 12 }, (_, at) => endpointText(`web-${at}`, 8000 + at, 'HTTP')),
      'backend(web, 1);',
    ),
    error:
      '"port 1 is not declared; declared are 8000 | 8001 | 8002 | 8003 | 8004 | 8005 | 8006 | 8007 | 8008 | 8009 | ..."',
  },
  'a port that two endpoints have is reported once': {
    text: moduleWith([endpointText('a', 80, 'HTTP'), endpointText('b', 80, 'HTTP')], 'backend(web, 81);'),
    error: '"port 81 is not declared; declared are 80"',
  },
  'a number that is not a literal': {
    text: moduleWith(TWO, 'declare const port: number; backend(web, port);'),
    error: `Argument of type 'number' is not assignable to parameter of type '8080 | 9090'`,
  },
  'a name that is not a literal': {
    text: moduleWith(TWO, 'declare const name: string; backend(web, name);'),
    error: `Argument of type 'string' is not assignable to parameter of type '"web-1" | "web-2"'`,
  },
  'the protocol of a name': {
    text: moduleWith(DNS.slice(0, 1), routeText('HTTPRoute', "backend(web, 'udp')")),
    error: '"HTTPRoute does not support protocol UDP of port 53: use UDPRoute"',
  },
  'a name whose port is shared by an endpoint that does not fit': {
    text: moduleWith(DNS, routeText('UDPRoute', "backend(web, 'udp')")),
    error: '"UDPRoute does not support protocol TCP of port 53: use TLSRoute or TCPRoute"',
  },
  'one of several backends': {
    text: moduleWith([...TWO, ...DNS], routeText('HTTPRoute', '[backend(web, 8080), backend(web, 53)]')),
    error: 'HTTPRoute does not support protocol UDP of port 53',
  },
  'a backend of a rule': {
    text: moduleWith(
      DNS.slice(0, 1),
      "httpRoute({ metadata: { name: 'a' }, parentRefs: 'public', rules: [{ backendRefs: [backend(web, 53)] }] });",
    ),
    error: 'HTTPRoute does not support protocol UDP of port 53',
  },
  'the backend of a mirror': {
    text: moduleWith(
      [...TWO, ...DNS.slice(0, 1)],
      `httpRoute({ metadata: { name: 'a' }, parentRefs: 'public', rules: {
        filters: [{ type: 'RequestMirror', requestMirror: { backendRef: backend(web, 53) } }],
        backendRefs: backend(web, 8080),
      } });`,
    ),
    error: 'HTTPRoute does not support protocol UDP of port 53',
  },
};

/** A module with two computed endpoints. */
function madeBy(more: string, text: string): string {
  const fields = `name: 'web-' + at, meshIP: '100.64.0.1', meshFQDN: 'web.example.ts.net', ${more}`;
  return moduleWith([], text, `endpoints: [1, 2].map(at => ({ ${fields} } as const)),`);
}

const unknowns: Cases = {
  'computed endpoints with a literal port': {
    text: madeBy("port: 8080, protocol: 'HTTP'", 'backend(web, 8081);'),
    error: '"port 8081 is not declared; declared are 8080"',
  },
  'computed endpoints with a literal protocol': {
    text: madeBy("port: 8080, protocol: 'HTTP'", routeText('UDPRoute', 'backend(web, 8080)')),
    error: 'UDPRoute does not support protocol HTTP of port 8080',
  },
  'endpoints with computed ports, of which any is taken': {
    text: madeBy("port: 8000 + at, protocol: 'HTTP'", routeText('HTTPRoute', 'backend(web, 8001)')),
  },
  'endpoints with computed ports, none of which can fit': {
    text: madeBy("port: 8000 + at, protocol: 'HTTP'", routeText('UDPRoute', 'backend(web, 8001)')),
    error: 'UDPRoute does not support protocol HTTP of port 8001',
  },
  'an object that was made elsewhere': {
    text: `import { backend, udpRoute } from 'mesh-gateway'; import type { authored } from 'mesh-gateway';
      declare const web: authored.MeshEndpoints; declare const port: number;
      ${routeText('UDPRoute', "[backend(web, 53), backend(web, port), backend(web, 'dns')]")}`,
  },
  'a function that declares a service of any name and port': {
    text: `import { backend, httpRoute, meshEndpoints } from 'mesh-gateway';
      export function service(name: string, port: number) {
        const fields = { meshIP: '100.64.0.1', meshFQDN: \`\${name}.example.ts.net\`, protocol: 'HTTP' } as const;
        const one = meshEndpoints({ metadata: { name }, tailnet: 'example.ts.net', endpoints: [{ name, port, ...fields }] });
        return [one, httpRoute({ metadata: { name }, parentRefs: 'public', backendRefs: [backend(one, port), backend(one, name)] })];
      }`,
  },
  'a list that was declared before, and more': {
    text: moduleWith([], 'backend(web, 81);', `endpoints: [...([${TWO.join(', ')}] as const), ${DNS[0]}],`),
    error: '"port 81 is not declared; declared are 8080 | 9090 | 53"',
  },
  'a list of which a part may be there': {
    text: moduleWith(
      [],
      routeText('HTTPRoute', 'backend(web, 9090)'),
      `endpoints: [${TWO[0]}, ...(Math.random() > 0.5 ? [${TWO[1]} as const] : [])],`,
    ),
  },
  'a copy of a backend, which still must fit': {
    text: moduleWith(DNS.slice(0, 1), routeText('HTTPRoute', '{ ...backend(web, 53), weight: 3 }')),
    error: 'HTTPRoute does not support protocol UDP of port 53',
  },
  'discovered endpoints, of any port': {
    text: moduleWith([], routeText('UDPRoute', 'backend(web, 1234)'), SELECTORS),
  },
  'discovered endpoints with the port of the template': {
    text: moduleWith([], 'backend(web, 8081);', `${SELECTORS} endpointTemplate: { port: 8080 },`),
    error: '"port 8081 is not declared; declared are 8080"',
  },
  'discovered endpoints with the protocol of the template': {
    text: moduleWith(
      [],
      routeText('UDPRoute', 'backend(web, 1234)'),
      `${SELECTORS} endpointTemplate: { protocol: 'HTTP' },`,
    ),
    error: 'UDPRoute does not support protocol HTTP of port 1234',
  },
  'a port of discovered endpoints beside declared ones': {
    text: moduleWith(
      TWO,
      `${routeText('HTTPRoute', '[backend(web, 8080), backend(web, 7070)]')}; backend(web, 'web-2');`,
      `${SELECTORS} endpointTemplate: { port: 7070, metadataFromTags: ['region'] },`,
    ),
  },
  'a port that neither declared nor discovered endpoints have': {
    text: moduleWith(TWO, 'backend(web, 81);', `${SELECTORS} endpointTemplate: { port: 7070 },`),
    error: '"port 81 is not declared; declared are 8080 | 9090 | 7070"',
  },
  'discovered endpoints whose protocol does not fit beside declared ones that do': {
    text: moduleWith(
      TWO,
      routeText('HTTPRoute', 'backend(web, 8080)'),
      `${SELECTORS} endpointTemplate: { port: 8080, protocol: 'TCP' },`,
    ),
    error: 'HTTPRoute does not support protocol TCP of port 8080',
  },
  'the name of a discovered endpoint': {
    text: moduleWith([], "backend(web, 'web-1');", SELECTORS),
    error: '"endpoint web-1 is not declared; declared are none"',
  },
  'a template without anything that discovers': {
    text: moduleWith(TWO, 'backend(web, 7070);', 'endpointTemplate: { port: 7070 },'),
    error: '"port 7070 is not declared; declared are 8080 | 9090"',
  },
};

const ROUTE = "metadata: { name: 'a' }, parentRefs: 'public'";
const misspelt: Cases = {
  'a field of an endpoint that is not known': {
    text: moduleWith([endpointText('a', 80, 'HTTP').replace('}', ', healthcheck: {} }')], ''),
    error: '"healthcheck is not a field here"',
  },
  'a field of a check that is not known': {
    text: moduleWith(
      [endpointText('a', 80, 'HTTP').replace('}', ', healthCheck: { enabled: true, pth: 1 } }')],
      '',
    ),
    error: '"pth is not a field here"',
  },
  'a protocol in the wrong case': {
    text: moduleWith([endpointText('a', 80, 'http')], ''),
    error: `Type '"http"' is not assignable to type 'Protocol'. Did you mean '"HTTP"'?`,
  },
  'an endpoint without a port': {
    text: moduleWith([endpointText('a', 80, 'HTTP').replace('port: 80,', '')], ''),
    error: "Property 'port' is missing",
  },
  'a field of a route that is not known': {
    text: moduleWith(TWO, `httpRoute({ ${ROUTE}, hostname: 'a.b', backendRefs: backend(web, 8080) });`),
    error: "'hostname' does not exist in type",
  },
  'a field of a rule that is not known': {
    text: moduleWith(
      TWO,
      `httpRoute({ ${ROUTE}, rules: [{ backendRefs: backend(web, 8080), timeout: {} }] });`,
    ),
    error: "'timeout' does not exist in type",
  },
  'rules and backendRefs': {
    text: moduleWith(TWO, `httpRoute({ ${ROUTE}, backendRefs: backend(web, 8080), rules: [] });`),
    error: 'is not assignable to parameter',
  },
  'a route without backends': {
    text: moduleWith(TWO, `tcpRoute({ ${ROUTE} });`),
    error: "'backendRefs' is missing",
  },
  'a TLSRoute without hostnames': {
    text: moduleWith(
      [endpointText('a', 443, 'TLS')],
      `tlsRoute({ ${ROUTE}, backendRefs: backend(web, 443) });`,
    ),
    error: "'hostnames' is missing",
  },
  'a filter without its settings': {
    text: moduleWith(
      TWO,
      `httpRoute({ ${ROUTE}, rules: { filters: [{ type: 'CORS' }], backendRefs: backend(web, 8080) } });`,
    ),
    error: "'cors' is missing",
  },
  'a filter that gRPC does not have': {
    text: moduleWith(
      [endpointText('a', 80, 'gRPC')],
      `grpcRoute({ ${ROUTE}, rules: { filters: [{ type: 'CORS', cors: {} }], backendRefs: backend(web, 80) } });`,
    ),
    error: `Type '"CORS"' is not assignable to type`,
  },
};

/** A module with a route that has the backends web-home, shop and else, and a TCPRoute that has web-home alone. */
function policyFor(targetRefs: string, backends: string, more = ''): string {
  return `import { backend, httpRoute, meshEndpoints, meshRoutePolicy, tcpRoute } from 'mesh-gateway';
    const home = meshEndpoints({ metadata: { name: 'web-home' }, tailnet: 'example.ts.net', endpoints: [${TWO.join(', ')}] });
    export const route = httpRoute({ metadata: { name: 'web' }, parentRefs: 'public', rules: [
      { name: 'checkout', backendRefs: [backend(home, 8080), { name: 'shop', port: 80 }] },
      { backendRefs: { group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'else', port: 80 } },
    ] });
    export const stream = tcpRoute({ metadata: { name: 'db' }, parentRefs: 'public', backendRefs: backend(home, 8080) });
    declare const name: string;
    export const computed = httpRoute({ metadata: { name }, parentRefs: 'public', backendRefs: [{ name, port: 1 }, { name: 'shop', port: 80 }] });
    meshRoutePolicy({ metadata: { name: 'web' }, targetRefs: ${targetRefs}, failover: { levels: [{ backends: ${backends} }], ${more} } });`;
}

const policies: Cases = {
  'a backend that the route has': { text: policyFor('route', "['web-home', 'shop']") },
  'a backend that the route lacks': {
    text: policyFor('route', "['hom']"),
    error: `Type '"hom"' is not assignable to type 'LevelBackend<"web-home" | "shop" | "else">'`,
  },
  'a backend of another rule of the route': { text: policyFor("{ route, rule: 'checkout' }", "'else'") },
  'a backend that the route of a rule lacks': {
    text: policyFor("{ route, rule: 'checkout' }", "'hom'"),
    error: `Type '"hom"' is not assignable to type 'OneOrMore<LevelBackend<"web-home" | "shop" | "else">>'`,
  },
  'a MeshEndpoints that the route lacks, as in YAML': {
    text: policyFor('route', "{ kind: 'MeshEndpoints', name: 'hom' }"),
    error: `Type '"hom"' is not assignable to type '"web-home" | "shop" | "else" | undefined'`,
  },
  'a backend that both routes have': { text: policyFor('[route, stream]', "'web-home'") },
  'a backend that one of two routes lacks': {
    text: policyFor('[route, stream]', "'shop'"),
    error: `Type '"shop"' is not assignable to type 'OneOrMore<LevelBackend<"web-home">>'`,
  },
  'a Service beyond the route': {
    text: policyFor('route', "{ name: 'web', port: 8080 }", 'healthyPercent: 90'),
  },
  'a Service without a port': {
    text: policyFor('route', "{ name: 'web' }"),
    error: "Property 'port' is missing",
  },
  'any name for a route whose names are not literals': { text: policyFor('computed', "'anything'") },
  'any name for a route that is declared elsewhere': {
    text: policyFor("{ kind: 'HTTPRoute', name: 'a' }", "{ kind: 'MeshEndpoints', name: 'b' }"),
  },
  'the names of the other route where one is declared elsewhere': {
    text: policyFor("[{ kind: 'HTTPRoute', name: 'a' }, stream]", "'shop'"),
    error: `Type '"shop"' is not assignable to type 'OneOrMore<LevelBackend<"web-home">>'`,
  },
  'a field of failover that is not known': {
    text: policyFor('route', "'shop'", 'healthy: 1'),
    error: "'healthy' does not exist in type",
  },
};

const groups = { cells, declarations, unknowns, misspelt, policies };

describe('the compiler', () => {
  const errors = new Map<string, string>();
  beforeAll(() => {
    const cases = Object.values(groups).flatMap(group => Object.entries(group));
    const modules = Object.fromEntries(cases.map(([, { text }], at) => [`case-${at}`, text]));
    const results = compile(modules);
    for (const [at, [name]] of cases.entries()) errors.set(name, results.get(`case-${at}`) ?? 'not compiled');
  });

  for (const [group, cases] of Object.entries(groups)) {
    describe(`on ${group}`, () => {
      it.each(Object.entries(cases).map(([name, { error }]) => ({ name, error })))(
        '$name',
        ({ name, error }) => {
          if (error === undefined) expect(errors.get(name)).toBe('');
          else expect(errors.get(name)).toContain(error);
        },
      );
    });
  }
});
