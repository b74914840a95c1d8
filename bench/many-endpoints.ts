import { API_VERSION } from '../src/api/generated/kinds.ts';

const ENDPOINTS = 5;

/** A MeshEndpoints with five endpoints, as an API server returns it, with managed fields. */
export function manyEndpoints(index: number, revision = 0): Readonly<Record<string, unknown>> {
  const fields = { 'f:spec': { 'f:endpoints': {}, 'f:tailnet': {} }, 'f:metadata': { 'f:labels': {} } };
  return {
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata: {
      name: `service-${index}`,
      namespace: `team-${index % 50}`,
      uid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
      generation: 1 + revision,
      resourceVersion: String(1_000 + index + revision * 100_000),
      creationTimestamp: '2026-01-31T12:00:00Z',
      labels: { app: `service-${index}`, revision: String(revision) },
      managedFields: [{ manager: 'kubectl', operation: 'Apply', fieldsType: 'FieldsV1', fieldsV1: fields }],
    },
    spec: {
      tailnet: `tailnet-${index % 5}.ts.net`,
      endpoints: Array.from({ length: ENDPOINTS }, (_, at) => ({
        name: `e${at}`,
        meshFQDN: `device-${index}-${at}.example.ts.net`,
        meshIP: addressOf(ENDPOINTS * index + at),
        port: 8080,
        protocol: 'HTTP',
      })),
    },
  };
}

/** The address of an endpoint, by its number among all. */
export function addressOf(number: number): string {
  return `100.64.${number >> 8}.${number & 255}`;
}
