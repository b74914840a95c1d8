import type { Kinds } from '../../../api/generated/types.ts';
import { createdTailnetName, defaultControlURL, isVendorAPI, OAUTH_SECRET } from '../../../api/names.ts';
import type { Device, Tailnets } from '../../../control/control.ts';
import type { Outcome } from '../../../runtime/queue/queue.ts';
import { Derived } from '../../../store/derived.ts';
import { endpointsByTailnet } from '../../../store/indexes.ts';
import type { ReadObjects, WriteResources } from '../../../store/resources.ts';
import type { TrackedRead, Tracking } from '../../../store/tracking.ts';
import { tailnetsByDomain } from '../../../store/traffic/resources.ts';
import { intervalMsOf, observeTailnet } from '../connection.ts';
import type { ConnectionDeps, ConnectionSettings } from '../connection.ts';
import { isCandidate, plan } from './plan.ts';
import type { Action, Input } from './plan.ts';

type MeshTailnet = Kinds['MeshTailnet'];

export type CreationDeps = Omit<ConnectionDeps, 'tailnets'> & {
  readonly tracking: Tracking;
  readonly write: Pick<WriteResources, 'apply' | 'remove'>;
  readonly tailnets: Pick<Tailnets, 'observe' | 'lastView' | 'forget'>;
};

/** The connection of a MeshTailnet that is created for a domain, by the defaults of the schema. */
export const CREATED_SETTINGS: ConnectionSettings = {
  oauth: {
    secretRef: { name: OAUTH_SECRET },
    clientIdKey: 'client-id',
    clientSecretKey: 'client-secret',
  },
  dialect: 'Auto',
  rateLimit: { requestsPerSecond: 5, burst: 10 },
  syncInterval: '30s',
};

/** All candidates share the Secret, and so one list of devices; no MeshTailnet has this name. */
const OBSERVED_AS = `secret/${OAUTH_SECRET}`;

/** How long until devices are listed again for a MeshTailnet that could not be created yet. */
const RETRY_MS = 30_000;

/** Creates the MeshTailnets that MeshEndpoints need, and removes those that none needs any more. */
export function creationReconciler(deps: CreationDeps) {
  const { tracking, write, tailnets, controlURL } = deps;
  const isUsed = new Derived(tracking, ['MeshEndpoints'], (domain, read) =>
    read.values(endpointsByTailnet).includes(domain),
  );
  const isSecretOfOther = new Derived(tracking, ['MeshTailnet'], (_, read) =>
    read.exceptStatus.list('MeshTailnet').some(usesSecretElsewhere),
  );
  /** The Secret of another control API is not sent to the vendor's because a user names one of its domains. */
  const urlFor = (domain: string, read: TrackedRead): string | undefined =>
    controlURL ?? (read.value(isSecretOfOther, 'all') ? undefined : defaultControlURL(domain));
  const candidates = new Set<string>();
  const devicesOf = async (url: string): Promise<readonly Device[]> => {
    const options = { name: OBSERVED_AS, intervalMs: intervalMsOf(CREATED_SETTINGS) };
    const connection = await observeTailnet(CREATED_SETTINGS, options, { ...deps, controlURL: url });
    return connection.view?.devices ?? [];
  };
  return async (name: string, existing: MeshTailnet | undefined, read: TrackedRead): Promise<Outcome> => {
    const wanted = gather(name, existing, isUsed, read).map(each => {
      const isNamed = isCandidate(each) && each.domain !== undefined;
      // Without a control API there is nothing to create a MeshTailnet from.
      return { ...each, url: isNamed ? urlFor(each.domain, read) : undefined };
    });
    const [url] = wanted.flatMap(each => each.url ?? []);
    if (url !== undefined) candidates.add(name);
    else if (candidates.delete(name) && candidates.size === 0) tailnets.forget(OBSERVED_AS);
    const devices = url === undefined ? [] : await devicesOf(url);
    const actions = wanted.map(each => plan({ ...each, devices: each.url === url ? devices : [] }));
    await perform(actions.find(action => action.do !== 'nothing') ?? { do: 'nothing' }, write);
    return url === undefined ? { requeue: 'on-change' } : { requeue: 'after', ms: RETRY_MS };
  };
}

/** Whether the Secret of the contract is that of another control API than the vendor's. */
function usesSecretElsewhere({ spec: { oauth, controlURL } }: MeshTailnet): boolean {
  const usesSecret = !oauth.workloadIdentity && oauth.secretRef.name === OAUTH_SECRET;
  return usesSecret && controlURL !== undefined && !isVendorAPI(controlURL);
}

/** For each domain that is wanted under the name: anyone can name one whose MeshTailnet would have it, and has no devices. */
function gather(
  name: string,
  existing: MeshTailnet | undefined,
  isUsed: Derived<boolean>,
  read: TrackedRead,
): readonly Omit<Input, 'devices'>[] {
  const domains = existing ? [existing.spec.tailnet] : domainsNamed(name, read);
  const used = domains.filter(one => read.value(isUsed, one));
  if (used.length === 0) return [{ existing, domain: undefined, isTaken: false }];
  return used.map(domain => {
    const others = read.exceptStatus.find(tailnetsByDomain, domain);
    return { existing, domain, isTaken: others.some(({ metadata }) => metadata.name !== name) };
  });
}

/** The domains of MeshEndpoints whose MeshTailnet would have this name. */
function domainsNamed(name: string, read: ReadObjects): readonly string[] {
  const domains = read.values(endpointsByTailnet);
  return domains.filter(domain => createdTailnetName(domain) === name).sort();
}

async function perform(action: Action, write: CreationDeps['write']): Promise<void> {
  switch (action.do) {
    case 'create':
      return write.apply(action.object);
    case 'remove':
      return write.remove(action.ref);
    case 'nothing':
      return undefined;
  }
}
