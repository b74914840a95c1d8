import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Attempt } from './attempt.ts';
import { CheckError, checkErrorOf } from './check-error.ts';
import type { CheckSettings } from '../check.ts';
import { USER_AGENT } from './tunnel.ts';

type HttpSettings = Extract<CheckSettings, { readonly type: 'HTTP' }>;

/** Sends one request over a connection, and compares the status of the response; redirects are not followed, bodies not read. */
export function checkHttp(
  attempt: Attempt,
  socket: Socket,
  { host, path, headers, expectedStatus }: HttpSettings,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const judge = ({ statusCode = 0 }: IncomingMessage) => {
      if (statusCode === expectedStatus) resolve();
      else
        reject(
          new CheckError(
            'answered',
            `got ${statusCode}, expected ${expectedStatus}`,
            `HTTP_${statusCode}_NOT_${expectedStatus}`,
          ),
        );
    };
    const sent = attempt.own(
      request({
        createConnection: () => socket,
        path,
        headers: {
          host,
          'user-agent': USER_AGENT,
          // The check closes the connection. If the service closed it, its address and port would stay in TIME_WAIT on its
          // device, where the network stack of a mesh daemon without a TUN device drops new connections from the same port.
          connection: 'keep-alive',
          ...Object.fromEntries(headers),
        },
      }),
    );
    sent.once('response', judge);
    sent.once('upgrade', judge);
    sent.once('error', error => reject(checkErrorOf(error)));
    sent.end();
  });
}
