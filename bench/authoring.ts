/** Makes many MeshEndpoints with two routes each, and prints how many objects and how many bytes of JSON they are. */
import { backend, httpRoute, meshEndpoints, tcpRoute } from '../src/index.ts';
import { addressOf } from './many-endpoints.ts';

const OBJECTS = 1000;
const ENDPOINTS = 5;

function declared(index: number): readonly object[] {
  const metadata = { name: `service-${index}`, namespace: `team-${index % 50}` };
  const endpoints = Array.from({ length: ENDPOINTS }, (_, at) => ({
    name: `e${at}`,
    meshIP: addressOf(ENDPOINTS * index + at),
    meshFQDN: `device-${index}-${at}.example.ts.net`,
    port: 8080 as const,
    protocol: 'HTTP' as const,
    healthCheck: { enabled: true, path: '/healthz' },
  }));
  const service = meshEndpoints({ metadata, tailnet: 'example.ts.net', endpoints });
  const parent = { name: 'public', namespace: 'infra' };
  const matches = [{ path: { type: 'PathPrefix', value: `/service-${index}` } }] as const;
  const rules = [{ matches, backendRefs: [backend(service, 8080, { weight: 10 })] }];
  const web = httpRoute({ metadata, parentRefs: parent, hostnames: `s${index}.example.com`, rules });
  const bytes = tcpRoute({ metadata, parentRefs: parent, backendRefs: backend(service, 'e0') });
  return [service, web, bytes];
}

const objects = Array.from({ length: OBJECTS }, (_, index) => declared(index)).flat();
console.log(JSON.stringify({ objects: objects.length, bytes: JSON.stringify(objects).length }));
