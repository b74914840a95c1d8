import { SocksClient } from 'socks';
import type { SocketAddress } from '../api/socket-address.ts';
import type { DropReason } from './datagram-counts.ts';

/** The size of the buffers of meshd; a longer frame or reply is cut there without an error. */
const MESHD_BUFFER = 8192;

/**
 * The header of every frame to and from a target. It is made once, because the library takes longer to make and parse a
 * frame than it takes to forward it.
 */
export function frameHeader({ address, port }: SocketAddress): Buffer {
  return SocksClient.createUDPFrame({ remoteHost: { host: address, port }, data: Buffer.alloc(0) });
}

/** The largest payload over IPv6 that meshd sends without fragments: it would lose them. */
const MOST_OVER_IPV6 = 1232;
const TYPE_OFFSET = 3;
const TYPE_IPV6 = 4;

/** The largest payload that meshd forwards whole to the target of this header. */
export function maxPayload(header: Buffer): number {
  return header[TYPE_OFFSET] === TYPE_IPV6 ? MOST_OVER_IPV6 : MESHD_BUFFER - header.length;
}

/** Why a frame from meshd is not a reply of the target; undefined if it is, and its payload follows the header. */
export function faultOfFrame(header: Buffer, frame: Buffer): DropReason | undefined {
  if (frame.length < header.length || header.compare(frame, 0, header.length) !== 0) return otherFrame(frame);
  return frame.length - header.length < MESHD_BUFFER ? undefined : 'too_large';
}

function otherFrame(frame: Buffer): DropReason {
  try {
    const { frameNumber = 0 } = SocksClient.parseUDPFrame(frame);
    return frameNumber === 0 ? 'wrong_source' : 'fragmented';
  } catch {
    return 'malformed';
  }
}
