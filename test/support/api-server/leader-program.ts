/** A process with the operator's leader election, which only writes to a log and a ConfigMap while it leads. */
import { appendFileSync, readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { RestConfig } from '../../../src/kubernetes/auth/rest-config.ts';
import { kubernetesLease } from '../../../src/kubernetes/lease.ts';
import { openTransport } from '../../../src/kubernetes/transport/open-transport.ts';
import { countingSleep, systemClock } from '../../../src/runtime/clock.ts';
import { startLeaderElection } from '../../../src/runtime/leader-election/leadership.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { leaderMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import type { LeaderSettings } from './leader-processes.ts';

const settings = JSON.parse(process.argv[2] ?? '{}') as LeaderSettings;
const { who, server, caFile, token, namespace, name, fencingLog, wallClockOffByMs } = settings;

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
  lease: kubernetesLease({
    transport: openTransport({ ...options, maxConnections: 1 }),
    namespace,
    name,
    date: now,
  }),
  clock: countingSleep(systemClock, () => uptime() * 1000),
  random: Math.random,
  telemetry: {
    log,
    metrics: createRegistry({ metrics: leaderMetrics, version: 'test' }),
    activities: createActivities(),
  },
  lead: ({ number }) => {
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

/** Writes while it is the leader, with the time of the clock that all processes of a machine share. */
function act(term: number): void {
  if (!leadership.isHeld()) return;
  const ms = Number(process.hrtime.bigint() / 1000n) / 1000;
  appendFileSync(fencingLog, `${JSON.stringify({ who, term, ms })}\n`);
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
