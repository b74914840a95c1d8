import type { Call } from './call.ts';
import { refusalOf } from './headers.ts';
import type { RequestHead } from './http2/request-fields.ts';
import type { MessageReader } from './message-reader.ts';
import type { Streaming, Unary } from './method.ts';
import { serveStream } from './streaming.ts';
import { parseTimeout } from './timeout.ts';
import { serveUnary } from './unary.ts';

/** What is made of a call: its way of reading messages, where it is one that reads. */
export type Accepted = {
  readonly is: 'unary' | 'streaming' | 'refused';
  readonly reader?: MessageReader | undefined;
};

const REFUSED: Accepted = { is: 'refused' };

/** Judges what a caller asks for, and begins to serve it. */
export function accept(call: Call, headers: RequestHead, method: Unary | Streaming | undefined): Accepted {
  const refusal = refusalOf(headers);
  if (refusal) call.end(refusal.status, refusal.httpStatus);
  else if (!method) call.end({ code: 'UNIMPLEMENTED', message: `there is no method ${headers[':path']}` });
  else startDeadline(call, headers['grpc-timeout']);
  if (call.isOver || !method) return REFUSED;
  const reader = method.is === 'unary' ? serveUnary(call, method) : serveStream(call, method);
  return { is: method.is, reader };
}

function startDeadline(call: Call, text: string | undefined): void {
  if (text === undefined) return;
  const timeoutMs = parseTimeout(text);
  if (timeoutMs === undefined) {
    call.end({ code: 'INTERNAL', message: 'grpc-timeout is not understood' });
  } else {
    call.endAfter(timeoutMs);
  }
}
