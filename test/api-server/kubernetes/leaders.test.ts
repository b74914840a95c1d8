import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeClient } from '../../../lab/kube/client.ts';
import { until } from '../../../lab/process/wait.ts';
import { leaseAccess } from '../../../src/kubernetes/access.ts';
import { createAccount } from '../../support/cluster/account.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { LEASE_TIMING } from '../../../src/runtime/leader-election/election.ts';
import { LeaderProcesses, slowMs, termsOf, sharedMs } from '../../support/api-server/leader-processes.ts';
import type { LeaderWrite, LeaderProcess } from '../../support/api-server/leader-processes.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';

/**
 * What docs/kubernetes.md promises of a machine that answers at once. The time that a process waited for answers and for a
 * processor, which it records, is not counted: so it holds each time on a slow machine too.
 */
const [DEAD_WITHIN_MS, STOPPED_WITHIN_MS] = [15_000, 3000];
const HOUR_MS = 3_600_000;

/**
 * A leader whose renewal times out has 1.7 s for a new connection and two requests. It may lose leadership where the machine takes
 * more than this of them, and then another trial decides.
 */
const SPARE_MS = 1000;
const MAX_TRIALS = 5;

const admin = kubeClient(sharedApiServer().access);
const NAME = 'leaders';
const LEASE = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
const processes = new LeaderProcesses();
const all = new Map<string, LeaderProcess>();
const measured: string[] = [];
/** A process that had not read the last term of a deleted Lease may give the same number to the next one. */
const deletedAt: number[] = [];
const written: { readonly who: string; readonly term: number }[] = [];

let namespace: string;
let token: string;
const over = new AbortController();
let watching: Promise<void>;

beforeAll(async () => {
  namespace = await createNamespace(admin);
  const configMaps = { apiGroups: [''], resources: ['configmaps'], verbs: ['create', 'patch'] } as const;
  const account = { namespace, name: `leader-${namespace}` };
  token = await createAccount(admin, account, { cluster: [], own: [...leaseAccess(NAME), configMaps] });
  await processes.prepare();
  watching = lookOn();
  const released = { holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 0 };
  await admin.create({ ...LEASE, metadata: { namespace, name: NAME }, spec: released });
  await Promise.all([start('a'), start('b', HOUR_MS), start('c', -HOUR_MS)]);
});

afterAll(async () => {
  over.abort();
  await watching;
  await processes.end();
  const ref = { apiVersion: 'rbac.authorization.k8s.io/v1', name: `leader-${namespace}` };
  await admin.remove({ ...ref, kind: 'ClusterRole' });
  await admin.remove({ ...ref, kind: 'ClusterRoleBinding' });
  await removeNamespace(admin, namespace);
  console.log(measured.join('\n'));
});

/** Starts a process, and waits until it has read the Lease. */
async function start(who: string, wallClockOffByMs = 0): Promise<void> {
  const { server, caFile } = admin.access;
  const settings = { who, server, caFile, token, namespace, name: NAME, wallClockOffByMs };
  all.set(who, await processes.start(settings));
  const hasRead = () => processes.waits(who).some(({ what, isAnswered }) => what === 'read' && isAnswered);
  await until(`${who} to read the Lease`, hasRead);
}

/** One read at a time, so that results are in order; a failed one is ignored. */
async function lookOn(): Promise<void> {
  while (!over.signal.aborted) {
    await readWritten().catch(() => undefined);
    await sleep(100);
  }
}

/** Reads the ConfigMap that leaders write. */
async function readWritten(): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/configmaps/${NAME}`;
  const { status, body } = await admin.request('GET', path);
  if (status !== 200) return;
  const { data } = body as { readonly data: { readonly who: string; readonly term: string } };
  written.push({ who: data.who, term: Number(data.term) });
}

/** Waits for a write, and returns it. */
function act(what: string, isIt: (act: LeaderWrite) => boolean): Promise<LeaderWrite> {
  return until(what, () => processes.acts().find(isIt), { everyMs: 20 });
}

/** The process that has been leading for some time, and whose write has been read. */
async function leader(): Promise<LeaderProcess> {
  const since = sharedMs();
  const { who } = await act('a process to lead', ({ ms }) => ms > since + 500);
  await until(`the write of ${who}`, () => written.at(-1)?.who === who);
  const found = all.get(who);
  if (!found) throw new Error(`there is no process ${who}`);
  return found;
}

/** Disturbs the leader; returns it, and how long after that another began, without what is due to a slow machine. */
async function afterLoss(what: string, lose: (leader: LeaderProcess) => unknown) {
  const old = await leader();
  await lose(old);
  const lostAt = sharedMs();
  return { old, nextMs: await nextAfter(what, old.who, lostAt) };
}

async function nextAfter(what: string, old: string, lostAt: number): Promise<number> {
  const next = await act(`another than ${old} to lead`, ({ who, ms }) => who !== old && ms > lostAt);
  const slow = slowMs(processes.waits(next.who), lostAt, next.ms);
  const shown = [next.ms - lostAt, slow].map(ms => (ms / 1000).toFixed(2));
  measured.push(`${what}: another after ${shown[0]} s, of which the machine took ${shown[1]} s`);
  return next.ms - lostAt - slow;
}

function expectNoTwo(): void {
  const reigns = termsOf(processes.acts());
  for (const [index, reign] of reigns.entries()) {
    const before = reigns[index - 1];
    if (!before) continue;
    expect([before, reign], 'two who acted at once').toSatisfy(() => before.until < reign.from);
    const isNewLease = deletedAt.some(ms => before.from < ms && ms < reign.from);
    expect([before, reign], 'terms that do not rise').toSatisfy(
      () => before.term < reign.term || (isNewLease && before.term === reign.term),
    );
  }
}

describe('three processes that share a Lease, with wall clocks that are hours apart', () => {
  it('have one leader, another within 15 s after it was killed, and within 3 s after that released the Lease', async () => {
    const { nextMs } = await afterLoss('killed', ({ child }) => child.kill('SIGKILL'));
    expect(nextMs).toBeLessThan(DEAD_WITHIN_MS);
    expectNoTwo();
    const { child, ended, who } = await leader();
    child.kill('SIGTERM');
    await ended;
    expect(child.exitCode).toBe(0);
    const released = processes.waits(who).findLast(({ what }) => what === 'write');
    expect(await nextAfter('stopped', who, released?.until ?? 0)).toBeLessThan(STOPPED_WITHIN_MS);
    expectNoTwo();
  });

  it('have another within 15 s after the leader was frozen, which does not act when it wakes', async () => {
    await Promise.all([start('d', HOUR_MS), start('e')]);
    const { old, nextMs } = await afterLoss('frozen', ({ child }) => child.kill('SIGSTOP'));
    expect(nextMs).toBeLessThan(DEAD_WITHIN_MS);
    const wokeAt = sharedMs();
    old.child.kill('SIGCONT');
    await until('the leader of old to know', () => old.lines.some(({ msg }) => msg === 'lost leadership'));
    const late = processes.acts().filter(({ who, ms }) => who === old.who && ms > wokeAt);
    expect(late).toEqual([]);
    expectNoTwo();
  });

  it('have another within 15 s, and never two, when the Lease is deleted while its leader is cut off', async () => {
    const { old, nextMs } = await afterLoss('cut off from a deleted Lease', ({ road }) => {
      road.block('all');
      deletedAt.push(sharedMs());
      return admin.remove({ ...LEASE, namespace, name: NAME });
    });
    expect(nextMs).toBeLessThan(DEAD_WITHIN_MS);
    expectNoTwo();
    old.road.unblock();
  });

  it('keep a leader whose connections die silently, if new ones can be opened', async () => {
    let isKept = false;
    for (let trial = 0; trial < MAX_TRIALS && !isKept; trial++) {
      const { who, road } = await leader();
      const [terms, opened, since] = [termsOf(processes.acts()).length, road.opened(), sharedMs()];
      road.block('connections of now');
      const end = since + LEASE_TIMING.holdMs;
      // Only a leader that has renewed the Lease since then acts for longer than that.
      await act('a process to lead', ({ ms }) => ms > end);
      isKept = termsOf(processes.acts()).length === terms;
      if (isKept) continue;
      const waits = processes.waits(who).filter(({ until: ended }) => ended > since);
      const onDead = waits.find(({ isAnswered }) => !isAnswered);
      const slow = slowMs(
        waits.filter(wait => wait !== onDead),
        since,
        end,
      );
      measured.push(`not kept: the machine took ${(slow / 1000).toFixed(2)} s`);
      expect([road.opened() > opened, slow > SPARE_MS], 'lost without need').toEqual([true, true]);
    }
    expect(isKept).toBe(true);
    expectNoTwo();
  });

  it('never had two active leaders, and never a write of an old leader after one of a new', () => {
    expectNoTwo();
    const terms = written.map(({ term }) => term);
    expect(new Set(terms).size).toBeGreaterThan(3);
    expect(terms).toEqual([...terms].sort((a, b) => a - b));
    const acts = processes.acts();
    measured.push(
      `${acts.length} acts in ${termsOf(acts).length} reigns, ${terms.length} reads of what they wrote`,
    );
  });
});
