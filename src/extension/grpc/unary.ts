import type { Call } from './call.ts';
import { framed, sizeOf } from './framing.ts';
import { MessageReader } from './message-reader.ts';
import type { Bytes, Unary } from './method.ts';
import { readInto } from './read-into.ts';
import { GrpcError } from './status.ts';

/** Reads the one message of a call, and answers it. */
export function serveUnary(call: Call, method: Unary): MessageReader {
  const { limits, budget } = call.parts;
  let request: Uint8Array | undefined;
  const take = (message: Uint8Array): void => {
    if (request) throw new GrpcError('INTERNAL', 'a call of this method has one message, not more');
    call.hold(message.length);
    request = message;
  };
  const reader = new MessageReader({ most: limits.messageBytes, budget, take });
  const finished = (): void => {
    if (reader.isWithin) throw new GrpcError('INTERNAL', 'the request ends within a message');
    if (!request) throw new GrpcError('INTERNAL', 'a call of this method has one message, not none');
    answer(call, method, request);
    request = undefined;
  };
  readInto(call, reader, { finished });
  return reader;
}

function answer(call: Call, method: Unary, request: Uint8Array): void {
  const answered = method.call(request);
  if (answered instanceof Promise) {
    answered.then(bytes => send(call, bytes)).catch((error: unknown) => call.fail(error));
  } else {
    send(call, answered);
  }
}

function send(call: Call, bytes: Bytes): void {
  const size = sizeOf(bytes);
  call.judgeAnswer(size);
  call.hold(size);
  call.send(framed(bytes), 'end');
}
