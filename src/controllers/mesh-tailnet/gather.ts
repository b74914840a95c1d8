import { durationMs } from '../../api/duration.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { Credentials, Tailnets } from '../../control/control.ts';
import type { OwnData, ReadOwnNamespace } from '../../store/own-namespace.ts';
import { ResourceError } from '../../store/resources.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import { oldestTailnet } from '../../traffic/resolve-backend-ref.ts';
import { tailnetsByDomain } from '../../store/traffic/resources.ts';
import { hasFinalizer } from './pool/members.ts';
import type { AuthenticationProblem, Situation } from './status.ts';

type MeshTailnet = Kinds['MeshTailnet'];

export type GatherDeps = {
  readonly read: Pick<TrackedRead, 'exceptStatus'>;
  readonly ownNamespace: ReadOwnNamespace;
  readonly tailnets: Tailnets;
  /** The control API of MeshTailnets that name none. */
  readonly controlURL: string | undefined;
  /** The time of day. */
  readonly now: () => Date;
};

/** A situation before its pool is reconciled. */
export type Gathered = Omit<Situation, 'pool'>;

/** Reads everything that decides the status of a MeshTailnet, apart from its pool; lists devices if the last list is as old as the interval. */
export async function gather(
  tailnet: MeshTailnet,
  deps: GatherDeps,
  intervalMs = intervalMsOf(tailnet),
): Promise<Gathered> {
  const { spec, metadata } = tailnet;
  const origin = originOf(tailnet, deps.ownNamespace);
  const olderName = olderOf(tailnet, deps.read);
  const base = { tailnet, olderName, origin, secretVersion: undefined, trimmed: [] };
  const without = (problem: AuthenticationProblem | undefined): Gathered => ({
    ...base,
    problem,
    view: undefined,
    reach: undefined,
    now: deps.now(),
  });
  const url = spec.controlURL ?? deps.controlURL;
  // A pool that is left of an earlier time is removed also where another object has the tailnet by now.
  const isSuperseded = olderName !== undefined && !hasFinalizer(tailnet);
  if (isSuperseded || url === undefined) {
    deps.tailnets.forget(metadata.name);
    return without(isSuperseded ? undefined : CONTROL_URL_MISSING);
  }
  const ca = await readAuthority(tailnet, deps.ownNamespace);
  if (ca.problem) {
    // Not forgotten: a ConfigMap may be unreadable for a moment only.
    const known = deps.tailnets.lastView(metadata.name);
    const view = known && { ...known, isStale: true, nextMs: intervalMsOf(tailnet) };
    return { ...without(ca.problem), view };
  }
  const { credentials, ...found } = await readCredentials(tailnet, origin, deps.ownNamespace);
  const view = await deps.tailnets.observe({
    name: metadata.name,
    endpoint: {
      url,
      scopes: spec.oauth.scopes ?? [],
      ...spec.rateLimit,
      ...(ca.pem === undefined ? {} : { ca: ca.pem }),
      ...(spec.proxyURL === undefined ? {} : { proxyURL: spec.proxyURL }),
    },
    credentials,
    intervalMs,
  });
  return { ...base, ...found, view, reach: { controlURL: url, ca: ca.pem }, now: deps.now() };
}

/** The time between two lists of devices. */
export function intervalMsOf({ spec }: MeshTailnet): number {
  return durationMs(spec.syncInterval) ?? 30_000;
}

const CONTROL_URL_MISSING: AuthenticationProblem = {
  reason: 'ControlURLMissing',
  message:
    'it is not known where the control API is: set spec.controlURL, or CONTROL_API_URL for all MeshTailnets',
};

/** Where the credentials come from, in words. */
function originOf({ spec: { oauth } }: MeshTailnet, { place }: ReadOwnNamespace): string {
  const { workloadIdentity, secretRef } = oauth;
  return workloadIdentity
    ? `workload identity ${workloadIdentity.clientID}`
    : `Secret ${secretRef.name} (${place})`;
}

/** The one that has the domain in its place, if there is one. */
function olderOf({ spec, metadata }: MeshTailnet, read: GatherDeps['read']): string | undefined {
  const oldest = oldestTailnet(read.exceptStatus.find(tailnetsByDomain, spec.tailnet));
  return oldest?.metadata.name === metadata.name ? undefined : oldest?.metadata.name;
}

type Authority = { readonly pem: string | undefined; readonly problem?: AuthenticationProblem };

/** The CA certificates for the control API, which a ConfigMap may hold. */
async function readAuthority({ spec }: MeshTailnet, ownNamespace: ReadOwnNamespace): Promise<Authority> {
  const { ca, configMapRef } = spec.controlCA ?? {};
  if (!configMapRef) return { pem: ca };
  const { name, key } = configMapRef;
  const what = `ConfigMap ${name} (${ownNamespace.place})`;
  const without = (why: string): Authority => ({
    pem: undefined,
    problem: { reason: 'Unreachable', message: `the CA of the control API is not known: ${what} ${why}` },
  });
  try {
    const pem = (await ownNamespace.configMap(name))?.data[key];
    if (pem === undefined) return without(`does not exist, or has no key ${key}: create it`);
    if (!pem.includes('-----BEGIN CERTIFICATE-----')) return without(`has no certificate under ${key}`);
    return { pem };
  } catch (error) {
    if (!(error instanceof ResourceError)) throw error;
    return without(`cannot be read (${error.message})`);
  }
}

type ReadCredentials = Pick<Situation, 'problem' | 'secretVersion' | 'trimmed'> & {
  readonly credentials: Credentials | undefined;
};

const NOTHING_READ = { secretVersion: undefined, trimmed: [], credentials: undefined };

/** Reads the Secret each time, so that a change of it is seen without a restart. */
async function readCredentials(
  { spec: { oauth } }: MeshTailnet,
  origin: string,
  ownNamespace: ReadOwnNamespace,
): Promise<ReadCredentials> {
  const { clientIdKey, clientSecretKey, workloadIdentity } = oauth;
  if (workloadIdentity) {
    const { clientID, audience } = workloadIdentity;
    const idToken = () => ownNamespace.serviceAccountToken(audience);
    const credentials = { kind: 'federated', clientId: clientID, audience, idToken } as const;
    return { ...NOTHING_READ, problem: undefined, credentials };
  }
  const without = (reason: AuthenticationProblem['reason'], message: string): ReadCredentials => ({
    ...NOTHING_READ,
    problem: { reason, message },
  });
  let secret: OwnData | undefined;
  try {
    secret = await ownNamespace.secret(oauth.secretRef.name);
  } catch (error) {
    if (!(error instanceof ResourceError)) throw error;
    const fix = error.reason === 'Refused' ? ': allow the operator to get it by a Role' : '';
    return without('SecretNotFound', `${origin} cannot be read (${error.message})${fix}`);
  }
  if (!secret) {
    const keys = `keys ${clientIdKey} and ${clientSecretKey}`;
    return without(
      'SecretNotFound',
      `${origin} does not exist: create it with the ${keys} of an OAuth client`,
    );
  }
  const { data, version: secretVersion } = secret;
  const missing = [clientIdKey, clientSecretKey].filter(key => (data[key] ?? '').trim() === '');
  if (missing.length > 0) {
    const message = `${origin} has no value under ${missing.join(' and ')}: add it`;
    return { ...without('SecretKeyMissing', message), secretVersion };
  }
  const [id = '', value = ''] = [data[clientIdKey], data[clientSecretKey]];
  const trimmed = [clientIdKey, clientSecretKey].filter(key => data[key] !== data[key]?.trim());
  const credentials = { kind: 'oauth', clientId: id.trim(), clientSecret: value.trim() } as const;
  return { problem: undefined, secretVersion, trimmed, credentials };
}
