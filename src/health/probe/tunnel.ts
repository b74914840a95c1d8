import { request } from 'node:http';
import { connect, isIPv6 } from 'node:net';
import type { Socket } from 'node:net';
import type { SocketAddress } from '../../api/socket-address.ts';
import type { Attempt } from './attempt.ts';
import { CheckError, checkErrorOf, dialError } from './check-error.ts';

/** The User-Agent of all checks. */
export const USER_AGENT = 'mesh-gateway-health-check';

/** Connects to the first of some addresses that accepts: each has 250 ms before the next is tried too. */
export function connectDirect(attempt: Attempt, addresses: readonly string[], port: number): Promise<Socket> {
  const all = addresses.map(address => ({ address, family: isIPv6(address) ? 6 : 4 }));
  return new Promise((resolve, reject) => {
    const socket = attempt.own(
      connect({
        // A name, so that Node takes all addresses from the lookup; it is never resolved.
        host: 'endpoint.invalid',
        port,
        noDelay: true,
        autoSelectFamily: true,
        lookup: (_name, _options, callback) => callback(null, all),
      }),
    );
    socket.once('connect', () => resolve(socket));
    socket.once('error', error => reject(checkErrorOf(error)));
  });
}

/** Opens a tunnel through an HTTP CONNECT proxy to the first of some addresses to which the proxy can connect. */
export async function openTunnel(
  attempt: Attempt,
  proxy: SocketAddress,
  addresses: readonly string[],
  port: number,
): Promise<Socket> {
  let failure = new CheckError('unreached', 'the endpoint has no address');
  for (const address of addresses) {
    try {
      return await openTunnelTo(
        attempt,
        proxy,
        isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`,
      );
    } catch (error) {
      failure = checkErrorOf(error);
      if (failure.reason === 'unreached') break;
    }
  }
  throw failure;
}

function openTunnelTo(attempt: Attempt, proxy: SocketAddress, authority: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const connecting = attempt.own(
      request({
        createConnection: () =>
          attempt.own(connect({ host: proxy.address, port: proxy.port, noDelay: true })),
        method: 'CONNECT',
        path: authority,
        headers: { host: authority, 'user-agent': USER_AGENT },
      }),
    );
    connecting.once('connect', ({ statusCode = 0, headers }, socket, early) => {
      if (statusCode >= 200 && statusCode < 300) {
        // Some services send first, and their bytes may arrive together with the proxy's response.
        if (early.length > 0) socket.unshift(early);
        resolve(socket);
      } else if (statusCode >= 500) {
        const text = headers['tailscale-connect-error'];
        reject(dialError(Array.isArray(text) ? text[0] : text));
      } else {
        reject(new CheckError('unreached', `the proxy responded to CONNECT with ${statusCode}`));
      }
    });
    connecting.once('error', error =>
      reject(new CheckError('unreached', `the proxy did not respond: ${checkErrorOf(error).message}`)),
    );
    connecting.end();
  });
}
