import { durationMs } from '../../api/duration.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { ProblemAt } from '../../api/problem.ts';
import type { Credentials, Tailnets, TailnetView } from '../../control/control.ts';
import type { OwnData, ReadOwnNamespace } from '../../store/own-namespace.ts';
import { ResourceError } from '../../store/resources.ts';

type Problem = ProblemAt<'MeshTailnet Authenticated'>;

/** How the control API of a tailnet is reached, and with which credentials, as a MeshTailnet has it in its spec. */
export type ConnectionSettings = Pick<
  Kinds['MeshTailnet']['spec'],
  'oauth' | 'dialect' | 'controlURL' | 'controlCA' | 'proxyURL' | 'rateLimit' | 'syncInterval'
>;

/** How mesh pods reach the control server of a tailnet. */
export type ControlServer = { readonly controlURL: string; readonly ca: string | undefined };

/** A control API as it is configured, and what it shows of its tailnet. */
export type Connection = {
  /** What is wrong with the configuration or the Secret. */
  readonly problem: Problem | undefined;
  /** Where the credentials come from: Secret mesh-system/mesh-oauth. */
  readonly origin: string;
  readonly secretVersion: string | undefined;
  /** The keys of the Secret whose values had white space around them. */
  readonly trimmed: readonly string[];
  readonly view: TailnetView | undefined;
  /** Undefined where it is not known. */
  readonly controlServer: ControlServer | undefined;
};

export type ConnectionDeps = {
  readonly ownNamespace: ReadOwnNamespace;
  readonly tailnets: Pick<Tailnets, 'observe' | 'lastView'>;
  /** The control API of MeshTailnets that name none. */
  readonly controlURL: string | undefined;
};

export type ConnectionOptions = {
  /** Under which the tailnet is observed. */
  readonly name: string;
  /** The time between two lists of devices. */
  readonly intervalMs: number;
};

/** Reads credentials and CA, and observes the tailnet: that lists devices if the last list is as old as the interval. */
export async function observeTailnet(
  settings: ConnectionSettings,
  { name, intervalMs }: ConnectionOptions,
  { ownNamespace, tailnets, controlURL }: ConnectionDeps,
): Promise<Connection> {
  const without = (problem: Problem): Connection => ({
    ...unconnected(settings, ownNamespace),
    problem,
  });
  const url = settings.controlURL ?? controlURL;
  if (url === undefined) return without(CONTROL_URL_MISSING);
  const ca = await readAuthority(settings, ownNamespace);
  if (ca.problem) {
    // A ConfigMap may be unreadable for a moment only, so what is known still holds.
    const known = tailnets.lastView(name);
    const view = known && { ...known, isStale: true, nextMs: intervalMsOf(settings) };
    return { ...without(ca.problem), view };
  }
  const origin = originOf(settings, ownNamespace);
  const { credentials, ...found } = await readCredentials(settings, origin, ownNamespace);
  const { oauth, dialect, rateLimit, proxyURL } = settings;
  const view = await tailnets.observe({
    name,
    endpoint: {
      url,
      dialect,
      scopes: oauth.scopes ?? [],
      ...rateLimit,
      ...(ca.pem === undefined ? {} : { ca: ca.pem }),
      ...(proxyURL === undefined ? {} : { proxyURL }),
    },
    credentials,
    intervalMs,
  });
  return { origin, ...found, view, controlServer: { controlURL: url, ca: ca.pem } };
}

/** The connection of a tailnet that is not observed. */
export function unconnected(
  settings: ConnectionSettings,
  ownNamespace: Pick<ReadOwnNamespace, 'place'>,
): Connection {
  const origin = originOf(settings, ownNamespace);
  return { ...NOTHING_READ, problem: undefined, origin, view: undefined, controlServer: undefined };
}

/** The time between two lists of devices. */
export function intervalMsOf({ syncInterval }: Pick<ConnectionSettings, 'syncInterval'>): number {
  return durationMs(syncInterval) ?? 30_000;
}

const CONTROL_URL_MISSING: Problem = {
  reason: 'ControlURLMissing',
  text: 'it is not known where the control API is',
  fix: 'set spec.controlURL, or CONTROL_API_URL for all MeshTailnets',
};

/** Where the credentials come from, in words. */
function originOf({ oauth }: ConnectionSettings, { place }: Pick<ReadOwnNamespace, 'place'>): string {
  const { workloadIdentity, secretRef } = oauth;
  return workloadIdentity
    ? `workload identity ${workloadIdentity.clientID}`
    : `Secret ${secretRef.name} (${place})`;
}

type Authority = { readonly pem: string | undefined; readonly problem?: Problem };

/** The CA certificates for the control API, which a ConfigMap may hold. */
async function readAuthority(
  { controlCA }: ConnectionSettings,
  ownNamespace: ReadOwnNamespace,
): Promise<Authority> {
  const { ca, configMapRef } = controlCA ?? {};
  if (!configMapRef) return { pem: ca };
  const { name, key } = configMapRef;
  const what = `ConfigMap ${name} (${ownNamespace.place})`;
  const without = (why: string, fix?: string): Authority => {
    const text = `the CA of the control API is not known: ${what} ${why}`;
    return { pem: undefined, problem: { reason: 'Unreachable', text, ...(fix !== undefined && { fix }) } };
  };
  try {
    const pem = (await ownNamespace.configMap(name))?.data[key];
    if (pem === undefined) return without(`does not exist, or has no key ${key}`, 'create it');
    if (!pem.includes('-----BEGIN CERTIFICATE-----')) return without(`has no certificate under ${key}`);
    return { pem };
  } catch (error) {
    if (!(error instanceof ResourceError)) throw error;
    return without(`cannot be read (${error.message})`);
  }
}

type ReadCredentials = Pick<Connection, 'problem' | 'secretVersion' | 'trimmed'> & {
  readonly credentials: Credentials | undefined;
};

const NOTHING_READ = { secretVersion: undefined, trimmed: [] };

/** Reads the Secret each time, so that a change of it is seen without a restart. */
async function readCredentials(
  { oauth }: ConnectionSettings,
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
  const without = (problem: Problem): ReadCredentials => ({
    ...NOTHING_READ,
    problem,
    credentials: undefined,
  });
  let secret: OwnData | undefined;
  try {
    secret = await ownNamespace.secret(oauth.secretRef.name);
  } catch (error) {
    if (!(error instanceof ResourceError)) throw error;
    const fix = error.reason === 'Refused' && { fix: 'allow the operator to get it by a Role' };
    const text = `${origin} cannot be read (${error.message})`;
    return without({ reason: 'SecretNotFound', text, ...fix });
  }
  if (!secret) {
    const fix = `create it with the keys ${clientIdKey} and ${clientSecretKey} of an OAuth client`;
    return without({ reason: 'SecretNotFound', text: `${origin} does not exist`, fix });
  }
  const { data, version: secretVersion } = secret;
  const missing = [clientIdKey, clientSecretKey].filter(key => (data[key] ?? '').trim() === '');
  if (missing.length > 0) {
    const text = `${origin} has no value under ${missing.join(' and ')}`;
    return { ...without({ reason: 'SecretKeyMissing', text, fix: 'add it' }), secretVersion };
  }
  const [id = '', value = ''] = [data[clientIdKey], data[clientSecretKey]];
  const trimmed = [clientIdKey, clientSecretKey].filter(key => data[key] !== data[key]?.trim());
  const credentials = { kind: 'oauth', clientId: id.trim(), clientSecret: value.trim() } as const;
  return { problem: undefined, secretVersion, trimmed, credentials };
}
