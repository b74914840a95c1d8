import type { ServerStream, StreamListener, GrpcStatus } from '../grpc/method.ts';
import { responseOf } from './content.ts';
import type { Content } from './content.ts';
import { readRequest } from './request.ts';
import type { EdsAnswer, EdsRequest } from './request.ts';
import { ABSENT } from './watched-cluster.ts';
import type { Served, Subscription } from './watched-cluster.ts';

/** What all streams share. */
export interface StreamParts {
  /** The cluster, or nothing where too many are followed already. */
  join(cluster: string, gateway: string): Served | undefined;
  leave(subscription: Subscription): void;
  sent(contents: number, lagsMs: readonly number[]): void;
  answered(stream: EdsStream, answer: EdsAnswer): void;
  over(stream: EdsStream): void;
  now(): number;
}

const MOST_NAMES = 10_000;

/** A response takes no more once it has so many bytes. */
const FULL_RESPONSE_BYTES = 256 * 1024;

/**
 * One Envoy that follows clusters. Nothing is queued for one that reads slowly but which clusters are owed, so that what
 * it gets in the end is the newest. There are thousands of these, so that little is kept of each.
 */
export class EdsStream implements StreamListener {
  readonly #stream: ServerStream;
  readonly #parts: StreamParts;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #owed = new Set<Subscription>();
  #gateway: string | undefined;
  #isBlocked = false;
  #isOver = false;
  /** Responses are numbered from 1, and answered in order. */
  #sent = 0;
  #answered = 0;

  constructor(stream: ServerStream, parts: StreamParts) {
    this.#stream = stream;
    this.#parts = parts;
  }

  get gateway(): string {
    return this.#gateway ?? '';
  }

  /** Some of the clusters that it follows. */
  get someClusters(): readonly string[] {
    return [...this.#subscriptions.keys()].slice(0, 3);
  }

  message(message: Uint8Array): void {
    if (this.#isOver) return;
    const place = this.#gateway === undefined ? 'first' : 'later';
    const judged = readRequest(message, place);
    if (judged.is === 'refused') {
      this.#end(judged.status);
      return;
    }
    this.#gateway ??= judged.request.gateway;
    this.#takeAnswer(judged.request.answer);
    for (const cluster of judged.request.unsubscribe) this.#unsubscribe(cluster);
    const refusal = this.#subscribe(judged.request);
    if (refusal) this.#end(refusal);
    else this.#pay();
    if (place === 'first' && this.#sent === 0) this.#greet();
  }

  finished(): void {
    this.#end({ code: 'OK', message: '' });
  }

  drained(): void {
    this.#isBlocked = false;
    this.#pay();
  }

  closed(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#owed.clear();
    for (const subscription of this.#subscriptions.values()) this.#parts.leave(subscription);
    this.#subscriptions.clear();
    this.#parts.over(this);
  }

  /** Sends a cluster as soon as there is room, if it is then still due. */
  owe(subscription: Subscription): void {
    this.#owed.add(subscription);
    this.#pay();
  }

  #end(status: GrpcStatus): void {
    if (this.#isOver) return;
    this.closed();
    this.#stream.end(status);
  }

  #takeAnswer(answer: EdsAnswer | undefined): void {
    const nonce = Number(answer?.nonce);
    if (!answer || !(nonce > this.#answered && nonce <= this.#sent)) return;
    this.#answered = nonce;
    this.#parts.answered(this, answer);
  }

  #unsubscribe(cluster: string): void {
    const subscription = this.#subscriptions.get(cluster);
    if (!subscription) return;
    this.#subscriptions.delete(cluster);
    this.#owed.delete(subscription);
    this.#parts.leave(subscription);
  }

  /** Gives the status with which the stream must end, if it must. */
  #subscribe({ subscribe, versionOf }: EdsRequest): GrpcStatus | undefined {
    for (const cluster of subscribe) {
      const known = this.#subscriptions.get(cluster);
      if (known) known.isAsked ||= known.sent !== undefined;
      const subscription = known ?? this.#begin(cluster, versionOf(cluster));
      if (!subscription) return TOO_MANY;
      if (subscription.served.isDue(subscription)) this.#owed.add(subscription);
    }
    return undefined;
  }

  #begin(cluster: string, sent: string | undefined): Subscription | undefined {
    if (this.#subscriptions.size >= MOST_NAMES) return undefined;
    const served = this.#parts.join(cluster, this.gateway);
    if (!served) return undefined;
    const subscription = { served, stream: this, sent, isAsked: false };
    served.subscriptions.add(subscription);
    this.#subscriptions.set(served.cluster, subscription);
    return subscription;
  }

  #pay(): void {
    while (!this.#isBlocked && !this.#isOver && this.#owed.size > 0) {
      const { contents, removed, lagsMs } = this.#takeOwed();
      if (contents.length + removed.length === 0) continue;
      this.#send(contents, removed);
      this.#parts.sent(contents.length, lagsMs);
    }
  }

  /** Envoy waits ever longer before it opens a stream again, unless something has come over the last one. */
  #greet(): void {
    if (!this.#isOver) this.#send([], []);
  }

  #send(contents: readonly Content[], removed: readonly string[]): void {
    this.#sent++;
    this.#isBlocked = !this.#stream.send(responseOf(contents, removed, String(this.#sent)));
  }

  /** Takes of what is owed as much as goes into one response. */
  #takeOwed(): Owed {
    const owed: Owed = { contents: [], removed: [], lagsMs: [] };
    const now = this.#parts.now();
    let bytes = 0;
    for (const subscription of this.#owed) {
      if (bytes > FULL_RESPONSE_BYTES) break;
      this.#owed.delete(subscription);
      const { served } = subscription;
      if (!served.isDue(subscription)) continue;
      const content = served.content();
      if (content) owed.contents.push(content);
      else owed.removed.push(served.cluster);
      bytes += content ? content.part.length : served.cluster.length;
      if (subscription.sent !== undefined && !subscription.isAsked) owed.lagsMs.push(now - served.changedAt);
      subscription.sent = content?.version ?? ABSENT;
      subscription.isAsked = false;
    }
    return owed;
  }
}

type Owed = { readonly contents: Content[]; readonly removed: string[]; readonly lagsMs: number[] };

const TOO_MANY: GrpcStatus = { code: 'RESOURCE_EXHAUSTED', message: 'too many clusters are followed' };
