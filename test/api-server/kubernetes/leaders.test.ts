import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeClient } from '../../../lab/kube/client.ts';
import { until } from '../../../lab/process/wait.ts';
import { leaseAccess } from '../../../src/kubernetes/access.ts';
import { createAccount } from '../../support/cluster/account.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { LeaderProcesses, termsOf, sharedMs } from '../../support/api-server/leader-processes.ts';
import type { LeaderWrite, LeaderProcess } from '../../support/api-server/leader-processes.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';

/**
 * The limit is 15 s, and a retry period where the leader releases the lease, if answers take at most 0.1 s. A slow
 * machine gets longer, but less than it takes to replace a leader that died.
 */
const [PROMISED_MS, WITHIN_MS, TOLD_WITHIN_MS] = [15_000, 60_000, 9_500];
const HOUR_MS = 3_600_000;

const admin = kubeClient(sharedApiServer().access);
const NAME = 'leaders';
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
  await Promise.all(['a', 'b', 'c'].map(who => start(who)));
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

async function start(who: string, wallClockOffByMs = 0): Promise<void> {
  const { server, caFile } = admin.access;
  const settings = { who, server, caFile, token, namespace, name: NAME, wallClockOffByMs };
  all.set(who, await processes.start(settings));
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
  const find = () => Promise.resolve(processes.acts().find(isIt));
  return until(what, find, { everyMs: 20 });
}

/** The process that has been leading for some time. */
async function leader(): Promise<LeaderProcess> {
  const since = sharedMs();
  const { who } = await act('a process to lead', ({ ms }) => ms > since + 1500);
  const found = all.get(who);
  if (!found) throw new Error(`there is no process ${who}`);
  return found;
}

/** Disturbs the leader; returns how long it wrote after that, and how long after that another began. */
async function afterLoss(what: string, lose: (leader: LeaderProcess) => void) {
  const old = await leader();
  const lostAt = sharedMs();
  lose(old);
  const next = await act(`another than ${old.who} to lead`, ({ who, ms }) => who !== old.who && ms > lostAt);
  const last = processes.acts().filter(({ who, ms }) => who === old.who && ms < next.ms);
  const actedMs = Math.max(0, (last.at(-1)?.ms ?? 0) - lostAt);
  const nextMs = next.ms - lostAt;
  const shown = [actedMs, nextMs].map(ms => (ms / 1000).toFixed(2));
  measured.push(`${what}: the old leader acted for ${shown[0]} s more, another after ${shown[1]} s`);
  return { old, next, actedMs, nextMs };
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

describe('three processes that share a Lease', () => {
  it('have one leader', async () => {
    await act('a process to lead', () => true);
    expect(termsOf(processes.acts())).toHaveLength(1);
  });

  it('have another within 15 s after the leader was killed, at one of three times at least', async () => {
    const times: number[] = [];
    for (const successor of ['g', 'h', 'i']) {
      const { nextMs } = await afterLoss('killed', ({ child }) => void child.kill('SIGKILL'));
      expectNoTwo();
      times.push(nextMs);
      if (nextMs < PROMISED_MS) break;
      await start(successor);
    }
    expect(Math.min(...times)).toBeLessThan(PROMISED_MS);
  });

  it('have another soon after the leader was frozen, which does not act when it wakes after 20 s', async () => {
    await start('d', HOUR_MS);
    const since = sharedMs();
    const { old, nextMs } = await afterLoss('frozen', ({ child }) => void child.kill('SIGSTOP'));
    expect(nextMs).toBeLessThan(WITHIN_MS);
    await until('20 s', () => sharedMs() - since > 20_000);
    const wokeAt = sharedMs();
    old.child.kill('SIGCONT');
    const known = () => Promise.resolve(old.lines.find(({ msg }) => msg === 'lost leadership'));
    await until('the leader of old to know', known);
    const late = processes.acts().filter(({ who, ms }) => who === old.who && ms > wokeAt);
    expect(late).toEqual([]);
    expectNoTwo();
  });

  it('have another soon after the leader was cut off silently, which stops acting before', async () => {
    const { old, nextMs } = await afterLoss('cut off', ({ road }) => road.block('all'));
    expect(nextMs).toBeLessThan(WITHIN_MS);
    expectNoTwo();
    old.road.unblock();
  });

  it('have another, and never two, when the Lease is deleted while its leader is cut off', async () => {
    const { old, nextMs } = await afterLoss('cut off from a deleted Lease', ({ road }) => {
      road.block('all');
      deletedAt.push(sharedMs());
      void admin.remove({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name: NAME });
    });
    expect(nextMs).toBeLessThan(WITHIN_MS);
    expectNoTwo();
    old.road.unblock();
  });

  it('have another within a retry period after the leader was stopped', async () => {
    const { old, nextMs } = await afterLoss('stopped', ({ child }) => void child.kill('SIGTERM'));
    expect(nextMs).toBeLessThan(TOLD_WITHIN_MS);
    await old.ended;
    expect(old.child.exitCode).toBe(0);
    expectNoTwo();
  });

  it('keep a leader whose connections die silently, if new ones can be opened, at one of three times at least', async () => {
    const kept: boolean[] = [];
    while (kept.length < 3 && !kept.includes(true)) {
      const { road } = await leader();
      const before = termsOf(processes.acts()).length;
      const since = sharedMs();
      road.block('connections of now');
      await act('a process to lead', one => one.ms > since + 15_000);
      kept.push(termsOf(processes.acts()).length === before);
    }
    // It has 2 s for a new connection and a request, which a busy machine may not give it.
    expect(kept).toContain(true);
    expectNoTwo();
  });

  it('do the same if the wall clock of one is an hour ahead, as leader or not', async () => {
    await start('j', HOUR_MS);
    for (const [who, process] of all) if (who !== 'j') process.child.kill('SIGKILL');
    const ahead = await act('j to lead', ({ who, ms }) => who === 'j' && ms > sharedMs() - 200);
    await start('e', -HOUR_MS);
    await start('f');
    const { nextMs } = await afterLoss('killed, an hour ahead', ({ child }) => void child.kill('SIGKILL'));
    expect([ahead.who, nextMs < WITHIN_MS]).toEqual(['j', true]);
    expectNoTwo();
  });

  it('never had two active leaders, and never a write of an old leader after one of a new', () => {
    expectNoTwo();
    const terms = written.map(({ term }) => term);
    expect(new Set(terms).size).toBeGreaterThan(4);
    expect(terms).toEqual([...terms].sort((a, b) => a - b));
    const acts = processes.acts();
    measured.push(
      `${acts.length} acts in ${termsOf(acts).length} reigns, ${terms.length} reads of what they wrote`,
    );
  });
});
