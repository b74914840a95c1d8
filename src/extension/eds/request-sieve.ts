import { NodeSchema } from '../proto/envoy/config/core/v3_pb.ts';
import { DeltaDiscoveryRequestSchema } from '../proto/envoy/service/discovery/v3_pb.ts';
import type { Sieve } from '../grpc/method.ts';
import { joined, varint, WIRE_TYPES } from '../wire.ts';
import { headIn } from './field-head.ts';
import type { Head } from './field-head.ts';

const NODE = DeltaDiscoveryRequestSchema.field.node.number;
const KEPT_OF_NODE: readonly number[] = [NodeSchema.field.id.number, NodeSchema.field.cluster.number];

const NODE_TAG = NODE * 8 + WIRE_TYPES.bytes;

/** An empty node, so that there is one. Nodes that follow each other read as one. */
const EMPTY_NODE = Uint8Array.of(NODE_TAG, 0);

/** No field has the number 0, so that a request with this in it cannot be read. */
const BROKEN = Uint8Array.of(0);

/** Where in a request the sieve is. What it does not understand it leaves to whoever reads the request. */
type Place = 'request' | 'node' | 'rest' | 'broken';

/**
 * Keeps all of a DeltaDiscoveryRequest but what an Envoy tells of itself: of that, only its id and cluster. The rest
 * lists all that is built into it, which is 60 KB in the first request of each of thousands of streams. What cannot be
 * read cannot be read afterwards either.
 */
export function requestSieve(bytes: number): Sieve {
  return new RequestSieve(bytes);
}

class RequestSieve implements Sieve {
  #place: Place = 'request';
  /** How many bytes are to come of the request, and of the node that it is in. */
  #left: number;
  #leftOfNode = 0;
  /** What has come of the head of a field, and how much is to come of its value. */
  #head: number[] = [];
  #leftOfValue = 0;
  #isKept = true;
  #kept: Uint8Array[] = [];

  constructor(bytes: number) {
    this.#left = bytes;
  }

  pass(piece: Uint8Array): Uint8Array {
    let at = 0;
    while (at < piece.length) {
      if (this.#place === 'rest' || this.#place === 'broken') {
        if (this.#place === 'rest') this.#kept.push(piece.subarray(at));
        break;
      }
      const end = this.#leftOfValue > 0 ? Math.min(piece.length, at + this.#leftOfValue) : at + 1;
      this.#left -= end - at;
      if (this.#place === 'node') this.#leftOfNode -= end - at;
      if (this.#leftOfValue > 0) this.#takeValue(piece.subarray(at, end));
      else this.#takeHead(piece[at] ?? 0);
      at = end;
    }
    const kept = joined(this.#kept);
    this.#kept = [];
    return kept;
  }

  #takeValue(part: Uint8Array): void {
    if (this.#isKept) this.#kept.push(part);
    this.#leftOfValue -= part.length;
    this.#endNode();
  }

  #takeHead(byte: number): void {
    this.#head.push(byte);
    const head = headIn(this.#head);
    if (head === 'odd') this.#giveUp();
    else if (head !== 'unfinished') this.#begin(head);
    else if (this.#place === 'request' && this.#left === 0) this.#kept.push(Uint8Array.from(this.#head));
    this.#endNode();
  }

  /** A field that is cut off by the end of its node breaks the request. */
  #endNode(): void {
    if (this.#place !== 'node' || this.#leftOfNode > 0) return;
    if (this.#head.length > 0) this.#giveUp();
    else if (this.#leftOfValue === 0) this.#place = 'request';
  }

  #begin(head: Head): void {
    if (this.#place === 'node') this.#beginInNode(head);
    else this.#beginInRequest(head);
  }

  #beginInRequest({ number, wireType, valueBytes }: Head): void {
    if (number === NODE && wireType === WIRE_TYPES.bytes && valueBytes <= this.#left) {
      this.#kept.push(EMPTY_NODE);
      this.#place = 'node';
      this.#leftOfNode = valueBytes;
    } else {
      this.#kept.push(Uint8Array.from(this.#head));
      this.#isKept = true;
      this.#leftOfValue = valueBytes;
    }
    this.#head = [];
  }

  #beginInNode({ number, wireType, valueBytes }: Head): void {
    this.#isKept = KEPT_OF_NODE.includes(number);
    if (valueBytes > this.#leftOfNode || (this.#isKept && wireType !== WIRE_TYPES.bytes)) {
      this.#giveUp();
      return;
    }
    if (this.#isKept) {
      const bytes = varint(this.#head.length + valueBytes);
      this.#kept.push(Uint8Array.from([NODE_TAG, ...bytes, ...this.#head]));
    }
    this.#leftOfValue = valueBytes;
    this.#head = [];
  }

  #giveUp(): void {
    this.#kept.push(this.#place === 'node' ? BROKEN : Uint8Array.from(this.#head));
    this.#place = this.#place === 'node' ? 'broken' : 'rest';
    this.#head = [];
  }
}
