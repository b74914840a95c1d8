import type { Kinds } from '../api/generated/types.ts';
import type { Fields } from '../api/json.ts';

/** Why the control API did not do what was requested. */
export type ControlErrorReason =
  /** 401 with a fresh token, or the token endpoint refused the client. */
  | 'CredentialsInvalid'
  /** 403: the credentials lack a scope. */
  | 'ScopeMissing'
  /** 404 of an object. */
  | 'NotFound'
  /** 404 of a whole route, 405, 501: this control server cannot do it. */
  | 'NotSupported'
  /** 400 and other 4xx: repeating the request will not help. */
  | 'Invalid'
  /** 429, or the rate limit of the tailnet is used up. */
  | 'Throttled'
  /** 408, 5xx: it failed, and may have been done. */
  | 'Unavailable'
  /** There was no whole response: DNS, TLS, proxy, a reset, a timeout. */
  | 'Unreachable'
  /** A response that is not of the control API: another format, too large, a redirect. */
  | 'Malformed';

/** The only error of the control API. Its message never holds a credential. */
export class ControlError extends Error {
  readonly reason: ControlErrorReason;
  /** The HTTP status; undefined where there was no response. */
  readonly status: number | undefined;
  /** The scope that is missing, by its real name. */
  readonly scope: string | undefined;
  /** How long the server wants no request. */
  readonly retryAfterMs: number | undefined;

  constructor(
    reason: ControlErrorReason,
    message: string,
    details: Partial<Pick<ControlError, 'status' | 'scope' | 'retryAfterMs'>> = {},
  ) {
    super(message);
    this.name = 'ControlError';
    this.reason = reason;
    this.status = details.status;
    this.scope = details.scope;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** A device of a tailnet, as far as it is read. */
export type Device = {
  /** Stable, and what deletion takes. */
  readonly id: string;
  /** The full name with the vendor (`web.example.ts.net`), the short one with headscale. */
  readonly name: string;
  readonly hostname: string;
  readonly addresses: readonly string[];
  readonly tags: readonly string[];
  readonly isAuthorized: boolean;
  readonly isOnline: boolean;
  /** Shared in from another tailnet. */
  readonly isExternal: boolean;
  /** RFC 3339; undefined where the node key never expires. */
  readonly expires: string | undefined;
  /** Whether its node key had expired when this was read: what is kept while the control API is away does not expire. */
  readonly isExpired: boolean;
  /** It accepts no connections from other devices. */
  readonly blocksIncoming: boolean;
};

/** What a caller chooses of a join key. */
export type KeyOptions = {
  /** Finds the key again after a failure, so it must be unique. Other characters than letters, digits, `-` and blanks become `-`. */
  readonly description: string;
  readonly tags: readonly string[];
  readonly expirySeconds: number;
  readonly ephemeral: boolean;
  readonly preauthorized: boolean;
};

/** A key as lists show it. */
export type KeyInfo = {
  readonly id: string;
  readonly description: string;
  /** Whether nothing can join with it: it was used, has expired or is revoked. */
  readonly isInvalid: boolean;
  /** Headscale lists a revoked key for a week, and one that was used or has expired until it is revoked. */
  readonly isRevoked: boolean;
};

/** A VIP service of a tailnet: a name and addresses that devices serve. */
export type VipService = {
  /** With `svc:` before it. */
  readonly name: string;
  /** IPv4 and IPv6; the control server chooses them. */
  readonly addrs: readonly string[];
  /** As in `tcp:443`. */
  readonly ports: readonly string[];
  readonly tags: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
  /** All fields, because a write replaces all. */
  readonly fields: Fields;
};

/** A device that advertises a VIP service. */
export type ServiceHost = {
  readonly deviceId: string;
  /** Whether the tailnet lets it serve. */
  readonly isApproved: boolean;
};

export type JoinKey = { readonly id: string; readonly secret: string };

/**
 * The control API of one tailnet. All fail with ControlError; once the connections are closed, with another error, so that
 * it is not reported as a failure of the control API.
 */
export interface ControlApi {
  /** Sends the contract's `GET /api/v2/tailnet`: any HTTP response counts as reachable. */
  probe(): Promise<void>;
  /** All devices, in one response. */
  devices(): Promise<readonly Device[]>;
  /** One device by its id; undefined where it does not exist. */
  device(id: string): Promise<Device | undefined>;
  /** Succeeds where the device no longer exists. */
  deleteDevice(id: string): Promise<void>;
  /** Creates a single-use key. After an ambiguous failure, a key of this description is revoked. */
  createKey(options: KeyOptions): Promise<JoinKey>;
  keys(): Promise<readonly KeyInfo[]>;
  /** Revokes a key, which counts if it was valid. Succeeds where the key no longer exists. */
  revokeKey(key: Pick<KeyInfo, 'id'> & Partial<Pick<KeyInfo, 'isInvalid'>>): Promise<void>;
  /** Whether the control server has VIP services; undefined where its response is ambiguous. */
  hasServices(): Promise<boolean | undefined>;
  /** All VIP services of the tailnet, in one response. */
  services(): Promise<readonly VipService[]>;
  /** One VIP service by its name; undefined where it does not exist. */
  service(name: string): Promise<VipService | undefined>;
  /** Creates a VIP service, or replaces all of its fields. It is sent once, since another process may have written in between. */
  putService(name: string, fields: Fields): Promise<void>;
  /** Succeeds where the VIP service no longer exists. It is sent once, since another process may create it again. */
  deleteService(name: string): Promise<void>;
  /** The devices that advertise a VIP service. */
  serviceHosts(name: string): Promise<readonly ServiceHost[]>;
}

/** What tokens are exchanged for. */
export type Credentials =
  | { readonly kind: 'oauth'; readonly clientId: string; readonly clientSecret: string }
  /** Workload identity: `idToken` returns a fresh token of the operator's ServiceAccount. */
  | {
      readonly kind: 'federated';
      readonly clientId: string;
      /** Of the tokens that `idToken` returns. */
      readonly audience: string;
      readonly idToken: () => Promise<string>;
    };

/** How the control API of a tailnet is reached. */
export type ControlEndpoint = {
  /** The base, without `/api/v2`. */
  readonly url: string;
  /** CA certificates (PEM) to trust in place of the system's. */
  readonly ca?: string;
  /** An HTTP or HTTPS proxy. */
  readonly proxyURL?: string;
  /** Sent only if not empty. */
  readonly scopes: readonly string[];
  /** Whether the server is of the vendor, or headscale; Auto if not given. */
  readonly dialect?: Kinds['MeshTailnet']['spec']['dialect'];
  readonly requestsPerSecond: number;
  readonly burst: number;
};

export type TailnetSource = {
  /** The name of its MeshTailnet. */
  readonly name: string;
  readonly endpoint: ControlEndpoint;
  /** Undefined keeps those that worked before. */
  readonly credentials: Credentials | undefined;
  readonly intervalMs: number;
};

/** What is known of a tailnet. */
export type TailnetView = {
  /**
   * Of the last list that succeeded, with those that are missing from too few lists, without those that were deleted since. It
   * is the same array, and a device the same object, until it changes.
   */
  readonly devices: readonly Device[] | undefined;
  /** The ids of expected devices that were in no list yet, and that may still exist. */
  readonly expected: ReadonlySet<string>;
  /** How many lists in a row have lacked a device of `devices`, by its id; only those that were missing from the last one. */
  readonly missing: ReadonlyMap<string, number>;
  /** Whether the last list failed, so devices are as they were. */
  readonly isStale: boolean;
  /** Of the last list that succeeded; undefined where none has. */
  readonly lastSuccess: Date | undefined;
  /** Until it should be observed again. */
  readonly nextMs: number;
  /** Why credentials were refused, or the last list failed. */
  readonly error: ControlError | undefined;
  /** Whether the control server has VIP services; undefined where that is not known. */
  readonly hasServices: boolean | undefined;
  /** The token in use. */
  readonly token: { readonly expiresAt: Date; readonly scopes: readonly string[] } | undefined;
};

/** Those of some devices of a tailnet that are in use. */
export type FindInUse = (name: string, devices: readonly Device[]) => readonly Device[];

/** The tailnets of a process. All callers share one list of devices per tailnet and interval, and one rate limit. */
export interface Tailnets {
  /**
   * Returns what is known after listing devices, if the last list is as old as the interval; after 5 s without a result, as it
   * was before. Fails only where connections are closed.
   */
  observe(source: TailnetSource): Promise<TailnetView>;
  /** What is known of a tailnet without listing devices; undefined before it is observed, and once it is forgotten. */
  lastView(name: string): Omit<TailnetView, 'nextMs'> | undefined;
  /**
   * An earlier process has seen these devices: those that the tailnet does not list may exist until they were requested, as any
   * other missing device. Of no effect before the first list.
   */
  expect(name: string, ids: readonly string[]): void;
  /**
   * Requests devices by their ids at once, not with the next list: those that do not exist are left out. Returns after 5 s at
   * the latest; a device that could not be requested by then stays.
   */
  confirm(name: string, ids: readonly string[]): Promise<void>;
  /**
   * Calls a listener with the name of a tailnet after its devices have changed, or the last list has failed for the first time,
   * or succeeded again; returns the function that unsubscribes it.
   */
  subscribe(listener: (name: string) => void): () => void;
  /**
   * Where more devices are missing from lists than are remembered, those in use are forgotten last: all that one of these
   * functions returns. Returns the function that ends it.
   */
  retain(find: FindInUse): () => void;
  /**
   * The control API of a tailnet, with the token and the rate limit that its lists of devices use. Undefined before the
   * tailnet is observed and once it is forgotten. Its connections are closed when the tailnet is forgotten, or observed
   * with another endpoint.
   */
  api(name: string): ControlApi | undefined;
  /** Closes the connections of a tailnet. */
  forget(name: string): void;
}

/** The domains that the tailnet's own devices are in, the most common first. Headscale lists short names, which have none. */
export function domainsOf(devices: readonly Device[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const device of devices) {
    const domain = domainOf(device);
    if (domain !== undefined) counts.set(domain, (counts.get(domain) ?? 0) + 1);
  }
  return [...counts].sort((one, other) => other[1] - one[1]).map(([domain]) => domain);
}

function domainOf({ name, isExternal }: Device): string | undefined {
  if (isExternal || !name.includes('.')) return undefined;
  const domain = name.slice(name.indexOf('.') + 1).replace(/\.$/, '');
  return domain === '' ? undefined : domain.toLowerCase();
}

/** The domain of the tailnet that lists its devices, if it is another one than that of the MeshTailnet. */
export function otherDomainOf(
  { devices = [], missing }: Pick<TailnetView, 'devices' | 'missing'>,
  domain: string,
): string | undefined {
  // Those that the last list lacks are of another tailnet then.
  const isListed = ({ id }: Device) => !missing.has(id);
  const isOfDomain = (device: Device) => isListed(device) && domainOf(device) === domain.toLowerCase();
  return devices.some(isOfDomain) ? undefined : domainsOf(devices.filter(isListed))[0];
}
