import type { GrpcStatus, ServerStream, StreamListener } from '../grpc/method.ts';
import { encodeResponse } from './envoy-endpoints.ts';
import type { EncodedResource } from './envoy-endpoints.ts';
import { parseRequest } from './request.ts';
import type { Ack, EdsRequest } from './request.ts';
import { REMOVED } from './watched-cluster.ts';
import type { Subscription, WatchedCluster } from './watched-cluster.ts';

/** What all streams share. */
export interface StreamDeps {
  /** Returns undefined if there are too many subscriptions already. */
  watch(cluster: string, gateway: string): WatchedCluster | undefined;
  unwatch(subscription: Subscription): void;
  recordPush(resources: number, lagsMs: readonly number[]): void;
  recordAck(stream: EdsStream, ack: Ack): void;
  closed(stream: EdsStream): void;
  now(): number;
}

const MAX_SUBSCRIPTIONS = 10_000;

/** No resource is added to a response of this size. */
const FULL_RESPONSE_BYTES = 256 * 1024;

/**
 * The delta xDS state of one Envoy. A stream that reads slowly queues clusters, not responses, so that it gets the
 * newest endpoints of each in the end. There are thousands of streams, so each keeps little state.
 */
export class EdsStream implements StreamListener {
  readonly #stream: ServerStream;
  readonly #deps: StreamDeps;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #pending = new Set<Subscription>();
  #gateway: string | undefined;
  #isBlocked = false;
  #isClosed = false;
  /** Nonces count up from 1, and are acknowledged in order. */
  #lastNonce = 0;
  #lastAck = 0;

  constructor(stream: ServerStream, deps: StreamDeps) {
    this.#stream = stream;
    this.#deps = deps;
  }

  get gateway(): string {
    return this.#gateway ?? '';
  }

  /** The first of its clusters, for the log. */
  get someClusters(): readonly string[] {
    return [...this.#subscriptions.keys()].slice(0, 3);
  }

  message(message: Uint8Array): void {
    if (this.#isClosed) return;
    const position = this.#gateway === undefined ? 'first' : 'later';
    const parsed = parseRequest(message, position);
    if (parsed.is === 'invalid') {
      this.#end(parsed.status);
      return;
    }
    this.#gateway ??= parsed.request.gateway;
    this.#acknowledge(parsed.request.ack);
    for (const cluster of parsed.request.unsubscribe) this.#unsubscribe(cluster);
    const failure = this.#subscribe(parsed.request);
    if (failure) this.#end(failure);
    else this.#flush();
    if (position === 'first' && this.#lastNonce === 0) this.#sendInitialResponse();
  }

  finished(): void {
    this.#end({ code: 'OK', message: '' });
  }

  drained(): void {
    this.#isBlocked = false;
    this.#flush();
  }

  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pending.clear();
    for (const subscription of this.#subscriptions.values()) this.#deps.unwatch(subscription);
    this.#subscriptions.clear();
    this.#deps.closed(this);
  }

  /** Pushes a cluster as soon as the stream can take it, if it still differs from what was sent. */
  enqueue(subscription: Subscription): void {
    this.#pending.add(subscription);
    this.#flush();
  }

  #end(status: GrpcStatus): void {
    if (this.#isClosed) return;
    this.closed();
    this.#stream.end(status);
  }

  #acknowledge(ack: Ack | undefined): void {
    const nonce = Number(ack?.nonce);
    if (!ack || !(nonce > this.#lastAck && nonce <= this.#lastNonce)) return;
    this.#lastAck = nonce;
    this.#deps.recordAck(this, ack);
  }

  #unsubscribe(cluster: string): void {
    const subscription = this.#subscriptions.get(cluster);
    if (!subscription) return;
    this.#subscriptions.delete(cluster);
    this.#pending.delete(subscription);
    this.#deps.unwatch(subscription);
  }

  /** Returns the status with which the stream must end, if it exceeds a limit. */
  #subscribe({ subscribe, versionOf }: EdsRequest): GrpcStatus | undefined {
    for (const cluster of subscribe) {
      const known = this.#subscriptions.get(cluster);
      if (known) known.isRequestedAgain ||= known.sentVersion !== undefined;
      const subscription = known ?? this.#addSubscription(cluster, versionOf(cluster));
      if (!subscription) return TOO_MANY;
      if (subscription.cluster.isOutdated(subscription)) this.#pending.add(subscription);
    }
    return undefined;
  }

  #addSubscription(name: string, sentVersion: string | undefined): Subscription | undefined {
    if (this.#subscriptions.size >= MAX_SUBSCRIPTIONS) return undefined;
    const cluster = this.#deps.watch(name, this.gateway);
    if (!cluster) return undefined;
    const subscription = { cluster, stream: this, sentVersion, isRequestedAgain: false };
    cluster.subscriptions.add(subscription);
    this.#subscriptions.set(cluster.name, subscription);
    return subscription;
  }

  #flush(): void {
    while (!this.#isBlocked && !this.#isClosed && this.#pending.size > 0) {
      const { resources, removed, lagsMs } = this.#takePending();
      if (resources.length + removed.length === 0) continue;
      this.#send(resources, removed);
      this.#deps.recordPush(resources.length, lagsMs);
    }
  }

  /** Envoy resets its reconnect backoff only once it has received a response, even an empty one. */
  #sendInitialResponse(): void {
    if (!this.#isClosed) this.#send([], []);
  }

  #send(resources: readonly EncodedResource[], removed: readonly string[]): void {
    this.#lastNonce++;
    this.#isBlocked = !this.#stream.send(encodeResponse(resources, removed, String(this.#lastNonce)));
  }

  /** Takes as many pending clusters as fit into one response. */
  #takePending(): Push {
    const push: Push = { resources: [], removed: [], lagsMs: [] };
    const now = this.#deps.now();
    let bytes = 0;
    for (const subscription of this.#pending) {
      if (bytes > FULL_RESPONSE_BYTES) break;
      this.#pending.delete(subscription);
      const { cluster } = subscription;
      if (!cluster.isOutdated(subscription)) continue;
      const resource = cluster.resource();
      if (resource) push.resources.push(resource);
      else push.removed.push(cluster.name);
      bytes += resource ? resource.bytes.length : cluster.name.length;
      if (subscription.sentVersion !== undefined && !subscription.isRequestedAgain)
        push.lagsMs.push(now - cluster.changedAt);
      subscription.sentVersion = resource?.version ?? REMOVED;
      subscription.isRequestedAgain = false;
    }
    return push;
  }
}

type Push = { readonly resources: EncodedResource[]; readonly removed: string[]; readonly lagsMs: number[] };

const TOO_MANY: GrpcStatus = { code: 'RESOURCE_EXHAUSTED', message: 'too many subscriptions' };
