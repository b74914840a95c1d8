import type { GatewayObjects } from './gateway.ts';
import type { LabPlaces } from './lab.ts';

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
