import { messageOf } from '../process/errors.ts';
import { requestThrough } from '../gateway/envoy.ts';
import type { GatewayAnswer } from '../gateway/envoy.ts';
import type { GatewayObjects } from '../gateway/gateway.ts';
import type { LabPlaces } from '../lab.ts';

/** Where the objects of examples/quickstart say that things are. */
export const QUICKSTART_PLACES: LabPlaces = {
  proxyPort: 1055,
  services: {
    'web-1': { http: 18_081, tcp: 18_091, grpc: 18_101 },
    'web-2': { http: 18_082, tcp: 18_092, grpc: 18_102 },
  },
};

/** The Gateway of examples/quickstart. */
export const QUICKSTART_GATEWAY: Omit<GatewayObjects, 'folder'> = {
  name: 'quickstart',
  namespace: 'default',
  listeners: { http: 10_080, tcp: 10_090 },
};

/** The host of its first route. */
export const QUICKSTART_HOST = 'web.example.com';

const ANSWERED_WITHIN_MS = 60_000;

/** Asks until there is an answer, for a while; gives what came last, and looks after the parts meanwhile. */
export async function askQuickstart(
  listener: string,
  stop: AbortSignal,
  look: () => void,
): Promise<GatewayAnswer> {
  const deadline = performance.now() + ANSWERED_WITHIN_MS;
  for (;;) {
    const answer = await requestThrough(listener, { host: QUICKSTART_HOST }).catch(noAnswer);
    if (answer.status === 200 || stop.aborted || performance.now() > deadline) return answer;
    look();
    await new Promise(resolve => setTimeout(resolve, 100));
  }
}

function noAnswer(error: unknown): GatewayAnswer {
  return { status: 0, headers: {}, body: messageOf(error) };
}
