import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Clock } from '../api/clock.ts';
import { canonicalIP, familyOf } from '../api/ip.ts';
import { LOCAL_API_HOST, localApiOn } from './local-api.ts';

/** Why there is no connection to a device. */
type DialFailure = {
  /** `outside`: the address is none of another device of the tailnet, and nothing was dialled. */
  readonly reason: 'outside' | 'failed';
  readonly why: string;
};

/** Connects to a host and port through the tailnet, and never in another way; ends with the signal. */
export type DialTailnet = (host: string, port: number, signal: AbortSignal) => Promise<Socket | DialFailure>;

const PROTOCOL = 'ts-dial';
const MAX_WHY_LENGTH = 200;

/**
 * A device that forwards without a TUN refuses one connection in thousands by chance, where another one has the same source port:
 * a refused connection is tried once more.
 */
const REFUSED = /connection was refused/;

/** How long the addresses of the device are kept. */
const OWN_HOSTS_MS = 10_000;

/*
 * Unlike the proxy of a tailscaled, its LocalAPI dials nothing which is not a device of the tailnet, but responds with `Dial-Self`,
 * so that callers never reach the network of the pod. To its own addresses it does connect, by the loopback of the pod: these are
 * refused here.
 */

/** Dials by the LocalAPI on a unix socket, whose tailscaled must run as the same user. */
export function dialOn(socketPath: string, clock: Pick<Clock, 'now'>): DialTailnet {
  const isOwn = ownHostsOn(socketPath, clock);
  const dial: DialTailnet = (host, port, signal) =>
    new Promise(resolve => {
      const headers = {
        host: LOCAL_API_HOST,
        connection: 'upgrade',
        upgrade: PROTOCOL,
        'dial-host': host,
        'dial-port': String(port),
        'content-length': '0',
      };
      const path = '/localapi/v0/dial';
      const opening = request({ socketPath, method: 'POST', path, headers, agent: false, signal });
      opening.once('upgrade', (_response, socket: Socket, early) => {
        if (early.length > 0) socket.unshift(early);
        resolve(socket);
      });
      opening.once('response', response => void failureOf(response).then(resolve));
      opening.once('error', error => resolve({ reason: 'failed', why: `meshd: ${error.message}` }));
      opening.end();
    });
  return async (host, port, signal) => {
    try {
      if (await isOwn(host)) return OWN;
    } catch (error) {
      return { reason: 'failed', why: `meshd: ${(error as Error).message}`.slice(0, MAX_WHY_LENGTH) };
    }
    const first = await dial(host, port, signal);
    return 'why' in first && REFUSED.test(first.why) && !signal.aborted ? dial(host, port, signal) : first;
  };
}

const OWN: DialFailure = { reason: 'outside', why: 'this is the address of the mesh pod itself' };

/** Whether a host is the device itself, by what its tailscaled reported in the last seconds. */
function ownHostsOn(socketPath: string, clock: Pick<Clock, 'now'>): (host: string) => Promise<boolean> {
  const localApi = localApiOn(socketPath);
  let hosts: Promise<readonly string[]> | undefined;
  let readAt = -Infinity;
  return async host => {
    if (!hosts || clock.now() - readAt >= OWN_HOSTS_MS) {
      readAt = clock.now();
      hosts = localApi.readOwnHosts();
    }
    const reading = hosts;
    const own = await reading.catch((): readonly string[] => []);
    // One that has not joined yet, or does not respond, is asked again.
    if (own.length === 0 && hosts === reading) hosts = undefined;
    await reading;
    return own.includes(familyOf(host) === undefined ? host.toLowerCase() : canonicalIP(host));
  };
}

async function failureOf(response: IncomingMessage): Promise<DialFailure> {
  if (response.headers['dial-self'] !== undefined) {
    response.destroy();
    return { reason: 'outside', why: 'no device of the tailnet has this address' };
  }
  const body = await text(response).catch(() => '');
  const why = body.replace(/^dial failure: /, '').trim() || `meshd responded with ${response.statusCode}`;
  return { reason: 'failed', why: why.slice(0, MAX_WHY_LENGTH) };
}
