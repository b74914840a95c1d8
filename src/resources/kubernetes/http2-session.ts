import { connect, constants } from 'node:http2';
import type { ClientHttp2Session } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../api/clock.ts';
import { ConnectionError, wordsOf } from './connection.ts';
import type { Answer, ConnectionErrorReason, WireRequest } from './connection.ts';
import { exchange, isNoHttp2 } from './http2-stream.ts';
import { Underway } from './underway.ts';

/** One HTTP/2 connection, over which many requests go at once. */
export interface Session {
  /** Whether it takes one more request now. */
  hasRoom(): boolean;
  /** Whether it takes no more requests, ever. */
  isOver(): boolean;
  send(request: WireRequest, signal: AbortSignal): Promise<Answer>;
  retire(): void;
  destroy(): void;
}

/** How much an answer may send ahead of whoever reads it, and all answers together. */
const [STREAM_WINDOW, SESSION_WINDOW] = [1024 * 1024, 16 * 1024 * 1024];
const MOST_MEMORY_MB = 128;
const LONGEST_GREETING_MS = 10_000;

/** A connection on which nothing has come for so long is asked whether it is alive, and given up at the next look. */
const SILENCE_MS = 15_000;

/** Speaks HTTP/2 over a socket, once the server has done so. `tellChange` says when it has room again, or is over. */
export async function openSession(
  server: string,
  socket: TLSSocket,
  clock: Clock,
  tellChange: () => void,
): Promise<Session> {
  const session = connect(server, {
    createConnection: () => socket,
    settings: { enablePush: false, initialWindowSize: STREAM_WINDOW },
    maxSessionMemory: MOST_MEMORY_MB,
  });
  // What goes wrong is told to each request.
  session.on('error', () => undefined);
  await greeted(session, clock);
  session.setLocalWindowSize(SESSION_WINDOW);
  const endWatch = watchSilence(session, socket, clock);
  session.once('close', () => {
    endWatch();
    tellChange();
  });
  return sessionOf(session, socket, tellChange);
}

function sessionOf(session: ClientHttp2Session, socket: TLSSocket, tellChange: () => void): Session {
  const underway = new Underway(() => {
    session.destroy();
    // Node would wait for the server to end its half.
    socket.destroy();
  });
  session.once('goaway', () => {
    underway.retire();
    tellChange();
  });
  let hasAnswered = false;
  const answered = () => {
    hasAnswered = true;
  };
  const isOver = () => underway.isRetired || session.closed || session.destroyed;
  return {
    isOver,
    hasRoom: () => !isOver() && underway.count < (session.remoteSettings.maxConcurrentStreams ?? Infinity),
    send: async (request, signal) => {
      const wasGood = hasAnswered;
      const end = underway.begin();
      const endAndTell = () => {
        end();
        tellChange();
      };
      return await exchange(session, request, signal, { wasGood, answered, end: endAndTell });
    },
    retire: () => underway.retire(),
    destroy: () => session.destroy(new Error('closed'), constants.NGHTTP2_NO_ERROR),
  };
}

/** Before its settings have come, nobody knows how much a server takes, or that it speaks HTTP/2 at all. */
function greeted(session: ClientHttp2Session, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (message: string, reason: ConnectionErrorReason = 'NotConnected') => {
      cancel();
      reject(new ConnectionError(reason, message));
      session.destroy();
    };
    const cancel = clock.after(LONGEST_GREETING_MS, () => fail('the server says nothing'));
    session.once('remoteSettings', () => {
      cancel();
      resolve();
    });
    session.once('error', error => fail(wordsOf(error), isNoHttp2(error) ? 'Garbled' : 'NotConnected'));
    session.once('close', () => fail('the connection was closed before it was used'));
  });
}

/** What has come is read before anything is judged: a process that was held for a while wakes with its clock first. */
function watchSilence(session: ClientHttp2Session, socket: TLSSocket, clock: Clock): () => void {
  let [received, isAsked] = [socket.bytesRead, false];
  const judge = () => {
    const isSilent = socket.bytesRead === received;
    if (isSilent && isAsked) {
      session.destroy(new Error('the server is silent'), constants.NGHTTP2_CANCEL);
      return;
    }
    isAsked = isSilent && !session.destroyed && session.ping(() => undefined);
    received = socket.bytesRead;
    cancel = clock.after(SILENCE_MS, look);
  };
  const look = () => clock.soon(judge);
  let cancel = clock.after(SILENCE_MS, look);
  return () => cancel();
}
