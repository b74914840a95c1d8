import type { EndpointStatus, Kinds } from '../../api/generated/types.ts';
import { discovers } from '../../api/objects/endpoints.ts';
import type { ResolvedEndpoint } from '../../traffic/resolve-backend-ref.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

const EXPECTED = 'devices-of-tagselectors';

/** Whether an endpoint stands for all devices that match the tagSelectors of its object: it is neither in its spec nor discovered. */
export function isExpected({
  endpoint: { name },
  object,
}: Pick<ResolvedEndpoint, 'endpoint' | 'object'>): boolean {
  const { endpoints = [] } = object.spec;
  return (
    name === EXPECTED &&
    object.status?.discovery?.devices === undefined &&
    !endpoints.some(each => each.name === name)
  );
}

/** Whether an object finds devices that no status lists yet, as in files. */
export function isUndiscovered(object: MeshEndpoints): boolean {
  return discovers(object) && object.status?.discovery?.tailnet !== object.spec.tailnet;
}

/**
 * An object that has not found its devices yet, with an endpoint in place of them, so that their port and protocol are judged as
 * they will be. The index distinguishes the addresses of objects. Without a port or protocol in the template, tags decide these.
 */
export function withExpected(object: MeshEndpoints, index: number): MeshEndpoints {
  const { endpointTemplate: { port, protocol } = {}, tailnet } = object.spec;
  if (!isUndiscovered(object) || port === undefined || protocol === undefined) return object;
  const expected: EndpointStatus = {
    name: EXPECTED,
    address: `100.127.${(index >> 8) & 255}.${index & 255}:${port}`,
    meshFQDN: `${EXPECTED}.${tailnet}`,
    protocol,
    source: 'TagSelector',
    status: 'Healthy',
  };
  return { ...object, status: { ...object.status, discovery: { tailnet }, endpoints: [expected] } };
}
