import type { Clock } from '../api/clock.ts';
import type { SocketAddress } from '../api/socket-address.ts';
import type { Log } from '../telemetry/log.ts';
import type { relayMetrics } from '../telemetry/metrics.ts';
import type { GaugeReaders, Recorder } from '../telemetry/metric-recorder.ts';
import { AssociationQuota } from './association-quota.ts';
import type { Proxy } from './association.ts';
import { DatagramCounts } from './datagram-counts.ts';
import { PortSet } from './port-set.ts';
import { ProxyBackoff } from './proxy-backoff.ts';
import { ReceiveBuffers } from './receive-buffers.ts';

/** Where a relay listens, how it reaches the mesh, and its limits. */
export type RelayOptions = {
  /** The addresses on which each port listens. */
  readonly addresses: readonly string[];
  readonly socks: Proxy;
  readonly idleMs: number;
  readonly maxAssociations: number;
  /** How long a port that is removed still forwards; 5 s by default. */
  readonly closeDelayMs?: number;
};

export type RelayDeps = {
  readonly log: Log;
  readonly metrics: GaugeReaders<typeof relayMetrics> & { readonly record: Recorder<typeof relayMetrics> };
  readonly clock: Clock;
};

/** Forwards datagrams from UDP ports to targets on the mesh, and replies back. */
export interface Relay {
  /** Listens on new ports, and closes those that are removed; resolves when every new port is bound or has failed. */
  update(targets: ReadonlyMap<number, SocketAddress>): Promise<void>;
  /** Why ports could not be bound, by port, such as EADDRINUSE; they are tried again at each update and every 10 s. */
  failed(): ReadonlyMap<number, string>;
  close(): Promise<void>;
}

const TICK_MS = 1000;
/** How often ports that are not bound are tried, and drops of the kernel are read. */
const SLOW_TICK_MS = 10_000;

/** Starts a relay without ports. */
export function startRelay(options: RelayOptions, deps: RelayDeps): Relay {
  const { addresses, socks: proxy, idleMs, maxAssociations, closeDelayMs = 5000 } = options;
  const { log, metrics, clock } = deps;
  const counts = new DatagramCounts({ log, record: metrics.record });
  const quota = new AssociationQuota(maxAssociations);
  const receiveBuffers = new ReceiveBuffers(counts);
  const backoff = new ProxyBackoff(clock);
  const ports = new PortSet(
    { addresses, proxy, idleMs, closeDelayMs },
    { clock, counts, quota, receiveBuffers, backoff, pendingSize: { bytes: 0 } },
  );
  const stopReading = metrics.readGauge('relayAssociations', () => [{ labels: {}, value: quota.total }]);
  let slowTickAt = clock.now() + SLOW_TICK_MS;
  let cancelTick = clock.after(TICK_MS, tick);

  function tick(): void {
    const now = clock.now();
    cancelTick = clock.after(TICK_MS, tick);
    ports.sweep(now);
    counts.record(now);
    if (now < slowTickAt) return;
    slowTickAt = now + SLOW_TICK_MS;
    void ports.listenAgain();
    void receiveBuffers.countDrops();
  }

  return {
    update: targets => ports.update(targets),
    failed: () => ports.failures(),
    close: async () => {
      cancelTick();
      await ports.close();
      counts.record(clock.now());
      stopReading();
    },
  };
}
