import type { Clock } from '../../../src/api/clock.ts';
import type { LeasePort } from '../../../src/store/lease.ts';
import { createMemoryLease } from '../store/memory-lease.ts';
import { startLeaderElection } from '../../../src/runtime/leader-election/leadership.ts';
import type {
  LeaderWork,
  Leadership,
  LeadershipDeps,
} from '../../../src/runtime/leader-election/leadership.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { leaderMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { parseExposition, valueOf } from '../telemetry/exposition.ts';
import { VirtualClock } from '../virtual-clock.ts';

/** How the leader's work ends when leadership ends. */
type WorkEnd = 'at once' | 'never' | 'with an error' | { readonly afterMs: number };

/** Options of a process that runs leader election. */
export type ProcessOptions = {
  readonly workEnds?: WorkEnd;
  readonly clock?: Clock;
  readonly lease?: LeasePort;
  readonly random?: () => number;
  readonly lead?: LeadershipDeps['lead'];
  readonly isReady?: () => boolean;
};

/** The connection of a process to the lease, and the number of its requests. */
type Path = {
  /** `losing answers`: requests take effect, without an answer. */
  network: 'working' | 'failing' | 'losing requests' | 'losing answers' | 'read-only';
  read: number;
  write: number;
};

/** A process that runs leader election, and what it did. */
export type Process = {
  readonly leadership: Leadership;
  /** What it started, ended and lost, in order, with times. */
  readonly events: string[];
  readonly messages: () => readonly unknown[];
  readonly path: Path;
  readonly gauge: () => Promise<number | undefined>;
  readonly activities: () => readonly string[];
};

/** Processes that share a lease in memory and a clock that the test moves. */
export class Leaders {
  readonly clock = new VirtualClock();
  readonly memory = createMemoryLease();
  #random = 1;

  /** Reproducible random numbers. */
  readonly random = (): number => {
    this.#random = (this.#random * 48_271) % 2_147_483_647;
    return this.#random / 2_147_483_647;
  };

  /** Seconds since the start. */
  get seconds(): number {
    return Math.round(this.clock.now() / 100) / 10;
  }

  start(identity: string, options: ProcessOptions = {}): Process {
    const { workEnds = 'at once', clock = this.clock, random = this.random } = options;
    const events: string[] = [];
    const record = (what: string) => void events.push(`${what} at ${this.seconds}`);
    const lines: string[] = [];
    const log = createLog({ level: 'info', to: { write: line => void lines.push(line) } });
    const metrics = createRegistry({
      metrics: leaderMetrics,
      version: 'test',
      known: { name: ['test'] },
    });
    const activities = createActivities();
    const path: Path = { network: 'working', read: 0, write: 0 };
    const lease = through(options.lease ?? this.memory.lease, path);
    const lead = ({ number }: { readonly number: number }): LeaderWork => {
      record(`leads as ${number}`);
      return { end: because => this.#ended(workEnds, () => record(`ends because ${because}`)) };
    };
    const leadership = startLeaderElection({
      name: 'test',
      identity,
      lease,
      clock,
      random,
      telemetry: { log, metrics, activities },
      lead: options.lead ?? lead,
      ...(options.isReady ? { isReady: options.isReady } : {}),
      mustExit: ({ message }) => record(`must exit (${message})`),
    });
    return {
      leadership,
      events,
      path,
      messages: () => lines.map(line => (JSON.parse(line) as { readonly msg: unknown }).msg),
      gauge: async () =>
        valueOf(parseExposition(await metrics.text()), leaderMetrics.leads.name, { name: 'test' }),
      activities: () =>
        (activities.list().get('leadership test') ?? []).map(({ what, state }) => `${what} ${state}`),
    };
  }

  async #ended(workEnds: WorkEnd, record: () => void): Promise<void> {
    record();
    if (workEnds === 'never') await new Promise(() => undefined);
    if (workEnds === 'with an error') throw new Error('it will not end');
    if (typeof workEnds === 'object')
      await new Promise<void>(resolve => void this.clock.after(workEnds.afterMs, resolve));
  }
}

/** A lease behind a connection; signals are ignored. */
function through(lease: LeasePort, path: Path): LeasePort {
  const carried = async <T>(request: () => Promise<T>): Promise<T> => {
    if (path.network === 'failing') throw new Error('no network');
    if (path.network === 'losing requests') return new Promise(() => undefined);
    const answer = await request();
    return path.network === 'losing answers' ? new Promise(() => undefined) : answer;
  };
  return {
    read: signal => {
      path.read++;
      return carried(() => lease.read(signal));
    },
    write: (hold, over, signal) => {
      path.write++;
      if (path.network === 'read-only') return Promise.reject(new Error('no right'));
      return carried(() => lease.write(hold, over, signal));
    },
  };
}
