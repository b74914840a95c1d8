import type { Socket } from 'node:net';

/** Connections without traffic are probed, so that those to a device that vanished end. */
const KEEPALIVE_MS = 60_000;

/** Passes bytes both ways until one connection is closed; what it has sent still reaches the other one. */
export function join(one: Socket, other: Socket): void {
  for (const socket of [one, other]) socket.setKeepAlive(true, KEEPALIVE_MS);
  one.pipe(other);
  other.pipe(one);
  one.once('close', () => other.destroySoon());
  other.once('close', () => one.destroySoon());
}
