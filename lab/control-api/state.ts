import { ALPHANUMERIC, DECIMAL, seededRandom } from './random.ts';
import type { Random } from './random.ts';
import type { ScopeNames } from './scopes.ts';
import type { Clock } from './time.ts';
import { VisibleMap } from './visibility.ts';

/** Which control server is simulated. */
export type Dialect = 'vendor' | 'headscale';

/** What a join key lets devices do. */
export type DeviceCapabilities = {
  readonly reusable: boolean;
  readonly ephemeral: boolean;
  readonly preauthorized: boolean;
  readonly tags: readonly string[];
};

type KeyBase = {
  readonly id: string;
  readonly description: string;
  readonly createdMs: number;
  readonly revokedMs?: number;
};

/** A key with which devices join. */
export type AuthKey = KeyBase & {
  readonly keyType: 'auth';
  readonly secret: string;
  readonly expirySeconds: number;
  readonly capabilities: DeviceCapabilities;
  readonly uses: number;
};

/** An OAuth client with a secret, or an identity that another issuer vouches for. */
export type Credential = KeyBase & {
  readonly scopes: readonly string[];
  readonly tags: readonly string[];
} & ({ readonly keyType: 'client'; readonly secret: string } | ({ readonly keyType: 'federated' } & Trust));

/** Whose tokens are accepted for a federated identity; a subject and claims may contain `*`. */
export type Trust = {
  readonly issuer: string;
  readonly subject: string;
  readonly audience: string;
  readonly customClaimRules: Readonly<Record<string, string>>;
};

export type Key = AuthKey | Credential;

/** A device, whether it joined by a key or was there before. */
export type Device = {
  readonly id: string;
  readonly nodeId: string;
  readonly hostname: string;
  /** Its MagicDNS name, fully qualified. */
  readonly name: string;
  readonly addresses: readonly string[];
  readonly user: string;
  readonly tags: readonly string[];
  readonly authorized: boolean;
  readonly isExternal: boolean;
  readonly isEphemeral: boolean;
  readonly blocksIncomingConnections: boolean;
  readonly keyExpiryDisabled: boolean;
  readonly os: string;
  readonly clientVersion: string;
  /** undefined: written as an empty text. */
  readonly createdMs: number | undefined;
  readonly expiresMs: number | undefined;
  /** undefined while it is connected. */
  readonly lastSeenMs: number | undefined;
  readonly machineKey: string;
  readonly nodeKey: string;
  readonly advertisedRoutes: readonly string[];
  readonly enabledRoutes: readonly string[];
  /** The join key that it came with. */
  readonly keyId?: string;
  /** Fields that a newer server might send. */
  readonly more?: Readonly<Record<string, unknown>>;
};

/** A virtual IP address with a name, which devices serve. */
export type VipService = {
  readonly name: string;
  readonly displayName?: string;
  readonly addrs: readonly string[];
  readonly comment?: string;
  readonly ports: readonly string[];
  readonly tags: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
};

export type Approval = 'not-approved' | 'approved:auto' | 'approved:manual';

/** A device that advertises a service. */
export type ServiceHost = {
  readonly service: string;
  readonly nodeId: string;
  readonly approval: Approval;
};

/** The tailnet's settings. */
export type Settings = Readonly<Record<string, boolean | number | string>>;

/** The part of the policy file that decides about tags and approvals, and what refers to tags. */
export type Policy = {
  readonly tagOwners: Readonly<Record<string, readonly string[]>>;
  readonly grants?: readonly { readonly src: readonly string[]; readonly dst: readonly string[] }[];
  /** By service or tag, the tags whose devices need no approval. */
  readonly autoApprovers?: { readonly services?: Readonly<Record<string, readonly string[]>> };
};

/** A token that a credential has been exchanged for. */
export type Token = {
  readonly credential: string;
  readonly scopes: readonly string[];
  readonly tags: readonly string[];
  readonly expiresMs: number;
};

/** How the simulated server behaves where real ones differ. */
export type Behaviour = {
  readonly scopeNames: ScopeNames;
  /** Without the scope `services` the vendor has been seen to answer either. */
  readonly withoutServicesScope: 403 | 404;
  /** A second deletion of a device; 500 is what old servers did. */
  readonly deletedTwice: 404 | 500;
  /** Older servers answered a PUT of a service with an empty body. */
  readonly emptyServiceAnswers: boolean;
  /** How long an ephemeral device stays after it has disconnected. */
  readonly ephemeralTimeoutMs: number;
};

/** The state of a simulated server. */
export type State = {
  readonly dialect: Dialect;
  readonly domain: string;
  readonly tailnetId: string;
  readonly behaviour: Behaviour;
  readonly clock: Clock;
  readonly random: Random;
  readonly keys: VisibleMap<Key>;
  readonly devices: VisibleMap<Device>;
  readonly services: VisibleMap<VipService>;
  /** By service and node ID. */
  readonly hosts: VisibleMap<ServiceHost>;
  readonly tokens: Map<string, Token>;
  /** IDs that a second deletion may be for. */
  readonly deletedDevices: Set<string>;
  /** Names of services that clients made, rather than tests. */
  readonly createdServices: Set<string>;
  settings: Settings;
  policy: Policy;
  /** Whether the policy is the one that a new tailnet has. */
  isDefaultPolicy: boolean;
  /** How many addresses have been given out. */
  addresses: { devices: number; services: number };
};

/** What a tailnet starts with. */
export type StateOptions = {
  readonly dialect: Dialect;
  readonly domain: string;
  readonly behaviour: Partial<Behaviour>;
  readonly clock: Clock;
  readonly seed: number;
  readonly settings: Settings;
  readonly policy?: Policy;
};

const DEFAULT_SETTINGS: Settings = {
  aclsExternallyManagedOn: false,
  aclsExternalLink: '',
  devicesApprovalOn: false,
  devicesAutoUpdatesOn: false,
  devicesKeyDurationDays: 180,
  usersApprovalOn: false,
  usersRoleAllowedToJoinExternalTailnets: 'admin',
  networkFlowLoggingOn: false,
  regionalRoutingOn: false,
  postureIdentityCollectionOn: false,
  httpsEnabled: true,
};

const DEFAULT_BEHAVIOUR: Behaviour = {
  scopeNames: { contract: false },
  withoutServicesScope: 403,
  deletedTwice: 404,
  emptyServiceAnswers: false,
  ephemeralTimeoutMs: 5 * 60_000,
};

/** An empty tailnet. */
export function createState(options: StateOptions): State {
  const { clock, policy } = options;
  const random = seededRandom(options.seed);
  return {
    dialect: options.dialect,
    domain: options.domain,
    tailnetId: `T${random.text(10, ALPHANUMERIC)}CNTRL`,
    behaviour: { ...DEFAULT_BEHAVIOUR, ...options.behaviour },
    clock,
    random,
    keys: new VisibleMap(clock, random),
    devices: new VisibleMap(clock, random),
    services: new VisibleMap(clock, random),
    hosts: new VisibleMap(clock, random),
    tokens: new Map(),
    deletedDevices: new Set(),
    createdServices: new Set(),
    settings: { ...DEFAULT_SETTINGS, ...options.settings },
    policy: policy ?? { tagOwners: {} },
    isDefaultPolicy: policy === undefined,
    addresses: { devices: 0, services: 0 },
  };
}

/** A new ID of a key, as the server writes it. */
export function newKeyId({ dialect, random, keys }: State, keyType: Key['keyType']): string {
  if (dialect === 'vendor') return `k${random.text(12, ALPHANUMERIC)}CNTRL`;
  if (keyType !== 'auth') return random.hex(12);
  return String(keys.all().filter(key => key.keyType === 'auth').length + 1);
}

/** The secret of a new key, which is shown once. */
export function newSecret({ dialect, random }: State, keyType: 'auth' | 'client', id: string): string {
  if (dialect === 'vendor') return `tskey-${keyType}-${id}-${random.text(32, ALPHANUMERIC)}`;
  const prefix = keyType === 'client' ? id : random.hex(12);
  return `hskey-${keyType}-${prefix}-${random.hex(64)}`;
}

/** A new access token. */
export function newToken({ dialect, random }: State): string {
  return dialect === 'vendor'
    ? `tskey-api-k${random.text(12, ALPHANUMERIC)}CNTRL-${random.text(32, ALPHANUMERIC)}`
    : `hskey-oauthtok-${random.hex(12)}-${random.hex(64)}`;
}

/** New IDs of a device: decimal, and the node ID that newer APIs use. */
export function newDeviceIds(state: State): Pick<Device, 'id' | 'nodeId'> {
  const { dialect, random, addresses } = state;
  const decimal = dialect === 'headscale' ? String(addresses.devices + 1) : random.text(17, DECIMAL);
  return {
    id: decimal,
    nodeId: dialect === 'headscale' ? decimal : `n${random.text(12, ALPHANUMERIC)}CNTRL`,
  };
}

/** The next free pair of addresses, of a range for devices or one for services. */
export function newAddresses(state: State, kind: 'devices' | 'services'): readonly [string, string] {
  const number = ++state.addresses[kind];
  const [third, fourth] = [(number >> 8) & 0xff, number & 0xff];
  const second = (kind === 'devices' ? 64 : 96) + (number >> 16);
  const prefix = kind === 'devices' ? 'fd7a:115c:a1e0' : 'fd7a:115c:a1e0:ff';
  const suffix = `${(number >> 16).toString(16)}:${(number & 0xffff).toString(16)}`;
  return [`100.${second}.${third}.${fourth}`, `${prefix}::${suffix}`];
}
