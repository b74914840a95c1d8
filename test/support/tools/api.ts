import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { SERVED } from '../../../src/kubernetes/served-kinds.ts';
import type { Right } from '../../../src/tools/doctor/access.ts';
import { kubeconfigText, makeFiles } from '../kubernetes/wire-kubeconfig.ts';
import { ACCOUNTS, missingIn, NOW } from './installation.ts';
import type { Installation, Json } from './installation.ts';
import { servePortForwards } from './port-forward.ts';
import type { RunCommand } from './port-forward.ts';

/** Where each reading of an installation is served. */
const PATHS: Readonly<Record<Exclude<keyof Installation, 'declared' | 'roles'>, RegExp>> = {
  kubernetes: /^\/version$/,
  definitions: /^\/apis\/apiextensions\.k8s\.io\/v1\/customresourcedefinitions\//,
  deployments: /^\/apis\/apps\/v1\/namespaces\/mesh-system\/deployments$/,
  statefulSets: /\/mesh-system\/statefulsets$/,
  pods: /^\/api\/v1\/namespaces\/mesh-system\/pods$/,
  quotas: /\/mesh-system\/resourcequotas$/,
  refusals: /\/mesh-system\/events$/,
  lease: /\/mesh-system\/leases\/mesh-operator$/,
  trust: /\/mesh-system\/configmaps\/mesh-trust$/,
  envoyGateways: /\/envoy-gateway-system\/deployments$/,
  envoyGatewayPods: /\/envoy-gateway-system\/pods$/,
  envoyGatewayConfig: /\/envoy-gateway-system\/configmaps\/envoy-gateway-config$/,
  envoys: /^\/api\/v1\/pods$/,
  policies: /\/networkpolicies$/,
  dnsPods: /\/kube-system\/pods$/,
  dnsConfig: /\/kube-system\/configmaps\/coredns$/,
};

const LISTS = /\/(deployments|statefulsets|pods|resourcequotas|events|networkpolicies)$/;

/** An API server on loopback with the objects of an installation, texts of its pods by the rest of their paths, ports of loopback in place of theirs, and commands in them; returns the file with its address. */
export async function serveInstallation(
  installation: Installation,
  refused: (path: string) => boolean = () => false,
  texts: Readonly<Record<string, string>> = {},
  portOf: (pod: string, port: number) => number = () => 0,
  run?: RunCommand,
): Promise<string> {
  const server = createServer((request, response) => {
    void text(request).then(body => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
      const plain = texts[pathname.split('/pods/')[1] ?? ''];
      if (plain !== undefined && !refused(pathname)) {
        response.writeHead(200, { 'content-type': 'text/plain' }).end(plain);
        return;
      }
      const [code, value] = refused(pathname)
        ? [403, { kind: 'Status', message: `no right to read ${pathname}` }]
        : answerTo(pathname, body, installation, searchParams.get('labelSelector') ?? '');
      response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    });
  });
  servePortForwards(server, portOf, refused, run);
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return makeFiles().write('config', kubeconfigText({ cluster: { server: `http://127.0.0.1:${port}` } }));
}

function answerTo(
  path: string,
  body: string,
  installation: Installation,
  selector: string,
): readonly [number, unknown] {
  if (path.endsWith('/selfsubjectreviews'))
    return [201, { metadata: { creationTimestamp: NOW.toISOString() } }];
  if (path.endsWith('/subjectaccessreviews')) return [201, reviewOf(body, installation)];
  const rbac = /\/rbac\.authorization\.k8s\.io\/v1(?:\/namespaces\/[^/]+)?\/(.*)s$/.exec(path)?.[1];
  if (rbac !== undefined)
    return [200, { items: installation.roles.filter(({ kind }) => String(kind).toLowerCase() === rbac) }];
  const name = (Object.keys(PATHS) as readonly (keyof typeof PATHS)[]).find(each => PATHS[each].test(path));
  if (name === undefined) return listOf(path, installation);
  const items: readonly Json[] = installation[name];
  if (LISTS.test(path)) return [200, { items: items.filter(item => isSelected(item, selector)) }];
  const last = decodeURIComponent(path.split('/').at(-1) ?? '');
  const one =
    name === 'definitions' ? items.find(each => (each['metadata'] as Json)['name'] === last) : items[0];
  return one ? [200, one] : [404, { kind: 'Status', message: 'not found' }];
}

function isSelected(item: Json, selector: string): boolean {
  const labels = (item['metadata'] as Json)['labels'] as Json | undefined;
  const pairs = selector.split(',').filter(Boolean);
  return pairs.every(pair => {
    const [name = '', value] = pair.split('=');
    return labels?.[name] === value;
  });
}

/** A list of a kind that `check` reads. */
function listOf(path: string, { declared }: Installation): readonly [number, unknown] {
  const found = Object.entries(SERVED).find(([, { plural }]) => path.endsWith(`/${plural}`));
  if (!found) return [404, { kind: 'Status', message: 'not found' }];
  return [200, { items: declared.filter(({ kind }) => kind === found[0]) }];
}

function reviewOf(body: string, { roles }: Installation): object {
  const { spec } = JSON.parse(body) as {
    readonly spec: {
      readonly user: string;
      readonly resourceAttributes: Right & { readonly subresource?: string };
    };
  };
  const { subresource, ...attributes } = spec.resourceAttributes;
  const resource = [attributes.resource, subresource].filter(Boolean).join('/');
  const account = ACCOUNTS.find(({ name }) => spec.user.endsWith(`:${name}`));
  const allowed =
    account !== undefined &&
    missingIn(roles, { ...account, rights: [{ ...attributes, resource }] }).length === 0;
  return { status: { allowed } };
}
