import type { Clock } from '../../../api/clock.ts';
import { isEqual } from '../../../api/json.ts';
import { MESH_POD, PORTS } from '../../../api/names.ts';
import { kindOf } from '../../../store/dependencies.ts';
import type { ComponentPod, Replicas } from '../../../store/replicas.ts';
import type { ReadResources } from '../../../store/resources.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { Connect } from './connect.ts';
import { othersOf, staleIn, toReport } from './reports.ts';
import type { Others, Silent } from './reports.ts';
import { findingOf, UNTRIED, verdictAfter, worstOf } from './verdict.ts';
import type { Attempts, Enforcement, EnforcementReason, Finding, Outcome, Verdict } from './verdict.ts';

/** Whether NetworkPolicies are enforced, as all replicas of the operator have found; every replica has it, leader or not. */
export interface PolicyEnforcement {
  /** The state alone, for whoever decides by it; undefined for a process that has just started, until it knows. */
  current(): Enforcement | undefined;
  /** With its reason, for whoever shows it. */
  finding(): Finding;
  /** Calls a listener when the finding changes; returns the function that unsubscribes it. */
  subscribe(listener: () => void): () => void;
}

export type EnforcementDeps = {
  readonly read: Pick<ReadResources, 'list' | 'subscribe' | 'whenSynced'>;
  readonly replicas: Replicas;
  /** Of this replica. */
  readonly podName: string;
  readonly connect: Connect;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** The time of day. */
  readonly now: () => Date;
  readonly log: Pick<Log, 'info' | 'warn'>;
};

/** Without policies there is nothing to try. */
export function withoutPolicies(podName: string): PolicyEnforcement {
  const finding = worstOf(new Map([[podName, 'NotInstalled' as const]]));
  return { current: () => finding.enforcement, finding: () => finding, subscribe: () => () => undefined };
}

/** Tries connections now and then, and shares with the other replicas what they show, until it is stopped. */
export function startEnforcement(deps: EnforcementDeps): PolicyEnforcement & { stop(): void } {
  const running = new Enforcing(deps);
  running.start();
  return running;
}

/** The time between two rounds, and the shorter one for a while after anything has changed. */
const [SETTLED_MS, UNSETTLED_MS, UNSETTLED_FOR_MS] = [60_000, 10_000, 120_000];

/** How long a process that cannot find out counts as one that has just started. */
const STARTING_MS = 120_000;

/** The most pods of a kind to which one round connects. */
const MAX_TARGETS = 10;

class Enforcing implements PolicyEnforcement {
  readonly #deps: EnforcementDeps;
  readonly #listeners = new Set<() => void>();
  #verdict: Verdict = UNTRIED;
  #others: Others = new Map();
  #silent: Silent = new Map();
  #finding: Finding;
  #current: Enforcement | undefined;
  readonly #startedAt: number;
  #lastFound: EnforcementReason = 'NotTried';
  #changedAt: number;
  #roundAt = -Infinity;
  #cancel: () => void = () => undefined;
  #isRunning = false;
  #isStopped = false;
  #unsubscribe: () => void = () => undefined;

  constructor(deps: EnforcementDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
    this.#changedAt = this.#startedAt;
    this.#finding = worstOf(new Map([[deps.podName, this.#verdict.reason]]));
  }

  start(): void {
    this.#unsubscribe = this.#deps.read.subscribe(({ key }) => {
      if (kindOf(key) === 'Pod' && this.#lastFound === 'NoMeshPod') this.#schedule(UNSETTLED_MS);
    });
    void this.#deps.read.whenSynced().then(() => this.#schedule(0));
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    this.#unsubscribe();
  }

  current(): Enforcement | undefined {
    return this.#current;
  }

  finding(): Finding {
    return this.#finding;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The next round begins this long after the beginning of the last one. */
  #schedule(afterLastMs: number): void {
    if (this.#isStopped || this.#isRunning) return;
    const { clock } = this.#deps;
    this.#cancel();
    const ms = Math.max(0, this.#roundAt + afterLastMs - clock.now());
    this.#cancel = clock.after(ms, () => void this.#round());
  }

  async #round(): Promise<void> {
    const { clock, log } = this.#deps;
    this.#isRunning = true;
    this.#roundAt = clock.now();
    try {
      await this.#tryAndShare();
    } catch (error) {
      log.warn('cannot find out whether network policies are enforced', { error });
      this.#take('NotTried');
    }
    this.#isRunning = false;
    const isUnsettled = clock.now() - this.#changedAt < UNSETTLED_FOR_MS;
    this.#schedule(isUnsettled ? UNSETTLED_MS : SETTLED_MS);
  }

  /** Without mesh pods, such as before the first MeshTailnet, nothing is sent. */
  async #tryAndShare(): Promise<void> {
    const { read, replicas, podName, now } = this.#deps;
    if (read.list('Pod').length === 0) {
      this.#others = new Map();
      this.#take('NoMeshPod');
      return;
    }
    // First the reports: one of a replica that starts in between would count as that of one that does not run any more.
    const texts = await replicas.reports();
    const pods = await replicas.pods();
    this.#take(findingOf(await this.#attempts(pods)));
    const { reason } = this.#verdict;
    const changes = { ...staleIn(texts, pods, podName), ...toReport(texts, podName, { reason, at: now() }) };
    if (Object.keys(changes).length > 0) await replicas.report(changes);
    const { others, silent } = othersOf(texts, pods, podName, now(), this.#silent);
    this.#silent = silent;
    if (!isEqual([...others], [...this.#others])) this.#changedAt = this.#deps.clock.now();
    this.#others = others;
    this.#publish();
  }

  async #attempts(before: readonly ComponentPod[]): Promise<Attempts> {
    const { read, replicas, connect } = this.#deps;
    const meshPods = read
      .list('Pod')
      .filter(({ metadata, status }) => status.isReady && metadata.deletionTimestamp === undefined)
      .flatMap(({ status: { addresses } }) => addresses.slice(0, 1))
      .slice(0, MAX_TARGETS);
    const servers = readyServers(before).slice(0, MAX_TARGETS);
    const [permitted, tried] = await Promise.all([
      Promise.all(meshPods.map(address => connect(address, MESH_POD.ports.metrics))),
      Promise.all(
        servers.map(async server => ({ ...server, outcome: await connect(server.address, PORTS.grpc) })),
      ),
    ]);
    const isAccepted = tried.some(({ outcome }) => outcome === 'accepted');
    const after = new Set(isAccepted ? [] : readyServers(await replicas.pods()).map(({ uid }) => uid));
    const counts = ({ uid, outcome }: { readonly uid: string; readonly outcome: Outcome }) =>
      outcome === 'accepted' || after.has(uid);
    return { permitted, forbidden: tried.filter(counts).map(({ outcome }) => outcome) };
  }

  #take(found: EnforcementReason): void {
    const { clock } = this.#deps;
    const before = this.#verdict;
    this.#verdict = verdictAfter(before, found, clock.now());
    if (found !== this.#lastFound || before.reason !== this.#verdict.reason) this.#changedAt = clock.now();
    this.#lastFound = found;
    this.#publish();
  }

  #publish(): void {
    const { podName, clock, log } = this.#deps;
    const [before, current] = [this.#finding, this.#current];
    this.#finding = worstOf(new Map([...this.#others, [podName, this.#verdict.reason]]));
    const isStarting = this.#finding.reason === 'NotTried' && clock.now() - this.#startedAt < STARTING_MS;
    this.#current = isStarting ? undefined : this.#finding.enforcement;
    if ((isEqual(before, this.#finding) && current === this.#current) || this.#isStopped) return;
    const { enforcement, reason, pods } = this.#finding;
    if (enforcement !== before.enforcement) {
      const fields = { enforcement, reason, pods };
      if (enforcement === 'not-enforced') log.warn('network policies are not enforced', fields);
      else log.info('whether network policies are enforced has changed', fields);
    }
    for (const listener of this.#listeners) listener();
  }
}

function readyServers(pods: readonly ComponentPod[]) {
  return pods.flatMap(({ component, isReady, address, uid }) =>
    component === 'extensionServer' && isReady && address !== undefined ? [{ uid, address }] : [],
  );
}
