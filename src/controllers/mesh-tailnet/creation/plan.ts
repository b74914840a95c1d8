import { API_VERSION } from '../../../api/generated/kinds.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import type { Ref } from '../../../api/key.ts';
import { createdTailnetName, MANAGED_BY } from '../../../api/names.ts';
import type { Device } from '../../../control/control.ts';
import type { OwnedResource } from '../../../store/resources.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** The MeshTailnet that is created for a domain with the contract's Secret, which all fields default to. */
export function createdTailnet(domain: string): OwnedResource {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshTailnet',
    metadata: { name: createdTailnetName(domain), labels: MANAGED_BY },
    spec: { tailnet: domain },
  };
}

/** Whether we created a MeshTailnet. */
function isCreated({ metadata: { labels = {} } }: MeshTailnet): boolean {
  return Object.entries(MANAGED_BY).every(([name, value]) => labels[name] === value);
}

/** Everything that decides whether the MeshTailnet of a name is created or removed. */
export type Input = {
  readonly existing: MeshTailnet | undefined;
  /** The domain that MeshEndpoints want under this name; undefined where none does. */
  readonly domain: string | undefined;
  /** Whether another MeshTailnet has that domain. */
  readonly isTaken: boolean;
  /** The devices that the credentials of the contract's Secret list; read only for a candidate. */
  readonly devices: readonly Device[];
};

/** The action that leads to the desired state. */
export type Action =
  | { readonly do: 'nothing' }
  | { readonly do: 'create'; readonly object: OwnedResource }
  | { readonly do: 'remove'; readonly ref: Ref<'MeshTailnet'> };

/*
 *   existing          wanted by no MeshEndpoints, or taken    wanted
 *   none              nothing                                 create where a device is in the domain
 *   created by us     remove                                  nothing
 *   of a user         nothing                                 nothing
 */

/** Whether a MeshTailnet is created if there is a device in the domain. */
export function isCandidate({ existing, domain, isTaken }: Omit<Input, 'devices'>): boolean {
  return !existing && domain !== undefined && !isTaken;
}

/** Decides whether the MeshTailnet of a name is created or removed. */
export function plan({ existing, domain, isTaken, devices }: Input): Action {
  const isWanted = domain !== undefined && !isTaken;
  if (existing) {
    const { name } = existing.metadata;
    if (isWanted || !isCreated(existing)) return { do: 'nothing' };
    return { do: 'remove', ref: { kind: 'MeshTailnet', namespace: '', name } };
  }
  return isWanted && devices.some(device => isIn(device, domain))
    ? { do: 'create', object: createdTailnet(domain) }
    : { do: 'nothing' };
}

/** Whole domains are compared: every device of a vendor is below `ts.net`, which is no tailnet. */
function isIn({ name, isExternal }: Device, domain: string): boolean {
  const [, ...labels] = name.toLowerCase().replace(/\.$/, '').split('.');
  return !isExternal && labels.join('.') === domain.toLowerCase();
}
