import { startRelay } from '../../../src/relay/relay.ts';
import type { Relay, RelayOptions } from '../../../src/relay/relay.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { relayMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { parseExposition } from '../telemetry/exposition.ts';
import { VirtualClock } from '../virtual-clock.ts';
import type { SocketAddress } from '../../../src/api/socket-address.ts';

/** A relay on an address of its own, under a clock of its own. */
export type RunningRelay = {
  readonly relay: Relay;
  readonly address: string;
  readonly clock: VirtualClock;
  /** The lines of its log. */
  readonly lines: readonly string[];
  /** Updates its targets. */
  update(targets: Readonly<Record<number, SocketAddress>>): Promise<void>;
  /** Datagrams that were dropped, by reason. */
  dropped(): Promise<Readonly<Record<string, number>>>;
  /** Datagrams by direction and result. */
  packets(): Promise<Readonly<Record<string, number>>>;
  associations(): Promise<number>;
};

let relays = 0;

/** An address of this machine that no other test has, so that every port is free. */
export function nextAddress(): string {
  const { pid } = process;
  return `127.${1 + ((pid >> 8) % 250)}.${pid % 256}.${1 + (relays++ % 250)}`;
}

/** Starts a relay; the metrics are those after the clock was advanced by a second. */
export function startTestRelay(options: Partial<RelayOptions> & Pick<RelayOptions, 'socks'>): RunningRelay {
  const clock = new VirtualClock();
  const address = nextAddress();
  const lines: string[] = [];
  const log = createLog({ level: 'debug', to: { write: line => lines.push(line) } });
  const metrics = createRegistry({ metrics: relayMetrics, version: 'test' });
  const relay = startRelay(
    { addresses: [address], idleMs: 60_000, maxAssociations: 4096, ...options },
    { log, metrics, clock },
  );
  const series = async (name: string) => {
    await clock.advance(1000);
    const family = parseExposition(await metrics.text()).get(`mesh_gateway_relay_${name}`);
    const values = (family?.series ?? []).map(({ labels, value }) => [
      Object.values(labels).join(' '),
      value,
    ]);
    return Object.fromEntries(values.filter(([, value]) => value !== 0)) as Record<string, number>;
  };
  return {
    relay,
    address,
    clock,
    lines,
    update: targets => relay.update(new Map(Object.entries(targets).map(([port, to]) => [Number(port), to]))),
    dropped: () => series('dropped_total'),
    packets: () => series('packets_total'),
    associations: async () => (await series('associations'))[''] ?? 0,
  };
}
