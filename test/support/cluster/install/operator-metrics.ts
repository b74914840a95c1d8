import type { KubeClient } from '../../../../lab/kube/client.ts';
import { podsWith } from '../../../../lab/kube/pods.ts';
import { until } from '../../../../lab/process/wait.ts';
import { COMPONENTS, NAMESPACE } from '../../../../src/api/names.ts';
import { parseExposition } from '../../telemetry/exposition.ts';
import type { Family } from '../../telemetry/exposition.ts';

/** The metrics of the operator pod that is the leader, by their names. */
export function metricsOfLeader(client: KubeClient): Promise<ReadonlyMap<string, Family>> {
  return until('the metrics of the leader', async () => {
    const pods = await podsWith(client, NAMESPACE, { 'app.kubernetes.io/name': COMPONENTS.operator });
    const texts = pods.map(async ({ status }) => {
      const { podIP = '' } = status as { readonly podIP?: string };
      const response = await fetch(`http://${podIP}:8080/metrics`).catch(() => undefined);
      return (await response?.text()) ?? '';
    });
    const text = (await Promise.all(texts)).find(each => LEADS.test(each));
    return text === undefined ? undefined : parseExposition(text);
  });
}

const LEADS = /^leader_election_master_status\{.*\} 1$/m;
