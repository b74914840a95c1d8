import { findCondition } from '../../api/conditions.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { defaultControlURL } from '../../api/names.ts';
import { discovers, vipServicesIn } from '../../api/objects/endpoints.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { beyondTailnet, serviceTagNotAllowed } from '../../api/objects/service-tags.ts';
import { beyondAllowed, tagNotAllowed } from '../../api/objects/tag-selectors.ts';
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
      const steps = ['spec', 'serviceDiscovery', 'vipServices', index];
      const service = `${tailnet} ${name.replace(/^svc:/, '')}`;
      const other = first.get(service);
      if (other?.resource) {
        const text = `${titleOf(other.resource)} lists service ${name}, too, and the older object has it`;
        const fix = 'use another name, or remove one of them';
        return [at({ reason: 'ListedByOther', at: [...steps, 'name'], text, fix })];
      }
      first.set(service, declared);
      if (discovers(resource) || endpoints.some(each => each.name === targetEndpoint)) return [];
      const text = `the object has no endpoint ${targetEndpoint}`;
      const fix = `use the name of one that it has (${endpoints.map(each => each.name).join(', ') || 'it has none'})`;
      return [at({ reason: 'TargetNotFound', at: [...steps, 'targetEndpoint'], text, fix })];
    });
  });
}

/** Finds selectors that can match no device, because the MeshTailnet does not allow the tags. */
export function checkAllowedTags(objects: readonly Declared[]): readonly Finding[] {
  const tailnetOf = tailnetsIn(objects);
  return objects.flatMap(({ resource, at }) => {
    if (resource?.kind !== 'MeshEndpoints' || !discovers(resource)) return [];
    const owner = tailnetOf(resource);
    const keys = owner ? beyondAllowed(resource.spec.tagSelectors ?? [], owner.spec.allowedTags) : [];
    if (!owner || keys.length === 0) return [];
    return [at({ ...tagNotAllowed(owner.metadata.name, keys), at: ['spec', 'tagSelectors'] })];
  });
}

/** Finds VIP services with tags that the MeshTailnet does not have; one that is registered may keep its own. */
export function checkServiceTags(objects: readonly Declared[]): readonly Finding[] {
  const tailnetOf = tailnetsIn(objects);
  return objects.flatMap(({ resource, at }) => {
    if (resource?.kind !== 'MeshEndpoints') return [];
    const owner = tailnetOf(resource);
    const { vipServices: states = [] } = resource.status ?? {};
    return vipServicesIn(resource).flatMap(({ name, tags = [] }, index) => {
      const isRegistered = states.some(each => each.name === name && each.status === 'Registered');
      const beyond = owner && !isRegistered ? beyondTailnet(tags, owner) : [];
      if (!owner || beyond.length === 0) return [];
      const steps = ['spec', 'serviceDiscovery', 'vipServices', index, 'tags'];
      return [at({ ...serviceTagNotAllowed(beyond, owner), at: steps })];
    });
  });
}

/** The MeshTailnet of a MeshEndpoints, where it is among the objects. */
function tailnetsIn(objects: readonly Declared[]) {
  const tailnets = objects.flatMap(({ resource }) => (resource?.kind === 'MeshTailnet' ? [resource] : []));
  return ({ spec }: Kinds['MeshEndpoints']) =>
    oldestOf(tailnets.filter(each => each.spec.tailnet === spec.tailnet));
}

/** Finds selectors that match no device, by what the operator has found; objects in files have no status. */
export function checkSelectors({ resource, at }: Declared): readonly Finding[] {
  if (resource?.kind !== 'MeshEndpoints' || !discovers(resource)) return [];
  const { devices, matched } = resource.status?.discovery ?? {};
  if (matched !== 0) return [];
  const discovered = findCondition(resource.status?.conditions, 'Discovered');
  if (discovered?.reason === 'DevicesAway')
    return [at({ reason: 'DevicesAway', at: ['spec', 'tagSelectors'], text: discovered.message })];
  const selectors = (resource.spec.tagSelectors ?? []).map(({ key, operator, values = [] }) =>
    [key, operator, values.join('|')].filter(text => text !== '').join(' '),
  );
  const text = `none of the ${devices} devices of ${resource.spec.tailnet} matches all selectors (${selectors.join(', ')})`;
  const fix = 'tag a device, or correct the selectors';
  return [at({ reason: 'NoDevices', at: ['spec', 'tagSelectors'], text, fix })];
}

/** Finds MeshTailnets whose control API is not known; the operator knows whether its own configuration has one. */
export function checkControlURL({ resource, at }: Declared): readonly Finding[] {
  if (resource?.kind !== 'MeshTailnet' || resource.spec.pool.mode === 'External') return [];
  const { controlURL, tailnet } = resource.spec;
  if (controlURL !== undefined || defaultControlURL(tailnet) !== undefined) return [];
  const reported = findCondition(resource.status?.conditions, 'Authenticated');
  if (reported && reported.reason !== 'ControlURLMissing') return [];
  const text = `is missing: the control API of ${tailnet} is not known, which is no domain under ts.net`;
  return [at({ reason: 'ControlURLMissing', at: ['spec', 'controlURL'], text, fix: FIX })];
}

const FIX =
  'set it, or CONTROL_API_URL for all MeshTailnets; if spec.tailnet is not the domain of your tailnet, correct that (`tailscale status --json` on a device has it as MagicDNSSuffix)';
