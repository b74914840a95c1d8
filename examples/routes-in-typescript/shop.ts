import { ApiObject, Chart } from 'cdk8s';
import type { Construct } from 'constructs';
import { backend, httpRoute, meshEndpoints, referenceGrant, tcpRoute } from 'mesh-gateway';

const tailnet = 'example.ts.net';
const namespace = 'shop';

/** The machines of the shop: two web servers, one of them new, and a database. */
export const shop = meshEndpoints({
  metadata: { name: 'shop', namespace },
  tailnet,
  endpoints: [
    {
      name: 'web',
      meshIP: '100.64.0.11',
      meshFQDN: 'web.example.ts.net',
      port: 8080,
      protocol: 'HTTP',
      healthCheck: { enabled: true, path: '/healthz' },
    },
    {
      name: 'web-next',
      meshIP: '100.64.0.12',
      meshFQDN: 'web-next.example.ts.net',
      port: 8081,
      protocol: 'HTTP',
    },
    { name: 'database', meshIP: '100.64.0.20', meshFQDN: 'db.example.ts.net', port: 5432, protocol: 'TCP' },
  ],
});

/** The shop with its routes; one of them lives with the people of the front. */
export class Shop extends Chart {
  constructor(scope: Construct, id: string) {
    super(scope, id);
    new ApiObject(this, 'endpoints', shop);

    const web = httpRoute({
      metadata: { name: 'web', namespace: 'front' },
      parentRefs: { name: 'public', namespace: 'infra' },
      hostnames: 'shop.example.com',
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          backendRefs: [backend(shop, 'web', { weight: 95 }), backend(shop, 'web-next', { weight: 5 })],
          timeouts: { request: '10s' },
        },
      ],
    });
    new ApiObject(this, 'web', web);
    new ApiObject(this, 'front', referenceGrant({ metadata: { name: 'front' }, from: web, to: shop }));

    new ApiObject(
      this,
      'database',
      tcpRoute({
        metadata: { name: 'database', namespace },
        parentRefs: { name: 'public', namespace: 'infra', sectionName: 'database' },
        backendRefs: backend(shop, 5432),
      }),
    );
  }
}
