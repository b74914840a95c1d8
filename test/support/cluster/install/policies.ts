import type { KubeObject } from '../../../../lab/kube/object.ts';

type Labels = Readonly<Record<string, string>>;
type Selector = { readonly matchLabels?: Labels };
type Peer = { readonly namespaceSelector?: Selector; readonly podSelector?: Selector };
type Rule = { readonly from: readonly Peer[]; readonly ports: readonly { readonly port: number }[] };
type PolicySpec = { readonly podSelector: Selector; readonly ingress: readonly Rule[] };

/** The fields of a pod that network policies select by. */
export type PolicyPod = { readonly namespace: string; readonly labels: Labels };

/** A connection from one pod to a port of another. */
export type Call = { readonly from: PolicyPod; readonly to: PolicyPod; readonly port: number };

/** Whether these network policies allow a connection; only the fields that our policies have are supported. */
export function isAllowed(policies: readonly KubeObject[], { from, to, port }: Call): boolean {
  const about = policies
    .filter(({ metadata }) => metadata.namespace === to.namespace)
    .map(policy => ({ spec: policy['spec'] as PolicySpec, namespace: policy.metadata.namespace ?? '' }))
    .filter(({ spec }) => matches(spec.podSelector, to.labels));
  if (about.length === 0) return true;
  return about.some(({ spec, namespace }) =>
    spec.ingress.some(
      rule =>
        rule.ports.some(one => one.port === port) && rule.from.some(peer => isPeer(peer, from, namespace)),
    ),
  );
}

function isPeer({ namespaceSelector, podSelector }: Peer, pod: PolicyPod, own: string): boolean {
  const inNamespace = namespaceSelector
    ? matches(namespaceSelector, { 'kubernetes.io/metadata.name': pod.namespace })
    : pod.namespace === own;
  return inNamespace && matches(podSelector ?? {}, pod.labels);
}

function matches({ matchLabels = {} }: Selector, labels: Labels): boolean {
  return Object.entries(matchLabels).every(([name, value]) => labels[name] === value);
}
