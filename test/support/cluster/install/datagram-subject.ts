import { readServices, setService } from '../../../../lab/tailnet/backends.ts';
import type { remoteOf } from '../../lab/lab.ts';
import { datagramClient } from '../../lab/traffic/clients/datagrams.ts';
import type { Subject } from '../../lab/traffic/matrix/subject.ts';
import type { Carried } from '../../lab/traffic/matrix/witness.ts';

export type DatagramSubjectOptions = {
  /** The listener of the Gateway, as host:port. */
  readonly listener: string;
  /** The device with the service. */
  readonly remote: ReturnType<typeof remoteOf>;
  /** The metrics of meshd of each mesh pod. */
  readonly meshdMetrics: () => Promise<readonly string[]>;
};

/** The subject of the row of the traffic matrix for UDP through mesh pods; resolves once a datagram has come back. */
export async function datagramSubject(options: DatagramSubjectOptions): Promise<Subject> {
  const { listener, remote, meshdMetrics } = options;
  const client = datagramClient({ listener, host: '' });
  const held = await client.open();
  await held.turn(Buffer.from('opened'));
  return {
    client,
    held,
    service: {
      state: async () => (await readServices(remote.control)).udp,
      set: mode => setService(remote.control, 'udp', mode),
    },
    carried: async () => bytesIn((await meshdMetrics()).join('\n')),
    addresses: () => Promise.resolve([]),
    meshAddress: remote.address,
    countsConnections: false,
    repeats: true,
  };
}

function bytesIn(metrics: string): Carried {
  const sum = (series: RegExp) =>
    [...metrics.matchAll(series)].reduce((total, [, count]) => total + Number(count), 0);
  return {
    tunnels: 0,
    up: sum(/^tailscaled_outbound_bytes_total\{.*\} (\d+)$/gm),
    down: sum(/^tailscaled_inbound_bytes_total\{.*\} (\d+)$/gm),
  };
}
