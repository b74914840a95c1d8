import { containsIP, familyOf, parseCidr } from '../../api/ip.ts';
import type { Fields } from '../../api/json.ts';
import { COMPONENTS, ENVOY_POD, MESH_POD, PORTS } from '../../api/names.ts';
import { decodeSelector, selects } from '../../api/objects/label-selector.ts';
import { wholeObject, withFields } from '../../api/objects/place.ts';
import { at, failed, hasLabels, listAt, mapAt, nameOf, notChecked, ok, textAt, textsAt } from './observed.ts';
import type { Line, Observed, Reading } from './observed.ts';

type Labels = Readonly<Record<string, string>>;

/** Pods that belong together. */
type Group = { readonly title: string; readonly labels: Labels; readonly pods: Reading };

type Port = { readonly number: number; readonly protocol: 'TCP' | 'UDP' };

/** A connection that mesh-gateway needs. */
type Flow = { readonly check: string; readonly from: Group; readonly to: Group; readonly port: Port };

/** The labels of Envoy Gateway's own pods. */
export const ENVOY_GATEWAY_LABELS: Labels = { 'control-plane': 'envoy-gateway' };

/** The labels of the pods of the cluster's DNS. */
export const DNS_LABELS: Labels = { 'k8s-app': 'kube-dns' };

/** Whether NetworkPolicies let each connection through, and the cluster's DNS runs. */
export function checkNetwork(observed: Observed): readonly Line[] {
  const all = flowsIn(observed);
  return [...new Set(all.map(({ check }) => check))].flatMap(check => {
    const flows = all.filter(flow => flow.check === check);
    const { lines, skipped } = linesOf(flows, observed);
    return lines.length > 0
      ? lines
      : [skipped.length > 0 ? notChecked(check, skipped.join('; ')) : opened(flows)];
  });
}

function flowsIn({ pods, envoyGatewayPods, envoys, dnsPods }: Observed): readonly Flow[] {
  const component = (name: string): Group => ({
    title: name,
    labels: { 'app.kubernetes.io/name': name },
    pods,
  });
  const [operator, server] = [component(COMPONENTS.operator), component(COMPONENTS.extensionServer)];
  const gateway: Group = { title: 'Envoy Gateway', labels: ENVOY_GATEWAY_LABELS, pods: envoyGatewayPods };
  const envoy: Group = { title: 'Envoy', labels: ENVOY_POD.labels, pods: envoys };
  const mesh: Group = { title: 'mesh pods', labels: MESH_POD.labels, pods };
  const dns: Group = { title: 'DNS', labels: DNS_LABELS, pods: dnsPods };
  const flow = (from: Group, to: Group, number: number, protocol: Port['protocol'] = 'TCP'): Flow => ({
    check: `port-${number}`,
    from,
    to,
    port: { number, protocol },
  });
  const { proxy, metrics } = MESH_POD.ports;
  return [
    ...[gateway, envoy].map(from => flow(from, server, PORTS.grpc)),
    ...[envoy, operator].map(from => flow(from, mesh, proxy)),
    flow(operator, mesh, metrics),
    ...[operator, gateway, envoy].map(from => flow(from, dns, 53, 'UDP')),
  ];
}

type Judged = { readonly lines: readonly Line[]; readonly skipped: readonly string[] };

function linesOf(flows: readonly Flow[], observed: Observed): Judged {
  const { policies } = observed;
  if (!policies.items) return { lines: [], skipped: [policies.why] };
  const lines: Line[] = [];
  const skipped = new Set<string>();
  for (const flow of flows) {
    const missing = [flow.from, flow.to].filter(group => podsOf(group).length === 0);
    for (const { title, pods } of missing) skipped.add(pods.why ?? `no pod of ${title} runs`);
    const block = missing.length === 0 && blockOf(flow, policies.items, namespacesIn(observed));
    if (block) lines.push(block);
  }
  return { lines, skipped: [...skipped] };
}

function opened(flows: readonly Flow[]): Line {
  const [first] = flows;
  const clients = [...new Set(flows.map(({ from }) => from.title))].join(' and ');
  const check = first?.check ?? '';
  return ok(check, `no NetworkPolicy keeps ${clients} from ${first?.to.title ?? ''}`);
}

/** Pods that have an address; those of the host's network are subject to no policy. */
function podsOf({ pods: { items = [] }, labels }: Group): readonly Fields[] {
  return items.filter(
    pod =>
      hasLabels(pod, labels) &&
      textAt(pod, 'status', 'podIP') !== '' &&
      at(pod, 'metadata', 'deletionTimestamp') === undefined &&
      at(pod, 'spec', 'hostNetwork') !== true,
  );
}

function namespacesIn({ declarations }: Observed): ReadonlyMap<string, Labels> {
  return new Map(
    declarations.objects
      .filter(({ fields }) => fields['kind'] === 'Namespace')
      .map(({ fields }) => [textAt(fields, 'metadata', 'name'), mapAt(fields, 'metadata', 'labels')]),
  );
}

/** The first pair of pods that policies keep apart, with a policy that opens the way: policies add up. */
function blockOf(
  { check, from, to, port }: Flow,
  policies: readonly Fields[],
  namespaces: ReadonlyMap<string, Labels>,
): Line | undefined {
  for (const source of podsOf(from)) {
    for (const target of podsOf(to)) {
      const pair = { source, target, port, namespaces };
      const direction = (['Ingress', 'Egress'] as const).find(
        each => blockers(each, pair, policies).length > 0,
      );
      if (!direction) continue;
      const names = blockers(direction, pair, policies).map(nameOf).join(', ');
      const text = `${from.title} (pod ${nameOf(source)}) cannot connect to ${to.title} (pod ${nameOf(target)}) on port ${port.number}: NetworkPolicy ${names} does not permit it`;
      const ends = {
        name: `mesh-${direction.toLowerCase()}-${port.number}-from-${from.title.toLowerCase().replaceAll(' ', '-')}`,
        source: { namespace: namespaceOf(source), labels: from.labels },
        target: { namespace: namespaceOf(target), labels: to.labels },
      };
      return failed(check, text, policyFor(direction, ends, port));
    }
  }
  return undefined;
}

type Direction = 'Ingress' | 'Egress';

type Pair = {
  readonly source: Fields;
  readonly target: Fields;
  readonly port: Port;
  readonly namespaces: ReadonlyMap<string, Labels>;
};

/** The policies that apply in a direction, where none of them permits the connection. */
function blockers(direction: Direction, pair: Pair, policies: readonly Fields[]): readonly Fields[] {
  const [subject, peer] = direction === 'Ingress' ? [pair.target, pair.source] : [pair.source, pair.target];
  const applied = policies.filter(
    policy =>
      namespaceOf(policy) === namespaceOf(subject) &&
      typesOf(policy).includes(direction) &&
      selectsLabels(at(policy, 'spec', 'podSelector'), labelsOf(subject)),
  );
  const [list, peers] = direction === 'Ingress' ? ['ingress', 'from'] : ['egress', 'to'];
  const isPermitted = applied.some(policy =>
    listAt(policy, 'spec', list).some(
      rule => hasPort(rule, pair) && hasPeer(listAt(rule, peers), peer, namespaceOf(policy), pair.namespaces),
    ),
  );
  return isPermitted ? [] : applied;
}

function typesOf(policy: Fields): readonly string[] {
  const types = textsAt(policy, 'spec', 'policyTypes');
  if (types.length > 0) return types;
  return at(policy, 'spec', 'egress') === undefined ? ['Ingress'] : ['Ingress', 'Egress'];
}

function hasPort(rule: Fields, { target, port }: Pair): boolean {
  const ports = listAt(rule, 'ports');
  if (ports.length === 0) return true;
  return ports.some(each => {
    if ((textAt(each, 'protocol') || 'TCP') !== port.protocol) return false;
    const { port: first, endPort } = each;
    if (first === undefined) return true;
    if (typeof first === 'string') return numberOfPort(target, first) === port.number;
    const last = typeof endPort === 'number' ? endPort : first;
    return typeof first === 'number' && first <= port.number && port.number <= (last as number);
  });
}

function numberOfPort(pod: Fields, name: string): unknown {
  const ports = listAt(pod, 'spec', 'containers').flatMap(container => listAt(container, 'ports'));
  return ports.find(each => each['name'] === name)?.['containerPort'];
}

function hasPeer(
  peers: readonly Fields[],
  pod: Fields,
  ownNamespace: string,
  namespaces: ReadonlyMap<string, Labels>,
): boolean {
  if (peers.length === 0) return true;
  const namespace = namespaceOf(pod);
  return peers.some(({ ipBlock, podSelector, namespaceSelector }) => {
    if (ipBlock !== undefined) return isInBlock(ipBlock, textAt(pod, 'status', 'podIP'));
    const labels = { ...namespaces.get(namespace), 'kubernetes.io/metadata.name': namespace };
    const isNamespace =
      namespaceSelector === undefined ? namespace === ownNamespace : selectsLabels(namespaceSelector, labels);
    return isNamespace && (podSelector === undefined || selectsLabels(podSelector, labelsOf(pod)));
  });
}

function isInBlock(block: unknown, address: string): boolean {
  const contains = (cidr: string) => familyOf(address) !== undefined && containsIP(parseCidr(cidr), address);
  return contains(textAt(block, 'cidr')) && !textsAt(block, 'except').some(contains);
}

function selectsLabels(selector: unknown, labels: Labels): boolean {
  return selects(decodeSelector(withFields(wholeObject(selector ?? {}))), labels);
}

function labelsOf(object: Fields): Labels {
  return mapAt(object, 'metadata', 'labels');
}

function namespaceOf(object: Fields): string {
  return textAt(object, 'metadata', 'namespace');
}

type End = { readonly namespace: string; readonly labels: Labels };

/** A policy that permits a connection, as YAML. */
function policyFor(
  direction: Direction,
  { name, source, target }: { readonly name: string; readonly source: End; readonly target: End },
  { number, protocol }: Port,
): string {
  const [subject, peer] = direction === 'Ingress' ? [target, source] : [source, target];
  const [list, peers] = direction === 'Ingress' ? ['ingress', 'from'] : ['egress', 'to'];
  return `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: ${name}
  namespace: ${subject.namespace}
spec:
  podSelector:
    matchLabels: ${JSON.stringify(subject.labels)}
  policyTypes: [${direction}]
  ${list}:
    - ${peers}:
        - namespaceSelector:
            matchLabels: {kubernetes.io/metadata.name: ${peer.namespace}}
          podSelector:
            matchLabels: ${JSON.stringify(peer.labels)}
      ports:
        - {protocol: ${protocol}, port: ${number}}`;
}
