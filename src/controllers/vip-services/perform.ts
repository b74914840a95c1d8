import { ControlError } from '../../control/control.ts';
import type { ControlApi, ControlErrorReason, Device } from '../../control/control.ts';
import { abandoned, decide } from './decision.ts';
import type { Action, Claim, Context, Result } from './decision.ts';

export type PerformOptions = {
  readonly claims: ReadonlyMap<string, Claim>;
  readonly contextOf: (name: string) => Context;
  /** Undefined where they are not known. */
  readonly devices: readonly Device[] | undefined;
  readonly signal?: AbortSignal;
};

export type PerformDeps = {
  readonly api: Pick<ControlApi, 'service' | 'putService' | 'deleteService' | 'serviceHosts'>;
  readonly count: (result: Result) => void;
};

export type Performed = {
  readonly written: readonly string[];
  /** Why a service could not be written. */
  readonly failures: ReadonlyMap<string, ControlError>;
};

/** What may concern all services, and not only the one of the request. */
export const OF_ALL: ReadonlySet<ControlErrorReason> = new Set([
  ...(['CredentialsInvalid', 'ScopeMissing', 'NotSupported'] as const),
  ...(['Throttled', 'Unavailable', 'Unreachable'] as const),
]);

/** After these, the next request would fail, too. */
const OF_EACH: ReadonlySet<ControlErrorReason> = new Set([
  'CredentialsInvalid',
  'NotSupported',
  'Unreachable',
]);

/** One service may be refused as if the control API was away, as by a policy; after this number in a row the others wait. */
const MAX_IN_A_ROW = 3;

/** Reads each service again, decides by that, and writes it; what cannot be read or written is left for the next time. */
export async function perform(
  names: readonly string[],
  options: PerformOptions,
  deps: PerformDeps,
): Promise<Performed> {
  const written: string[] = [];
  const failures = new Map<string, ControlError>();
  let inARow = 0;
  for (const name of names) {
    options.signal?.throwIfAborted();
    try {
      const result = await performOne(name, options, deps);
      inARow = 0;
      if (result === undefined) continue;
      written.push(name);
      deps.count(result);
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      failures.set(name, error);
      deps.count('failed');
      inARow = OF_ALL.has(error.reason) ? inARow + 1 : 0;
      if (OF_EACH.has(error.reason) || inARow === MAX_IN_A_ROW) break;
    }
  }
  return { written, failures };
}

async function performOne(
  name: string,
  { claims, contextOf, devices }: PerformOptions,
  { api }: PerformDeps,
): Promise<Result | undefined> {
  const service = await api.service(name);
  const context = contextOf(name);
  const action: Action = decide(service, claims.get(name), context).action;
  switch (action.do) {
    case 'nothing':
      return undefined;
    case 'put':
      await api.putService(name, action.fields);
      return action.result;
    case 'delete':
      if (service && (await hasForeignHost(name, context.installation, devices, api))) {
        await api.putService(name, abandoned(service));
        return 'released';
      }
      await api.deleteService(name);
      return 'deleted';
  }
}

/** The hostname of a mesh pod ends with the id of its installation. */
const MESH_POD = /^meshd-.*-\d{1,3}-([0-9a-f]{8})$/;

/**
 * The installation of a mesh pod, by its device; undefined for other devices. Each device chooses its own hostname, but only the
 * owners of a tag assign that.
 */
export function installationOf({ hostname, tags, isExternal }: Device): string | undefined {
  return isExternal || tags.length === 0 ? undefined : MESH_POD.exec(hostname)?.[1];
}

/** The installations of mesh pods that are online: of devices with one of the tags of the MeshTailnet. */
export function onlineIn(devices: readonly Device[], tags: readonly string[]): readonly string[] {
  const pods = devices.filter(device => device.isOnline && device.tags.some(tag => tags.includes(tag)));
  return pods.flatMap(device => installationOf(device) ?? []);
}

/** Whether a mesh pod of another installation serves a service although that has no entry: it was lost, and is not to be deleted with it. */
async function hasForeignHost(
  name: string,
  installation: string,
  devices: readonly Device[] | undefined,
  api: Pick<ControlApi, 'serviceHosts'>,
): Promise<boolean> {
  const hosts = await api.serviceHosts(name);
  if (hosts.length === 0) return false;
  return hosts.some(({ deviceId }) => {
    const device = devices?.find(({ id }) => id === deviceId);
    if (!device) return devices === undefined;
    const other = installationOf(device);
    return device.isOnline && other !== undefined && other !== installation;
  });
}
