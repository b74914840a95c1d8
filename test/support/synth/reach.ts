import type { KubeObject } from '../../../lab/kube/object.ts';
import { areAmong, at, listAt, textsAt } from './parts.ts';

type Texts = Readonly<Record<string, string>>;

/** A pod, by what network policies select it by. */
export type Place = { readonly namespace: string; readonly labels: Texts };

/** A port of a pod, such as `TCP 8080`. */
export type Port = `${'TCP' | 'UDP'} ${number}`;

/** Whether network policies allow a pod to connect to a port of another, as a network plugin judges that. */
export function isAllowed(objects: readonly KubeObject[], from: Place, to: Place, port: Port): boolean {
  const policies = objects.filter(
    ({ kind, metadata, ...object }) =>
      kind === 'NetworkPolicy' &&
      metadata.namespace === to.namespace &&
      selects(at(object, 'spec', 'podSelector'), to.labels),
  );
  if (policies.length === 0) return true;
  return policies.some(policy =>
    listAt(policy, 'spec', 'ingress').some(
      rule =>
        listAt(rule, 'from').some(peer => isPeer(peer, from, to.namespace)) &&
        listAt(rule, 'ports').some(each => isPort(each, port)),
    ),
  );
}

/** Without namespaceSelector a peer is in the namespace of the policy; with both selectors both must match. */
function isPeer(peer: unknown, { namespace, labels }: Place, own: string): boolean {
  const [namespaces, pods] = [at(peer, 'namespaceSelector'), at(peer, 'podSelector')];
  const isThere =
    namespaces === undefined
      ? namespace === own
      : selects(namespaces, { 'kubernetes.io/metadata.name': namespace });
  return isThere && (pods === undefined || selects(pods, labels));
}

function isPort(allowed: unknown, port: Port): boolean {
  const [protocol, number] = port.split(' ');
  const first = Number(at(allowed, 'port'));
  const last = Number(at(allowed, 'endPort') ?? first);
  return at(allowed, 'protocol') === protocol && first <= Number(number) && Number(number) <= last;
}

function selects(selector: unknown, labels: Texts): boolean {
  const others = Object.keys(selector as object).filter(field => field !== 'matchLabels');
  if (others.length > 0) throw new Error(`a selector by ${others.join()} is not judged`);
  return areAmong(textsAt(selector, 'matchLabels'), labels);
}
