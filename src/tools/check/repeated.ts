import { keyOf } from '../../api/key.ts';
import type { Key } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import { titleOf } from './objects.ts';
import type { Declared, Finding } from './objects.ts';

/** Finds objects that are there twice: the API server keeps what is applied last. */
export function checkRepeated(objects: readonly Declared[]): readonly Finding[] {
  const first = new Map<Key, Declared>();
  return objects.flatMap(declared => {
    const { resource, at } = declared;
    if (!resource) return [];
    const key = keyOf(refTo(resource));
    const other = first.get(key);
    if (!other) {
      first.set(key, declared);
      return [];
    }
    const [here, before] = [at, other.at].map(each => each([], 'error', 'Repeated', ''));
    if (!here || before?.file === undefined) return [];
    const place = `${before.file === here.file ? '' : `${before.file}, `}line ${before.line}`;
    const message = `${titleOf(resource)} is also in ${place}: what is applied last replaces the other: remove one of them`;
    return [{ ...here, message }];
  });
}

/** Finds endpoints of one object that have the same address and port. */
export function checkAddresses({ resource, at }: Declared): readonly Finding[] {
  if (resource?.kind !== 'MeshEndpoints') return [];
  const first = new Map<string, string>();
  return (resource.spec.endpoints ?? []).flatMap(({ name, meshIP, port, externalTarget }, index) => {
    const address = externalTarget ?? `${meshIP} ${port}`;
    const other = first.get(address);
    if (other === undefined) {
      first.set(address, name);
      return [];
    }
    const path = `spec.endpoints[${index}]`;
    const message = `${path}: ${name} has the address and port of ${other}, and Envoy keeps one endpoint per address: correct one, or remove it`;
    return [at(['spec', 'endpoints', String(index)], 'error', 'DuplicateAddress', message)];
  });
}
