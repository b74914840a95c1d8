import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect, createSecureContext } from 'node:tls';
import type { SecureContext, TLSSocket } from 'node:tls';
import type { Attempt } from './attempt.ts';
import { checkErrorOf } from './check-error.ts';
import type { CheckTls } from '../check.ts';

/** Starts TLS on a connection, for a protocol of ALPN, and verifies the certificate. */
export type StartTls = (
  attempt: Attempt,
  socket: Socket,
  tls: CheckTls,
  protocol: 'http/1.1' | 'h2',
) => Promise<TLSSocket>;

/** The most sets of CA and version that are kept parsed. */
const MAX_CONTEXTS = 256;

/** Creates a function that starts TLS; it parses each CA once, and resumes no session, since that would skip the certificate. */
export function createTls(): StartTls {
  const contexts = new Map<string, SecureContext>();
  const contextOf = ({ ca, minVersion }: CheckTls): SecureContext => {
    const key = `${minVersion} ${ca}`;
    const context =
      contexts.get(key) ??
      createSecureContext({ ...(ca === undefined ? {} : { ca }), minVersion: `TLSv${minVersion ?? '1.2'}` });
    contexts.delete(key);
    contexts.set(key, context);
    for (const oldest of contexts.keys()) {
      if (contexts.size <= MAX_CONTEXTS) break;
      contexts.delete(oldest);
    }
    return context;
  };
  return (attempt, socket, tls, protocol) =>
    new Promise((resolve, reject) => {
      const { serverName, insecureSkipVerify } = tls;
      const secure = attempt.own(
        connect({
          socket,
          secureContext: contextOf(tls),
          // SNI has no addresses; the certificate is verified for the host then.
          host: serverName,
          servername: isIP(serverName) === 0 ? serverName : '',
          ALPNProtocols: [protocol],
          rejectUnauthorized: !insecureSkipVerify,
        }),
      );
      secure.once('secureConnect', () => resolve(secure));
      secure.once('error', error => reject(checkErrorOf(error, serverName)));
    });
}
