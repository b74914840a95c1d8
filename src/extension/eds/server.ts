import type { Clock } from '../../api/clock.ts';
import type { Reason } from '../../api/reasons.ts';
import type { Log } from '../../telemetry/log.ts';
import type { extensionMetrics } from '../../telemetry/metrics.ts';
import type { GaugeReaders, Recorder } from '../../telemetry/metric-recorder.ts';
import { pathOf } from '../grpc/method.ts';
import type { Methods, ServerStream } from '../grpc/method.ts';
import { EndpointDiscoveryService } from '../proto/envoy/service/endpoint/v3_pb.ts';
import type { SnapshotCache, UnusedInCluster } from '../resolution-cache.ts';
import { limitedLog } from '../../telemetry/limited-log.ts';
import { PushQueue } from './push-queue.ts';
import type { Ack } from './request.ts';
import { EdsStream } from './stream.ts';
import type { StreamDeps } from './stream.ts';
import { WatchedCluster } from './watched-cluster.ts';
import type { Subscription, WatchedClusterDeps } from './watched-cluster.ts';

export type EdsTelemetry = {
  readonly log: Log;
  readonly metrics: GaugeReaders<typeof extensionMetrics> & {
    readonly record: Recorder<typeof extensionMetrics>;
  };
};

export type EdsDeps = {
  readonly snapshots: SnapshotCache;
  readonly clock: Clock;
  readonly telemetry: EdsTelemetry;
  /** Backends without traffic in clusters to which no stream subscribes. */
  readonly unusedOfMixedRules?: () => Iterable<UnusedInCluster>;
};

export type EdsOptions = {
  /** How long a removed endpoint drains. */
  readonly drainMs?: number;
  /** Max subscriptions of all streams together. */
  readonly maxSubscriptions?: number;
};

/** The EDS server: delta xDS for ClusterLoadAssignments. */
export interface Eds {
  readonly methods: Methods;
  /** Stops pushing. Streams stay open until the gRPC server ends them. */
  close(): void;
}

const DELTA_ENDPOINTS = pathOf(EndpointDiscoveryService.method.deltaEndpoints);

/** Creates the EDS server. */
export function createEds(deps: EdsDeps, options: EdsOptions = {}): Eds {
  const server = new EdsServer(deps, options);
  const open = (stream: ServerStream) => server.open(stream);
  return {
    methods: new Map([[DELTA_ENDPOINTS, { kind: 'streaming', open }]]),
    close: () => server.close(),
  };
}

const DRAIN_MS = 5000;
const MAX_SUBSCRIPTIONS = 100_000;

/** All streams, and the clusters to which they subscribe: by Gateway, then by name. */
class EdsServer implements StreamDeps {
  readonly #deps: EdsDeps;
  readonly #maxSubscriptions: number;
  readonly #queue: PushQueue;
  readonly #clusterDeps: WatchedClusterDeps;
  readonly #byGateway = new Map<string, Map<string, WatchedCluster>>();
  readonly #streams = new Set<EdsStream>();
  readonly #removeGauges: readonly (() => void)[];
  readonly #limitedLog: ReturnType<typeof limitedLog>;
  #subscriptions = 0;

  constructor(deps: EdsDeps, { drainMs = DRAIN_MS, maxSubscriptions = MAX_SUBSCRIPTIONS }: EdsOptions) {
    const { snapshots, clock, telemetry, unusedOfMixedRules } = deps;
    this.#deps = deps;
    this.#maxSubscriptions = maxSubscriptions;
    this.#queue = new PushQueue(clock);
    this.#limitedLog = limitedLog(clock);
    this.#clusterDeps = {
      snapshots,
      clock,
      drainMs,
      enqueue: cluster => this.#queue.enqueue(cluster),
      reportError: ({ name, gateway }, error) =>
        telemetry.log.error('cannot compute the endpoints of a cluster', { cluster: name, gateway, error }),
    };
    this.#removeGauges = [
      telemetry.metrics.readGauge('edsStreams', () => [{ labels: {}, value: this.#streams.size }]),
      telemetry.metrics.readGauge('unresolved', () =>
        countByReason([
          ...Array.from(this.#clusters(), ({ name, unused }) => ({ cluster: name, unused })),
          ...(unusedOfMixedRules?.() ?? []),
        ]),
      ),
    ];
  }

  open(stream: ServerStream): EdsStream {
    const opened = new EdsStream(stream, this);
    this.#streams.add(opened);
    return opened;
  }

  close(): void {
    this.#queue.close();
    for (const cluster of this.#clusters()) cluster.stop();
    this.#byGateway.clear();
    for (const remove of this.#removeGauges) remove();
  }

  watch(name: string, gateway: string): WatchedCluster | undefined {
    if (this.#subscriptions >= this.#maxSubscriptions) return undefined;
    this.#subscriptions++;
    const known = this.#byGateway.get(gateway);
    const clusters = known ?? new Map<string, WatchedCluster>();
    if (!known) this.#byGateway.set(gateway, clusters);
    const cluster = clusters.get(name) ?? new WatchedCluster(name, gateway, this.#clusterDeps);
    if (cluster.subscriptions.size === 0) cluster.start();
    clusters.set(cluster.name, cluster);
    return cluster;
  }

  unwatch(subscription: Subscription): void {
    const { cluster } = subscription;
    this.#subscriptions--;
    cluster.subscriptions.delete(subscription);
    if (cluster.subscriptions.size > 0) return;
    cluster.stop();
    const clusters = this.#byGateway.get(cluster.gateway);
    clusters?.delete(cluster.name);
    if (clusters?.size === 0) this.#byGateway.delete(cluster.gateway);
  }

  recordPush(resources: number, lagsMs: readonly number[]): void {
    const { record } = this.#deps.telemetry.metrics;
    if (resources > 0) record.edsPushes({}, resources);
    for (const ms of lagsMs) record.edsPushSeconds({}, ms / 1000);
  }

  recordAck(stream: EdsStream, { error }: Ack): void {
    const { log, metrics } = this.#deps.telemetry;
    metrics.record.edsAnswers({ answer: error === undefined ? 'ack' : 'nack' });
    if (error === undefined) return;
    const { gateway, someClusters: clusters } = stream;
    const reason: Reason = 'EndpointsRejected';
    this.#limitedLog(nacks =>
      log.warn('Envoy rejected endpoints', { reason, gateway, clusters, error, nacks }),
    );
  }

  closed(stream: EdsStream): void {
    this.#streams.delete(stream);
  }

  now(): number {
    return this.#deps.clock.now();
  }

  *#clusters(): Iterable<WatchedCluster> {
    for (const clusters of this.#byGateway.values()) yield* clusters.values();
  }
}

/** Counts unused backends by reason, each once for all Gateways and all clusters of its rule. */
function countByReason(
  all: readonly UnusedInCluster[],
): readonly { readonly labels: { readonly reason: string }; readonly value: number }[] {
  const seen = new Set<string>();
  const counts = new Map<string, number>();
  for (const { cluster, unused } of all) {
    for (const { reason, object, endpoint = '' } of unused ?? []) {
      const key = `${ruleOf(cluster)} ${reason} ${object} ${endpoint}`;
      if (seen.has(key)) continue;
      seen.add(key);
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
    }
  }
  return [...counts].map(([reason, value]) => ({ labels: { reason }, value }));
}

/** The clusters of single backends have the name of their rule's cluster with a suffix. */
function ruleOf(cluster: string): string {
  return cluster.replace(/\/backend\/\d+$/, '');
}
