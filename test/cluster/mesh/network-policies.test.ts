import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyAll } from '../../../lab/kube/apply.ts';
import { refOf } from '../../../lab/kube/object.ts';
import { podsWith } from '../../../lab/kube/pods.ts';
import { conditionsOf } from '../../../lab/kube/state.ts';
import { waitForAbsence, waitForCondition } from '../../../lab/kube/wait.ts';
import { until } from '../../../lab/process/wait.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { COMPONENTS } from '../../../src/api/names.ts';
import type { Line } from '../../../src/tools/doctor/observed.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { doctorOn } from '../../support/cluster/run-doctor.ts';
import { startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { metricsOfLeader } from '../../support/cluster/install/operator-metrics.ts';
import { enforceServerPolicy } from '../../support/cluster/install/packet-rules.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { valueOf } from '../../support/telemetry/exposition.ts';

const cluster = testCluster();
const OWN = PLACE.system;
const ENFORCED = 'NetworkPoliciesEnforced';

let scene: InstallScene;
let endPolicy: () => Promise<void> = () => Promise.resolve();
beforeAll(async () => {
  const tailnet = await startManagedTailnet(cluster);
  scene = await installScene({ tailnet });
  await applyAll(scene.client, [tailnet.secret, tailnet.tailnetNamed(scene.namespace)]);
});
afterAll(async () => {
  await endPolicy();
  await scene.end();
});

const tailnetRef = () => ({ apiVersion: API_VERSION, kind: 'MeshTailnet', name: scene.namespace });

/** Waits until the condition of the MeshTailnet has a status, and returns it. */
async function enforced(status: 'True' | 'False') {
  const tailnet = await waitForCondition(scene.client, tailnetRef(), ENFORCED, status, 180_000);
  return conditionsOf(tailnet).find(({ type }) => type === ENFORCED);
}

const operators = () => podsWith(scene.client, OWN, { 'app.kubernetes.io/name': COMPONENTS.operator });

/** What doctor prints about network policies. */
async function doctor(): Promise<Line | undefined> {
  const { lines } = await doctorOn(cluster);
  return lines.find(({ check }) => check === 'network-policies');
}

/** Waits until the leader reports a state. */
async function metricShows(state: string): Promise<void> {
  await until(`the metric to show ${state}`, async () => {
    const value = valueOf(await metricsOfLeader(scene.client), 'mesh_gateway_network_policies', { state });
    return value === 1 ? true : undefined;
  });
}

describe('the operator, in a cluster whose network plugin enforces no NetworkPolicies', () => {
  it('finds that out by a connection that they forbid, and doctor warns', async () => {
    printLogsOnFailure(scene.client, OWN);
    const names = (await operators()).map(({ metadata: { name = '' } }) => name);
    const condition = await enforced('False');
    expect(condition).toMatchObject({ reason: 'NotEnforced' });
    expect(names.some(name => condition?.message?.includes(name))).toBe(true);
    await metricShows('not_enforced');
    expect(await doctor()).toMatchObject({
      is: 'warning',
      text: expect.stringContaining('port 5005 of the extension server') as string,
      fix: expect.stringContaining('network plugin') as string,
    });
  });

  it('finds them enforced while iptables rules in the networks of the pods stand for the policy', async () => {
    printLogsOnFailure(scene.client, OWN);
    endPolicy = await enforceServerPolicy(scene.client);
    // A new process needs no minute in which its tries agree, and the reports of those that have ended count no more.
    const ended = (await operators()).map(refOf);
    await Promise.all(ended.map(ref => scene.client.remove(ref)));
    await Promise.all(ended.map(ref => waitForAbsence(scene.client, ref)));
    expect(await enforced('True')).toMatchObject({ reason: ENFORCED });
    await metricShows('enforced');
    expect(await doctor()).toMatchObject({ is: 'ok' });
  });

  it('finds them not enforced once these rules are removed', async () => {
    printLogsOnFailure(scene.client, OWN);
    await endPolicy();
    endPolicy = () => Promise.resolve();
    expect(await enforced('False')).toMatchObject({ reason: 'NotEnforced' });
  });
});
