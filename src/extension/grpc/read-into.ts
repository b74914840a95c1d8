import type { Call } from './call.ts';
import type { MessageReader } from './message-reader.ts';

/** What is to be done about what is heard of a call. */
type Reactions = {
  readonly finished: () => void;
  readonly sent?: () => void;
  readonly closed?: () => void;
};

/** Hands what comes to the reader until the call is over; what comes then, and what has come, is thrown away. */
export function readInto(call: Call, reader: MessageReader, { finished, sent, closed }: Reactions): void {
  const attempt = (act: () => void): void => {
    try {
      act();
    } catch (error) {
      call.fail(error);
      reader.drop();
    }
  };
  call.stream.listen({
    data: piece => {
      if (!call.isOver) attempt(() => reader.read(piece));
    },
    finished: () => {
      if (!call.isOver) attempt(finished);
    },
    ...(sent && { sent: () => attempt(sent) }),
    closed: () => {
      if (closed) attempt(closed);
      call.close();
    },
  });
}
