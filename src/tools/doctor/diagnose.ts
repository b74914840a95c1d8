import type { ResourceKind } from '../../api/key.ts';
import { formatWithReason, severityOf } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import { SERVED } from '../../kubernetes/served-kinds.ts';
import { COMPONENTS } from '../../api/names.ts';
import { check } from '../check/check.ts';
import { objectOf } from '../check/objects.ts';
import type { TrafficSettings } from '../check/traffic.ts';
import { configuredBy } from '../configuration.ts';
import { checkAccess } from './access.ts';
import { checkCertificates } from './certificates.ts';
import { checkConditions } from './conditions.ts';
import { checkDefinitions, checkKubernetes } from './definitions.ts';
import { checkDns } from './dns.ts';
import { checkEnvoyGateway } from './envoy-gateway.ts';
import { checkRefusals } from './fronts.ts';
import { checkNetwork } from './network-policies.ts';
import { failed, notChecked, ok } from './observed.ts';
import type { Line, Observed } from './observed.ts';
import { checkWorkloads, variableOf } from './workloads.ts';

/** Checks an installation and what it depends on, in the order in which to repair it. */
export function diagnose(observed: Observed): readonly Line[] {
  return [
    checkKubernetes(observed),
    ...checkDefinitions(observed),
    ...checkAccess(observed),
    ...checkWorkloads(observed),
    checkDns(observed),
    ...checkNetwork(observed),
    ...checkEnvoyGateway(observed),
    ...checkConditions(observed),
    ...checkRefusals(observed),
    ...checkCertificates(observed),
    ...routeLines(observed),
  ];
}

/** Of these the lines about conditions have more. */
const OF_CONDITIONS: readonly Reason[] = ['PoolNotReady', 'NoHealthyEndpoints'];

/** What `mesh-gateway check` reports about the routes of the cluster. */
function routeLines({ declarations, deployments }: Observed): readonly Line[] {
  const { findings, objects } = check(declarations, configuredIn(deployments));
  const errors = findings.filter(
    finding => severityOf(finding) === 'error' && !OF_CONDITIONS.includes(finding.reason),
  );
  const unread = findings.flatMap(finding => {
    const { reason, about } = finding;
    // A note is about CRDs, on which no route depends.
    return reason === 'NotRead' && about && severityOf(finding) !== 'note' ? [about.kind] : [];
  });
  const lines = errors.map(finding => {
    const text = `${objectOf(finding) ?? ''}: ${formatWithReason(finding)}`;
    const { reason, about, example } = finding;
    return { ...failed('routes', text, example?.trim()), reason, ...(about && { about }) };
  });
  const plurals = unread.map(kind => SERVED[kind as ResourceKind].plural).join(', ');
  const holes =
    unread.length === 0
      ? []
      : [notChecked('routes', `you have no right to list ${plurals}, on which routes depend`)];
  if (lines.length + holes.length > 0) return [...lines, ...holes];
  return [ok('routes', `mesh-gateway check finds no error in ${objects} objects`)];
}

/** How the extension server is configured, or the defaults where that cannot be read, or where it cannot start with it. */
function configuredIn(deployments: Observed['deployments']): TrafficSettings {
  const settingOf = (name: string) => variableOf(deployments, COMPONENTS.extensionServer, name) ?? '';
  try {
    return configuredBy('doctor', {
      'data-path': settingOf('DATA_PATH') || 'Proxy',
      'external-targets-allow': settingOf('EXTERNAL_TARGETS_ALLOW'),
      'refused-addresses': settingOf('REFUSED_ADDRESSES'),
      'kubernetes-service-host': '',
    });
  } catch {
    return {};
  }
}
