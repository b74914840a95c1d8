/** A process with the operator's leader election, which only writes to a log and a ConfigMap while it leads. */
import { appendFileSync, readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Clock } from '../../../src/api/clock.ts';
import type { RestConfig } from '../../../src/kubernetes/auth/rest-config.ts';
import { kubernetesLease } from '../../../src/kubernetes/lease.ts';
import { openTransport } from '../../../src/kubernetes/transport/open-transport.ts';
import { countingSleep, systemClock } from '../../../src/runtime/clock.ts';
import { startLeaderElection } from '../../../src/runtime/leader-election/leadership.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { leaderMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import type { LeaseHold, LeasePort } from '../../../src/store/lease.ts';
import type { LeaderSettings, LeaderWait } from './leader-processes.ts';

const settings = JSON.parse(process.argv[2] ?? '{}') as LeaderSettings;
const { who, server, caFile, token, namespace, name, fencingLog, waitLog, wallClockOffByMs } = settings;

const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...given: readonly unknown[]) {
    super(...((given.length === 0 ? [Date.now()] : given) as [number]));
  }
  static override now(): number {
    return RealDate.now() + wallClockOffByMs;
  }
} as DateConstructor;

const log = createLog({ level: 'info' });
const config: RestConfig = {
  server,
  tls: { ca: readFileSync(caFile) },
  headers: { authorization: `Bearer ${token}` },
};
const now = () => new Date();
const options = { configSource: { load: () => Promise.resolve(config) }, clock: systemClock, now };
const transport = openTransport(options);
const leadership = startLeaderElection({
  name,
  identity: who,
  lease: recorded(
    kubernetesLease({
      transport: openTransport({ ...options, maxConnections: 1 }),
      namespace,
      name,
      date: now,
    }),
  ),
  clock: recordingLateness(countingSleep(systemClock, () => uptime() * 1000)),
  random: Math.random,
  telemetry: {
    log,
    metrics: createRegistry({ metrics: leaderMetrics, version: 'test' }),
    activities: createActivities(),
  },
  lead: ({ number }) => {
    act(number);
    const ends = [every(50, () => act(number)), every(200, () => void note(number))];
    return {
      end: () => {
        for (const end of ends) end();
        return Promise.resolve();
      },
    };
  },
  mustExit: ({ message }) => {
    log.error('must exit', { message });
    process.exit(3);
  },
});

function every(ms: number, call: () => void): () => void {
  const timer = setInterval(call, ms);
  return () => clearInterval(timer);
}

/** The clock that all processes of a machine share. */
function sharedMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

/** Writes while it is the leader. The time is read first: the process may be frozen at any moment after that. */
function act(term: number): void {
  const ms = sharedMs();
  if (!leadership.isHeld()) return;
  appendFileSync(fencingLog, `${JSON.stringify({ who, term, ms })}\n`);
}

function recordWait(wait: Omit<LeaderWait, 'who'>): void {
  appendFileSync(waitLog, `${JSON.stringify({ who, ...wait })}\n`);
}

/** Records the requests of a lease. */
function recorded(lease: LeasePort): LeasePort {
  const record = async <T>(what: 'read' | 'write', signal: AbortSignal, answer: Promise<T>): Promise<T> => {
    const from = sharedMs();
    let isAnswered = false;
    try {
      const value = await answer;
      isAnswered = !signal.aborted;
      return value;
    } finally {
      recordWait({ what, from, until: sharedMs(), isAnswered });
    }
  };
  return {
    read: signal => record('read', signal, lease.read(signal)),
    write: (hold: LeaseHold, over, signal) => record('write', signal, lease.write(hold, over, signal)),
  };
}

/** Records for how long timers that were due waited for a processor. */
function recordingLateness(clock: Clock): Clock {
  const after: Clock['after'] = (ms, call) => {
    const due = sharedMs() + ms;
    return clock.after(ms, () => {
      recordWait({ what: 'timer', from: due, until: sharedMs(), isAnswered: true });
      call();
    });
  };
  return { now: () => clock.now(), after, soon: call => clock.soon(call) };
}

async function note(term: number): Promise<void> {
  const value = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace },
    data: { who, term: String(term) },
  };
  const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  const body = { type: 'application/apply-patch+yaml', value };
  const signal = leadership.signal();
  try {
    signal.throwIfAborted();
    await transport.send({ verb: 'apply', path, query: { fieldManager: who, force: 'true' }, body, signal });
  } catch (error) {
    log.info('not written', { error });
  }
}

process.once('SIGTERM', () => {
  void leadership.stop().then(() => process.exit(0));
});
