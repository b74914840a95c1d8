import { add, append, edit, mistake, testMistakes } from '../../support/tools/mistakes.ts';

testMistakes('check finds nothing in', [
  mistake('an IPv6 address', edit('MeshEndpoints', '100.64.0.11', '"fd7a:115c:a1e0::11"')),
  mistake('the last address of the range', edit('MeshEndpoints', '100.64.0.11', '100.127.255.254')),
  mistake('a port as a hexadecimal number', edit('MeshEndpoints', 'port: 8080', 'port: 0x1F90')),
  mistake('an interval of several units', edit('MeshEndpoints', 'path: /healthz', 'interval: 1m30s')),
  mistake('a weight of an endpoint', append('MeshEndpoints', '      weight: 1')),
  mistake('metadata', append('MeshEndpoints', '      metadata: {region: eu, "example.com/rack": r1}')),
  mistake('an object that is paused', append('MeshEndpoints', '  paused: true')),
  mistake(
    'a route with two hostnames',
    edit('HTTPRoute', '    - web.example.com', '    - web.example.com\n    - "*.example.org"'),
  ),
  mistake(
    'a wildcard of the listener',
    edit('Gateway', 'port: 80\n', 'port: 80\n      hostname: "*.example.com"\n'),
  ),
  mistake('a route without hostnames', edit('HTTPRoute', '  hostnames:\n    - web.example.com\n', '')),
  mistake(
    'a second rule with another path',
    append(
      'HTTPRoute',
      '    - {matches: [{path: {value: /b}}], backendRefs: [{group: mesh-gateway.dev, kind: MeshEndpoints, name: web, port: 8080}]}',
    ),
  ),
  mistake('two references to one object with weights', append('HTTPRoute', '          weight: 9')),
  mistake('objects of others', add('apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {}')),
  mistake(
    'a Secret with a value',
    add(
      'apiVersion: v1\nkind: Secret\nmetadata: {name: mesh-oauth, namespace: mesh-system}\nstringData: {client-id: a, client-secret: b}',
    ),
  ),
  mistake('an empty document', add('# nothing')),
  mistake(
    'labels and annotations',
    edit(
      'MeshEndpoints',
      '  namespace: default',
      '  namespace: default\n  labels: {app: web}\n  annotations: {a: b}',
    ),
  ),
  mistake('a rule with a name', edit('HTTPRoute', '- backendRefs', '- name: main\n      backendRefs')),
  mistake(
    'the name of the listener',
    edit('HTTPRoute', 'name: public', 'name: public\n      sectionName: http'),
  ),
  mistake('a Gateway in another namespace', world =>
    edit(
      'HTTPRoute',
      'name: public',
      'name: public\n      namespace: infra',
    )(
      edit(
        'Gateway',
        'port: 80\n',
        'port: 80\n      allowedRoutes: {namespaces: {from: All}}\n',
      )(edit('Gateway', 'namespace: default', 'namespace: infra')(world)),
    ),
  ),
  mistake(
    'a MeshTailnet that all namespaces may use',
    append('MeshTailnet', '  allowedNamespaces: {from: All}'),
  ),
  mistake(
    'a listener of HTTPS with a Secret that is elsewhere',
    append(
      'Gateway',
      '    - {name: https, protocol: HTTPS, port: 443, tls: {certificateRefs: [{name: public}]}}',
    ),
  ),
  mistake('a server name of its own', world =>
    append(
      'MeshEndpoints',
      '      tls: {serverName: web.example.com}',
    )(edit('MeshEndpoints', 'protocol: HTTP', 'protocol: HTTPS')(world)),
  ),
  mistake('line ends of Windows, and a byte order mark', world =>
    Object.fromEntries(
      Object.entries(world).map(([kind, text]) => [kind, `\uFEFF${text.replaceAll('\n', '\r\n')}`]),
    ),
  ),
  mistake('a List, as kubectl prints it', world => ({
    all: `apiVersion: v1\nkind: List\nitems:\n${Object.values(world)
      .map(text => `  - ${text.trimEnd().replaceAll('\n', '\n    ')}\n`)
      .join('')}`,
  })),
  mistake('an endpoint that is made of another one', world =>
    append(
      'MeshEndpoints',
      '    - {<<: *one, name: web-2, meshIP: 100.64.0.12, meshFQDN: web-2.example.ts.net}',
    )(edit('MeshEndpoints', '- name: web-1', '- &one\n      name: web-1')(world)),
  ),
  mistake(
    'a rule that redirects',
    append(
      'HTTPRoute',
      '    - {matches: [{path: {value: /old}}], filters: [{type: RequestRedirect, requestRedirect: {statusCode: 301, hostname: a.example.com}}]}',
    ),
  ),
  mistake('two listeners of the Gateway, by name', [
    append('Gateway', '    - {name: other, protocol: HTTP, port: 8080}'),
    edit(
      'HTTPRoute',
      '- name: public',
      '- {name: public, sectionName: http}\n    - {name: public, sectionName: other}',
    ),
  ]),
  mistake('a selector for the label that each Namespace has', [
    edit(
      'Gateway',
      'port: 80\n',
      'port: 80\n      allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: default}}}}\n',
    ),
    add('apiVersion: v1\nkind: Namespace\nmetadata: {name: default}'),
  ]),
]);
