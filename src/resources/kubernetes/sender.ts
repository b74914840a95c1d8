import type { Clock } from '../../api/clock.ts';
import { isEqual } from '../../api/equal.ts';
import type { Account, ClusterAccess } from './access.ts';
import { readStart } from './answer-body.ts';
import { ConnectionError } from './connection.ts';
import type { Answer, Connection } from './connection.ts';
import { openConnection } from './connection-open.ts';
import { accountInUse } from './credentials.ts';
import { orAborted } from './or-aborted.ts';
import { addressed, isRead } from './request.ts';
import type { Prepared } from './request.ts';

/** The beginning of an answer, and to whom it was given. */
export type Sent = { readonly answer: Answer; readonly account: Account };

/** Tells how a request ended: by the code of its answer, or nothing where it had none. */
type RecordAnswer = (request: Prepared, status: number | undefined) => void;

/** Sends requests from the account as it is now; fails with AccessError, ConnectionError or as the signal says. */
export interface Sender {
  send(request: Prepared, signal: AbortSignal): Promise<Sent>;
  close(): Promise<void>;
}

/** Sends each request, and once more where it is sure that this is right. */
export function senderFor(access: ClusterAccess, clock: Clock, record: RecordAnswer): Sender {
  const accounts = accountInUse(access, clock);
  const connections = connectionsTo(clock);

  const sendOnce = async (request: Prepared, account: Account, signal: AbortSignal): Promise<Answer> => {
    try {
      const answer = await connections.to(account).send(addressed(request, account), signal);
      record(request, answer.status);
      return answer;
    } catch (error) {
      record(request, undefined);
      throw error;
    }
  };
  /** The account that a request is to be sent from again, if it is. */
  const accountAfter = async (account: Account, request: Prepared, error: unknown) => {
    if (!(error instanceof ConnectionError)) return undefined;
    if (error.reason === 'NotProcessed') return await accounts.current();
    if (error.reason === 'Stale') return isRead(request) ? account : undefined;
    if (error.reason !== 'NotConnected') return undefined;
    const fresh = await accounts.after(account, 'good').catch(() => account);
    return fresh === account ? undefined : fresh;
  };
  const sendToEnd = async (request: Prepared, signal: AbortSignal): Promise<Sent> => {
    const account = await orAborted(accounts.current(), signal);
    try {
      return { answer: await sendOnce(request, account, signal), account };
    } catch (error) {
      const next = await orAborted(accountAfter(account, request, error), signal);
      if (!next) throw error;
      return { answer: await sendOnce(request, next, signal), account: next };
    }
  };
  return {
    send: async (request, signal) => {
      const sent = await sendToEnd(request, signal);
      if (sent.answer.status !== UNAUTHORIZED) return sent;
      const fresh = await orAborted(accounts.after(sent.account, 'refused'), signal);
      if (fresh === sent.account) return sent;
      await readStart(sent.answer.body);
      return { answer: await sendOnce(request, fresh, signal), account: fresh };
    },
    close: () => connections.close(),
  };
}

const UNAUTHORIZED = 401;

type Connections = {
  readonly to: (account: Account) => Connection;
  readonly close: () => Promise<void>;
};

/** The connection of the latest account; those before it end with what is under way on them. */
function connectionsTo(clock: Clock): Connections {
  const open = new Set<Connection>();
  let latest: { readonly connection: Connection; readonly account: Account } | undefined;
  return {
    to: account => {
      if (latest && isSameServer(latest.account, account)) return latest.connection;
      const connection = openConnection(account, clock);
      latest?.connection.retire();
      latest = { connection, account };
      open.add(connection);
      return connection;
    },
    close: async () => {
      await Promise.all([...open].map(connection => connection.close()));
    },
  };
}

function isSameServer(a: Account, b: Account): boolean {
  return a.server === b.server && isEqual(a.tls, b.tls);
}
