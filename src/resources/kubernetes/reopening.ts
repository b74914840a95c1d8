import { KubeError } from './kube-error.ts';
import type { KubeRequest, KubeTransport } from './transport.ts';

/**
 * A transport that is opened anew when a request was not answered: for short requests that matter more than a connection
 * which may be dead without a word. Before the first request nothing is opened.
 */
export function reopening(open: () => KubeTransport): Pick<KubeTransport, 'ask' | 'close'> {
  let current: KubeTransport | undefined;
  const leave = async (transport: KubeTransport | undefined) => {
    if (current === transport) current = undefined;
    await transport?.close();
  };
  const ask = async (request: KubeRequest): Promise<unknown> => {
    const transport = (current ??= open());
    try {
      return await transport.ask(request);
    } catch (error) {
      const isAnswered = error instanceof KubeError && error.status !== undefined;
      if (!isAnswered) void leave(transport).catch(() => undefined);
      throw error;
    }
  };
  return { ask, close: () => leave(current) };
}
