import { GrpcError } from '../grpc/status.ts';
import { bytesField, isMessage, messageOf } from '../wire.ts';

/** In requests and answers of hooks about one message, this field is the message. */
const MESSAGE = 1;

/**
 * The answer of a hook about one message: what `change` makes of it, or no message where none was sent. A request that
 * is no protobuf at all is refused: what an answer to it would delete is not known.
 */
export function answerWith(request: Uint8Array, change: (message: Uint8Array) => Uint8Array): Uint8Array {
  if (!isMessage(request)) throw brokenRequest();
  const message = messageOf(request, MESSAGE);
  return message ? bytesField(MESSAGE, change(message)) : new Uint8Array();
}

/** Ends a call whose request cannot be read. */
export function brokenRequest(): GrpcError {
  return new GrpcError('INVALID_ARGUMENT', 'the request is not a protobuf message');
}
