import type { DeviceOptions } from '../../lab/control-api/operations/registration.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import { API_VERSION } from '../../src/api/generated/kinds.ts';
import type { Kinds } from '../../src/api/generated/types.ts';
import { decode } from '../../src/api/objects/decode.ts';
import { NAMESPACE, PORT } from '../health/objects.ts';

const TAILNET = 'example.ts.net';
export const DEVICES = 10_000;
export const OBJECTS = 100;

/** The name of an object, and the value of the tag that it selects. */
export function objectName(index: number): string {
  return `shop-${index}`;
}

/** The devices of the tailnet, an equal number for each object, all with a tag that every object could select. */
export function deviceOptions(index: number): DeviceOptions {
  return {
    hostname: `web-${index}`,
    tags: ['tag:web', `tag:app-${objectName(index % OBJECTS)}`, `tag:region-${index % 7}`, 'tag:env-prod'],
  };
}

/** An object that selects the devices of one app, or all of them. */
export function selectingObject(index: number, selects: 'one app' | 'all devices'): KubeObject {
  const app = { key: 'app', operator: 'In', values: [objectName(index)] };
  const others = [
    { key: 'web', operator: 'Exists' },
    { key: 'env', operator: 'NotIn', values: ['dev', 'test'] },
  ];
  return {
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata: { name: objectName(index), namespace: NAMESPACE },
    spec: {
      tailnet: TAILNET,
      tagSelectors: selects === 'one app' ? [app, ...others] : others,
      endpointTemplate: { port: PORT, metadataFromTags: ['region'] },
    },
  };
}

/** The spec as it is stored, with the defaults of its fields. */
export function storedSpec(object: KubeObject): Kinds['MeshEndpoints']['spec'] {
  const decoding = decode(object);
  if (decoding.is === 'resource' && decoding.resource.kind === 'MeshEndpoints') return decoding.resource.spec;
  throw new Error(`${object.metadata.name} is not a MeshEndpoints`);
}

/** A tailnet with a control API, and proxies that others run. */
export function tailnetObject(controlURL: string, interval: string): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshTailnet',
    metadata: { name: 'example' },
    spec: {
      tailnet: TAILNET,
      controlURL,
      syncInterval: interval,
      pool: { mode: 'External', addresses: ['127.0.0.1:1055'] },
    },
  };
}
