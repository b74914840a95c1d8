import type { Clock } from '../../api/clock.ts';
import { throwIfLost } from './fenced.ts';
import type { Fence } from './fenced.ts';
import { KubeError } from './kube-error.ts';
import type { KubeRequest, KubeTransport } from './transport.ts';

/** How to ask an API server that may be busy. */
export type Asking = {
  readonly transport: Pick<KubeTransport, 'ask'>;
  /** What must hold from the first try to the last. */
  readonly fence?: Fence;
  readonly clock: Pick<Clock, 'after'>;
  /** At least 0, less than 1. */
  readonly random: () => number;
};

const MOST_TRIES = 4;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Asks, and asks again where the server is too busy to do anything, when it wishes that; not for ever, since whoever
 * wants it done tries again anyway, and later.
 */
export async function askAgain(request: KubeRequest, asking: Asking): Promise<unknown> {
  const { transport, fence, clock, random } = asking;
  const held = fence?.signal();
  for (let tries = 1; ; tries++) {
    try {
      return await transport.ask(request);
    } catch (failure) {
      if (tries === MOST_TRIES || !(failure instanceof KubeError) || !isBusy(failure)) throw failure;
      const wished = failure.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (tries - 1);
      const pauseMs = Math.min(wished, LONGEST_PAUSE_MS) * (1 + random() / 4);
      await new Promise<void>(resolve => void clock.after(pauseMs, resolve));
      // Who leads again meanwhile may have written something newer.
      if (held) throwIfLost(held);
    }
  }
}

/** 503 with a wish comes from a server, or a proxy before it, that did nothing. */
function isBusy({ reason, status, retryAfterMs }: KubeError): boolean {
  return reason === 'Busy' || (status === 503 && retryAfterMs !== undefined);
}
