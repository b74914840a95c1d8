import type { Log } from '../../telemetry/log.ts';
import type { extensionMetrics } from '../../telemetry/metrics.ts';
import type { GaugeReaders, Recorder } from '../../telemetry/recorder.ts';
import type { Clock } from '../../api/clock.ts';
import type { Assignments } from './assigned.ts';
import type { EdsAnswer } from './request.ts';
import { Rounds } from './push-queue.ts';
import { Served } from './watched-cluster.ts';
import type { ServedParts, Subscription } from './watched-cluster.ts';
import { EdsStream } from './stream.ts';
import type { StreamParts } from './stream.ts';
import { unresolvedOf } from './unresolved.ts';
import type { UnusedOfCluster } from './unresolved.ts';
import type { Methods, ServerStream } from '../grpc/method.ts';

/** To whom the server of endpoints tells what it does. */
export type EdsTelemetry = {
  readonly log: Log;
  readonly metrics: GaugeReaders<typeof extensionMetrics> & {
    readonly record: Recorder<typeof extensionMetrics>;
  };
};

/** What the server of endpoints is made of. */
export type EdsOptions = {
  readonly assignments: Assignments;
  readonly clock: Clock;
  readonly telemetry: EdsTelemetry;
  /** What gets no traffic of clusters whose endpoints Envoy Gateway tells. */
  readonly unusedElsewhere?: () => Iterable<UnusedOfCluster>;
  /** How long an endpoint that is assigned no more is told as draining. */
  readonly drainMs?: number;
  /** How many clusters all streams together may follow. */
  readonly mostSubscriptions?: number;
};

/** The server of endpoints: an Envoy names clusters, and is told their endpoints now and whenever they change. */
export interface Eds {
  readonly methods: Methods;
  /** Tells nothing more. Streams stay open: who listens ends them. */
  close(): void;
}

const DRAIN_MS = 5000;
const MOST_SUBSCRIPTIONS = 100_000;

/** Makes the server of endpoints. */
export function createEds(options: EdsOptions): Eds {
  const following = new Following(options);
  const open = (stream: ServerStream) => following.open(stream);
  return {
    methods: new Map([[DELTA_ENDPOINTS, { is: 'streaming', open }]]),
    close: () => following.close(),
  };
}

const DELTA_ENDPOINTS = '/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints';

/** So often at most a line of the log tells that an Envoy refused something. */
const REFUSALS_APART_MS = 1000;

/** All streams, and the clusters that they follow: by Gateway, then by name. */
class Following implements StreamParts {
  readonly #options: EdsOptions;
  readonly #rounds: Rounds;
  readonly #servedParts: ServedParts;
  readonly #byGateway = new Map<string, Map<string, Served>>();
  readonly #streams = new Set<EdsStream>();
  readonly #ends: readonly (() => void)[];
  #subscriptions = 0;
  #refusals = { unlogged: 0, nextLineAt: 0 };

  constructor(options: EdsOptions) {
    const { assignments, clock, drainMs = DRAIN_MS, telemetry, unusedElsewhere } = options;
    this.#options = options;
    this.#rounds = new Rounds(clock);
    this.#servedParts = {
      assignments,
      clock,
      drainMs,
      announce: served => this.#rounds.add(served),
      reportFailure: ({ cluster, gateway }, error) =>
        telemetry.log.error('endpoints cannot be computed', { cluster, gateway, error }),
    };
    this.#ends = [
      telemetry.metrics.readGauge('edsStreams', () => [{ labels: {}, value: this.#streams.size }]),
      telemetry.metrics.readGauge('unresolved', () =>
        unresolvedOf([...this.#served(), ...(unusedElsewhere?.() ?? [])]),
      ),
    ];
  }

  open(stream: ServerStream): EdsStream {
    const opened = new EdsStream(stream, this);
    this.#streams.add(opened);
    return opened;
  }

  close(): void {
    this.#rounds.close();
    for (const served of this.#served()) served.end();
    this.#byGateway.clear();
    for (const end of this.#ends) end();
  }

  join(cluster: string, gateway: string): Served | undefined {
    if (this.#subscriptions >= (this.#options.mostSubscriptions ?? MOST_SUBSCRIPTIONS)) return undefined;
    this.#subscriptions++;
    const known = this.#byGateway.get(gateway);
    const clusters = known ?? new Map<string, Served>();
    if (!known) this.#byGateway.set(gateway, clusters);
    const served = clusters.get(cluster) ?? new Served(cluster, gateway, this.#servedParts);
    if (served.subscriptions.size === 0) served.begin();
    clusters.set(served.cluster, served);
    return served;
  }

  leave(subscription: Subscription): void {
    const { served } = subscription;
    this.#subscriptions--;
    served.subscriptions.delete(subscription);
    if (served.subscriptions.size > 0) return;
    served.end();
    const clusters = this.#byGateway.get(served.gateway);
    clusters?.delete(served.cluster);
    if (clusters?.size === 0) this.#byGateway.delete(served.gateway);
  }

  sent(contents: number, lagsMs: readonly number[]): void {
    const { record } = this.#options.telemetry.metrics;
    if (contents > 0) record.edsPushes({}, contents);
    for (const ms of lagsMs) record.edsPushSeconds({}, ms / 1000);
  }

  answered(stream: EdsStream, { refusal }: EdsAnswer): void {
    const { telemetry, clock } = this.#options;
    telemetry.metrics.record.edsAnswers({ answer: refusal === undefined ? 'ack' : 'nack' });
    if (refusal === undefined) return;
    this.#refusals.unlogged++;
    if (clock.now() < this.#refusals.nextLineAt) return;
    const { gateway, someClusters } = stream;
    const fields = { gateway, clusters: someClusters, refusal, refusals: this.#refusals.unlogged };
    telemetry.log.warn('an Envoy refused endpoints', fields);
    this.#refusals = { unlogged: 0, nextLineAt: clock.now() + REFUSALS_APART_MS };
  }

  over(stream: EdsStream): void {
    this.#streams.delete(stream);
  }

  now(): number {
    return this.#options.clock.now();
  }

  *#served(): Iterable<Served> {
    for (const clusters of this.#byGateway.values()) yield* clusters.values();
  }
}
