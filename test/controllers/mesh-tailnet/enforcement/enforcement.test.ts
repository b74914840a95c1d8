import { describe, expect, it } from 'vitest';
import {
  startEnforcement,
  withoutPolicies,
} from '../../../../src/controllers/mesh-tailnet/enforcement/enforcement.ts';
import { readEnforcementGauge } from '../../../../src/controllers/mesh-tailnet/enforcement/gauges.ts';
import { formatReport } from '../../../../src/controllers/mesh-tailnet/enforcement/verdict.ts';
import type { Outcome } from '../../../../src/controllers/mesh-tailnet/enforcement/verdict.ts';
import type { ComponentPod, Replicas } from '../../../../src/store/replicas.ts';
import { ResourceError } from '../../../../src/store/resources.ts';
import { ResourceStore } from '../../../../src/store/store.ts';
import { networkPolicyMetrics } from '../../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../../src/telemetry/registry.ts';
import { podOf } from '../../../support/controllers/mesh-tailnet/mesh-pods.ts';
import { parseExposition, valueOf } from '../../../support/telemetry/exposition.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const START = Date.UTC(2026, 0, 15, 12);
const [SERVER, MESH_POD] = ['10.0.0.5', '10.0.0.9'];

/** A cluster with mesh pods and an extension server, in which tests decide what the network does. */
class PolicedCluster implements Replicas {
  readonly clock = new VirtualClock();
  readonly lines: string[] = [];
  readonly connections: string[] = [];
  readonly store = new ResourceStore([], error => {
    throw error;
  });
  texts: Readonly<Record<string, string>> = {};
  running: ComponentPod[] = [
    { component: 'extensionServer', name: 'server', uid: 's', address: SERVER, isReady: true },
  ];
  /** How connections to port 5005 end, by the pod from which they come. */
  forbidden: (from: string) => Outcome = () => 'timed-out';
  permitted: Outcome = 'accepted';
  isDown = false;
  writes = 0;

  constructor({ hasMeshPod = true } = {}) {
    if (hasMeshPod) this.addMeshPod();
    this.store.markSynced();
  }

  addMeshPod(): void {
    const pod = podOf('meshd-example-0', { isReady: true });
    this.store.put({ ...pod, status: { ...pod.status, addresses: [MESH_POD] } });
  }

  /** Runs a replica of the operator. */
  run(name: string) {
    this.running.push({ component: 'operator', name, uid: name, address: '10.0.0.1', isReady: true });
    const { clock } = this;
    return startEnforcement({
      read: this.store,
      replicas: this,
      podName: name,
      clock,
      now: () => this.now(),
      log: { info: text => void this.lines.push(text), warn: text => void this.lines.push(text) },
      connect: (address, port) => {
        this.connections.push(`${name} ${address}:${port}`);
        return Promise.resolve(address === SERVER ? this.forbidden(name) : this.permitted);
      },
    });
  }

  now(): Date {
    return new Date(START + this.clock.now());
  }

  async seconds(count: number): Promise<void> {
    await this.clock.advance(count * 1000);
  }

  end(name: string): void {
    this.running = this.running.filter(pod => pod.name !== name);
  }

  pods(): Promise<readonly ComponentPod[]> {
    return this.#answer([...this.running]);
  }

  reports(): Promise<Readonly<Record<string, string>>> {
    return this.#answer(this.texts);
  }

  report(changes: Readonly<Record<string, string | null>>): Promise<void> {
    this.writes++;
    const entries = Object.entries({ ...this.texts, ...changes });
    this.texts = Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== null));
    return this.#answer(undefined);
  }

  #answer<T>(value: T): Promise<T> {
    if (this.isDown) return Promise.reject(new ResourceError('Unavailable', 'no API server'));
    return Promise.resolve(value);
  }
}

describe('a replica of the operator', () => {
  it('finds policies that are not enforced soon after its start', async () => {
    const cluster = new PolicedCluster();
    cluster.forbidden = () => 'accepted';
    const one = cluster.run('operator-1');
    expect(one.finding()).toEqual({ enforcement: 'unknown', reason: 'NotTried', pods: ['operator-1'] });
    await cluster.seconds(1);
    expect(one.finding()).toEqual({
      enforcement: 'not-enforced',
      reason: 'NotEnforced',
      pods: ['operator-1'],
    });
    expect(cluster.lines).toEqual(['network policies are not enforced']);
    expect(cluster.connections).toEqual([`operator-1 ${MESH_POD}:9002`, `operator-1 ${SERVER}:5005`]);
  });

  it('finds policies that are enforced once it has tried twice', async () => {
    const cluster = new PolicedCluster();
    const one = cluster.run('operator-1');
    await cluster.seconds(9);
    expect(one.current()).toBeUndefined();
    await cluster.seconds(2);
    expect(one.current()).toBe('enforced');
  });

  it('has no state for two minutes at most after its start while it cannot try', async () => {
    const cluster = new PolicedCluster();
    cluster.forbidden = () => 'failed';
    const one = cluster.run('operator-1');
    const seen: unknown[] = [];
    one.subscribe(() => void seen.push(one.current()));
    await cluster.seconds(115);
    expect([one.current(), one.finding().enforcement]).toEqual([undefined, 'unknown']);
    await cluster.seconds(75);
    expect([one.current(), ...seen]).toEqual(['unknown', 'unknown']);
  });

  it('notifies others of each change, and of nothing else', async () => {
    const cluster = new PolicedCluster();
    const one = cluster.run('operator-1');
    const seen: unknown[] = [];
    const end = one.subscribe(() => void seen.push(one.current()));
    await cluster.seconds(600);
    cluster.forbidden = () => 'accepted';
    await cluster.seconds(600);
    end();
    cluster.forbidden = () => 'timed-out';
    await cluster.seconds(600);
    expect(seen).toEqual(['enforced', 'not-enforced']);
    expect(one.current()).toBe('enforced');
  });

  it('waits for a mesh pod, without any request until there is one', async () => {
    const cluster = new PolicedCluster({ hasMeshPod: false });
    const one = cluster.run('operator-1');
    await cluster.seconds(600);
    expect(one.finding().reason).toBe('NoMeshPod');
    expect([cluster.connections, cluster.writes]).toEqual([[], 0]);
    cluster.addMeshPod();
    await cluster.seconds(25);
    expect(one.current()).toBe('enforced');
  });

  it('tries each minute while nothing changes, and renews its report every two', async () => {
    const cluster = new PolicedCluster();
    cluster.run('operator-1');
    await cluster.seconds(600);
    const [connections, writes] = [cluster.connections.length, cluster.writes];
    await cluster.seconds(1200);
    expect(cluster.connections.length - connections).toBe(2 * 20);
    expect(cluster.writes - writes).toBe(10);
  });

  it.each<readonly [string, (cluster: PolicedCluster) => void]>([
    [
      'that ends while it connects',
      cluster => {
        cluster.forbidden = () => {
          cluster.end('server');
          return 'timed-out';
        };
      },
    ],
    [
      'that is not ready',
      cluster => {
        cluster.running = cluster.running.map(pod => ({ ...pod, isReady: pod.component === 'operator' }));
      },
    ],
    [
      'without an address of its own',
      cluster => {
        cluster.running = cluster.running.map(pod => ({ ...pod, address: undefined }));
      },
    ],
  ])('concludes nothing from an extension server %s', async (_what, change) => {
    const cluster = new PolicedCluster();
    const one = cluster.run('operator-1');
    change(cluster);
    await cluster.seconds(60);
    expect(one.finding()).toMatchObject({ enforcement: 'unknown', reason: 'NoExtensionServer' });
  });

  it('concludes nothing from a network that is down', async () => {
    const cluster = new PolicedCluster();
    cluster.permitted = 'timed-out';
    const one = cluster.run('operator-1');
    await cluster.seconds(60);
    expect(one.finding()).toMatchObject({ enforcement: 'unknown', reason: 'Unreachable' });
  });

  it('keeps what it has found for five minutes while the API server is down', async () => {
    const cluster = new PolicedCluster();
    cluster.forbidden = () => 'accepted';
    const one = cluster.run('operator-1');
    await cluster.seconds(1);
    cluster.isDown = true;
    await cluster.seconds(240);
    expect(one.current()).toBe('not-enforced');
    await cluster.seconds(120);
    expect(one.current()).toBe('unknown');
    cluster.isDown = false;
    await cluster.seconds(60);
    expect(one.current()).toBe('not-enforced');
  });

  it('tries nothing once it is stopped', async () => {
    const cluster = new PolicedCluster();
    const one = cluster.run('operator-1');
    await cluster.seconds(1);
    one.stop();
    const { length } = cluster.connections;
    await cluster.seconds(600);
    expect(cluster.connections).toHaveLength(length);
    expect(cluster.clock.timers).toBe(0);
  });
});

describe('several replicas', () => {
  it('all have the worst of what they find', async () => {
    const cluster = new PolicedCluster();
    cluster.forbidden = from => (from === 'operator-2' ? 'accepted' : 'timed-out');
    const all = [cluster.run('operator-1'), cluster.run('operator-2')];
    await cluster.seconds(60);
    for (const each of all)
      expect(each.finding()).toEqual({
        enforcement: 'not-enforced',
        reason: 'NotEnforced',
        pods: ['operator-2'],
      });
    cluster.forbidden = () => 'timed-out';
    await cluster.seconds(300);
    for (const each of all)
      expect(each.finding()).toMatchObject({ enforcement: 'enforced', pods: ['operator-1', 'operator-2'] });
  });

  it('wait for the report of one that is ready, such as of an earlier version', async () => {
    const cluster = new PolicedCluster();
    const one = cluster.run('operator-1');
    cluster.running.push({
      component: 'operator',
      name: 'older',
      uid: 'o',
      address: undefined,
      isReady: true,
    });
    await cluster.seconds(60);
    expect(one.finding()).toEqual({ enforcement: 'unknown', reason: 'NotTried', pods: ['older'] });
    await cluster.seconds(120);
    expect(one.finding()).toEqual({ enforcement: 'unknown', reason: 'NotReported', pods: ['older'] });
    cluster.end('older');
    await cluster.seconds(60);
    expect(one.current()).toBe('enforced');
  });

  it('forget what others have found once there is no mesh pod', async () => {
    const cluster = new PolicedCluster();
    cluster.forbidden = from => (from === 'operator-2' ? 'accepted' : 'timed-out');
    const [one] = [cluster.run('operator-1'), cluster.run('operator-2')];
    await cluster.seconds(60);
    cluster.store.remove({ kind: 'Pod', namespace: 'mesh-system', name: 'meshd-example-0' });
    await cluster.seconds(600);
    expect(one.finding()).toEqual({ enforcement: 'unknown', reason: 'NoMeshPod', pods: ['operator-1'] });
  });

  it('forget and remove the report of one that does not run any more', async () => {
    const cluster = new PolicedCluster();
    cluster.texts = { gone: formatReport({ reason: 'NotEnforced', at: cluster.now() }) };
    const one = cluster.run('operator-1');
    await cluster.seconds(20);
    expect(one.current()).toBe('enforced');
    expect(Object.keys(cluster.texts)).toEqual(['operator-1']);
  });

  it('do not count a report that is older than five minutes', async () => {
    const cluster = new PolicedCluster();
    const [one, two] = [cluster.run('operator-1'), cluster.run('operator-2')];
    await cluster.seconds(60);
    two.stop();
    await cluster.seconds(240);
    expect(one.current()).toBe('enforced');
    await cluster.seconds(360);
    expect(one.finding()).toEqual({ enforcement: 'unknown', reason: 'NotReported', pods: ['operator-2'] });
  });
});

describe('the metric', () => {
  it('is 1 for the state alone', async () => {
    const cluster = new PolicedCluster();
    const one = cluster.run('operator-1');
    const registry = createRegistry({ metrics: networkPolicyMetrics, version: 'test' });
    readEnforcementGauge(one, registry);
    const states = async () => {
      const family = parseExposition(await registry.text());
      return ['enforced', 'not_enforced', 'unknown'].map(state =>
        valueOf(family, 'mesh_gateway_network_policies', { state }),
      );
    };
    expect(await states()).toEqual([0, 0, 1]);
    await cluster.seconds(60);
    expect(await states()).toEqual([1, 0, 0]);
  });
});

describe('an operator whose manifests have no policies', () => {
  it('reports that they are not enforced, without a try', () => {
    const replica = withoutPolicies('operator-1');
    expect(replica.current()).toBe('not-enforced');
    expect(replica.finding()).toEqual({
      enforcement: 'not-enforced',
      reason: 'NotInstalled',
      pods: ['operator-1'],
    });
  });
});
