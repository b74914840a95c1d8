import { constants } from 'node:http2';
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  IncomingHttpHeaders,
  IncomingHttpStatusHeader,
} from 'node:http2';
import { ConnectionError, wordsOf } from './connection.ts';
import type { Answer, ConnectionErrorReason, WireRequest } from './connection.ts';

/** What is known of the connection that a request goes over, and whom to tell when it is over. */
type Around = {
  readonly wasGood: boolean;
  readonly answered: () => void;
  readonly end: () => void;
};

/** Sends a request over a session; fulfilled with the beginning of its answer. */
export function exchange(
  session: ClientHttp2Session,
  request: WireRequest,
  signal: AbortSignal,
  { wasGood, answered, end }: Around,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = opened(session, request, end);
    const ending = watchEnding(stream, session);
    let failure: Error | undefined;
    const abort = () => {
      reject(signal.reason as Error);
      stream.close(constants.NGHTTP2_CANCEL);
      // A session that is not well may never tell that a stream is closed.
      stream.destroy();
    };
    signal.addEventListener('abort', abort, { once: true });
    stream.on('error', (error: Error) => (failure = error));
    stream.once('close', () => {
      signal.removeEventListener('abort', abort);
      end();
      // After an answer this changes nothing.
      reject(failureOf(stream, failure, wasGood));
    });
    stream.once('response', headers => {
      answered();
      resolve(answerOf(stream, headers, signal, () => (ending.isWhole ? undefined : (failure ?? CUT))));
    });
    stream.end(request.body);
  });
}

function opened(session: ClientHttp2Session, request: WireRequest, end: () => void): ClientHttp2Stream {
  try {
    const headers = { ...request.headers, ':method': request.method, ':path': request.path };
    // Left to itself, Node ends a DELETE before its body.
    return session.request(headers, { endStream: request.body === undefined });
  } catch (error) {
    end();
    throw new ConnectionError('NotProcessed', wordsOf(error));
  }
}

function failureOf(stream: ClientHttp2Stream, failure: Error | undefined, wasGood: boolean): ConnectionError {
  const words = failure ? wordsOf(failure) : 'the connection ended before an answer began';
  return new ConnectionError(reasonOf(stream, failure, wasGood), words);
}

/** A stream without a number was never sent. */
function reasonOf(stream: ClientHttp2Stream, failure: unknown, wasGood: boolean): ConnectionErrorReason {
  const isRefused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
  if (isRefused || stream.id === undefined || stream.pending) return 'NotProcessed';
  if (isNoHttp2(failure)) return 'Garbled';
  return wasGood ? 'Stale' : 'Broken';
}

/** Whether a connection failed because of what came. */
export function isNoHttp2(error: unknown): boolean {
  return error instanceof Error && /PROTOCOL_ERROR|NGHTTP2_ERR_PROTO|Protocol error/.test(error.message);
}

/** Why an answer is not whole, if it is not. */
type Failure = () => Error | undefined;

/** Node ends the body of a stream that was reset, or whose connection died, as if it were whole. */
function watchEnding(stream: ClientHttp2Stream, session: ClientHttp2Session): { readonly isWhole: boolean } {
  const ending = { isWhole: false };
  stream.once('end', () => {
    const isWell = !session.destroyed && !stream.aborted;
    ending.isWhole = isWell && stream.rstCode === constants.NGHTTP2_NO_ERROR;
  });
  return ending;
}

function answerOf(
  stream: ClientHttp2Stream,
  given: IncomingHttpHeaders & IncomingHttpStatusHeader,
  signal: AbortSignal,
  failure: Failure,
): Answer {
  const headers = Object.entries(given)
    .filter(([name]) => !name.startsWith(':'))
    .map(([name, value]) => [name, String(value)]);
  return {
    status: given[':status'] ?? 0,
    headers: Object.fromEntries(headers) as Record<string, string>,
    body: bodyOf(stream, signal, failure),
  };
}

async function* bodyOf(
  stream: ClientHttp2Stream,
  signal: AbortSignal,
  failure: Failure,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of stream) yield chunk as Buffer;
    const error = failure();
    if (error) throw error;
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw new ConnectionError(isNoHttp2(error) ? 'Garbled' : 'Broken', wordsOf(error));
  } finally {
    // Servers end connections on which many streams are reset: one that is over is left alone.
    if (!stream.readableEnded) stream.close(constants.NGHTTP2_CANCEL);
  }
}

const CUT = new Error('the connection ended before the answer did');
