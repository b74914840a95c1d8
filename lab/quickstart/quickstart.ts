import { messageOf } from '../process/errors.ts';
import { requestThrough } from '../gateway/envoy.ts';
import type { GatewayResponse } from '../gateway/envoy.ts';
import type { GatewayObjects } from '../gateway/gateway.ts';
import type { FixedPorts } from '../lab.ts';

/** The ports that the objects of examples/quickstart name. */
export const QUICKSTART_PORTS: FixedPorts = {
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

const TIMEOUT_MS = 60_000;

/** Sends requests until one is answered with 200, for a minute; returns the last response. `check` is called before each retry. */
export async function requestQuickstart(
  listener: string,
  stop: AbortSignal,
  check: () => void,
): Promise<GatewayResponse> {
  const deadline = performance.now() + TIMEOUT_MS;
  for (;;) {
    const response = await requestThrough(listener, { host: QUICKSTART_HOST }).catch(noResponse);
    if (response.status === 200 || stop.aborted || performance.now() > deadline) return response;
    check();
    await new Promise(resolve => setTimeout(resolve, 100));
  }
}

function noResponse(error: unknown): GatewayResponse {
  return { status: 0, headers: {}, body: messageOf(error) };
}
