import { keyOf } from '../../api/key.ts';
import type { Key } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import { titleOfSubject } from '../../api/problem.ts';
import type { Declared, Finding } from './objects.ts';

/** Finds objects that files have twice: the API server keeps what is applied last. */
export function checkRepeated(objects: readonly Declared[]): readonly Finding[] {
  const first = new Map<Key, Declared>();
  return objects.flatMap(declared => {
    const { resource, at } = declared;
    if (!resource) return [];
    const about = refTo(resource);
    const other = first.get(keyOf(about));
    if (!other) {
      first.set(keyOf(about), declared);
      return [];
    }
    const problem = { reason: 'Repeated', text: titleOfSubject(about), fix: 'remove one of them' } as const;
    const [here, before] = [at(problem), other.at(problem)];
    if (before.file === undefined) return [];
    const place = `${before.file === here.file ? '' : `${before.file}, `}line ${before.line}`;
    return [
      { ...here, text: `${problem.text} is also in ${place}: what is applied last replaces the other` },
    ];
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
    const text = `${name} has the address and port of ${other}, and Envoy keeps one endpoint per address`;
    const fix = 'correct one, or remove it';
    return [at({ reason: 'DuplicateAddress', at: ['spec', 'endpoints', index], text, fix })];
  });
}
