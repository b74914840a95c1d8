import { decode } from '../../../src/api/objects/decode.ts';
import { formatFault } from '../../../src/api/validation/fault.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import type { Resource } from '../../../src/api/objects/resource.ts';
import { named } from '../declared.ts';
import { meshEndpoints } from '../objects.ts';

/** An object as it is read. */
export function resourceOf(value: object): Resource {
  const decoding = decode(value);
  if (decoding.is === 'resource') return decoding.resource;
  throw new Error(decoding.is === 'faulty' ? decoding.faults.map(formatFault).join('; ') : 'is not read');
}

/** A MeshEndpoints as it is read, with some of its spec and metadata replaced. */
export function readMeshEndpoints(
  name: string,
  spec: Readonly<Record<string, unknown>> = {},
  metadata: Readonly<Record<string, unknown>> = {},
): Kinds['MeshEndpoints'] {
  const resource = resourceOf(named(meshEndpoints(spec), name, metadata));
  if (resource.kind !== 'MeshEndpoints') throw new Error(`is a ${resource.kind}`);
  return resource;
}
