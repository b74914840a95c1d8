import { expectedAddress } from './envoy-gateway.ts';
import { failed, hasLabels, isReady, mapAt, notChecked, ok } from './observed.ts';
import type { Line, Observed } from './observed.ts';
import { DNS_LABELS } from './network-policies.ts';

/** The namespace of the cluster's DNS. */
export const DNS_NAMESPACE = 'kube-system';

/** Whether the cluster's DNS runs, and has the domain in which the extension server is looked up. */
export function checkDns(observed: Observed): Line {
  const { dnsPods, dnsConfig } = observed;
  const check = 'dns';
  if (!dnsPods.items) return notChecked(check, dnsPods.why);
  const pods = dnsPods.items.filter(pod => hasLabels(pod, DNS_LABELS));
  if (pods.length === 0)
    return notChecked(check, `no pod of namespace ${DNS_NAMESPACE} has the label k8s-app=kube-dns`);
  const ready = pods.filter(isReady);
  if (ready.length === 0) {
    const fix = `kubectl -n ${DNS_NAMESPACE} describe pods -l k8s-app=kube-dns`;
    return failed(
      check,
      `no pod of the cluster's DNS is ready (${pods.length} exist), so no name resolves`,
      fix,
    );
  }
  const host = expectedAddress(observed).replace(/:\d+$/, '');
  const domains = domainsIn(mapAt(dnsConfig.items?.[0], 'data')['Corefile'] ?? '');
  if (domains.length > 0 && !domains.some(domain => host.endsWith(`.svc.${domain}`))) {
    const text = `the extension server is looked up as ${host}, and the domain of the cluster is ${domains.join(' or ')}`;
    const fix = `set clusterDomain: ${domains[0] ?? ''} in the configuration of mesh-gateway synth, and apply its manifests`;
    return failed(check, text, fix);
  }
  const domain =
    domains.length === 0 ? '; the domain of the cluster is not known' : `, for ${domains.join(' and ')}`;
  return ok(check, `${ready.length} of ${pods.length} pods of the cluster's DNS are ready${domain}`);
}

/** The zones that CoreDNS answers from the cluster, without those of addresses. */
function domainsIn(corefile: string): readonly string[] {
  return [...corefile.matchAll(/^\s*kubernetes[ \t]+([^{\n]+)/gm)]
    .flatMap(([, zones = '']) => zones.trim().split(/\s+/))
    .filter(zone => !/\.arpa\.?$/.test(zone) && zone !== '')
    .map(zone => zone.replace(/\.$/, ''));
}
