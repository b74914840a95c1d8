import { discovers, vipServicesIn } from '../../api/objects/endpoints.ts';
import { titleOf } from './objects.ts';
import type { Declared, Finding } from './objects.ts';

/** Finds VIP services that are not registered: without their target, or with the name of another one of the tailnet. */
export function checkVipServices(objects: readonly Declared[]): readonly Finding[] {
  const first = new Map<string, Declared>();
  return objects.flatMap(declared => {
    const { resource, at } = declared;
    if (resource?.kind !== 'MeshEndpoints') return [];
    const { tailnet, endpoints = [] } = resource.spec;
    return vipServicesIn(resource).flatMap(({ name, targetEndpoint }, index) => {
      const steps = ['spec', 'serviceDiscovery', 'vipServices', String(index)];
      const path = `spec.serviceDiscovery.vipServices[${index}]`;
      const service = `${tailnet} ${name.replace(/^svc:/, '')}`;
      const other = first.get(service);
      if (other?.resource) {
        const message = `${path}.name: ${titleOf(other.resource)} lists service ${name}, too, and the older object has it: use another name, or remove one of them`;
        return [at([...steps, 'name'], 'error', 'ListedByOther', message)];
      }
      first.set(service, declared);
      if (discovers(resource) || endpoints.some(each => each.name === targetEndpoint)) return [];
      const message = `${path}.targetEndpoint: the object has no endpoint ${targetEndpoint}: use the name of one that it has (${endpoints.map(each => each.name).join(', ') || 'it has none'})`;
      return [at([...steps, 'targetEndpoint'], 'error', 'TargetNotFound', message)];
    });
  });
}

/** Finds selectors that match no device, by what the operator has found; objects in files have no status. */
export function checkSelectors({ resource, at }: Declared): readonly Finding[] {
  if (resource?.kind !== 'MeshEndpoints' || !discovers(resource)) return [];
  const { devices, matched } = resource.status?.discovery ?? {};
  if (matched !== 0) return [];
  const selectors = (resource.spec.tagSelectors ?? []).map(({ key, operator, values = [] }) =>
    [key, operator, values.join('|')].filter(text => text !== '').join(' '),
  );
  const message = `spec.tagSelectors: none of the ${devices} devices of ${resource.spec.tailnet} matches all selectors (${selectors.join(', ')}): tag a device, or correct the selectors`;
  return [at(['spec', 'tagSelectors'], 'error', 'NoDevices', message)];
}
