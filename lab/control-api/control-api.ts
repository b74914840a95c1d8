import type { JSONWebKeySet } from 'jose';
import { countByRoute, findLeaks } from './audit.ts';
import type { AuditOptions, LoggedRequest } from './audit.ts';
import { removeDevice } from './operations/devices.ts';
import { FaultRules, Gates } from './faults.ts';
import type { FaultRule, Gate } from './faults.ts';
import { createCredential, revokeKey } from './operations/keys.ts';
import type { CredentialOptions } from './operations/keys.ts';
import { expectPolicy } from './operations/policy.ts';
import { RateLimiter } from './rate-limit.ts';
import type { RateLimit } from './rate-limit.ts';
import { addDevice, changeDevice, joinWithKey } from './operations/registration.ts';
import type { DeviceOptions } from './operations/registration.ts';
import { createRoutes } from './routes.ts';
import type { Effects } from './routes.ts';
import { listen } from './server.ts';
import type { ServerCertificate } from './server.ts';
import { advertise, withdraw } from './operations/services.ts';
import { createState } from './state.ts';
import type {
  Behaviour,
  Device,
  Dialect,
  Policy,
  ServiceHost,
  Settings,
  State,
  VipService,
} from './state.ts';
import { systemClock } from './time.ts';
import type { Clock } from './time.ts';
import type { Consistency } from './visibility.ts';

/** What a simulated control API is started with; every field has a default. */
export type ControlApiOptions = {
  readonly dialect?: Dialect;
  /** The MagicDNS domain of the tailnet. */
  readonly domain?: string;
  /** All IDs, secrets, delays and shares follow from it. */
  readonly seed?: number;
  readonly clock?: Clock;
  /** A loopback address unless something else has to reach it. */
  readonly host?: string;
  /** 0 takes a free one. */
  readonly port?: number;
  /** Makes it an HTTPS server. */
  readonly certificate?: ServerCertificate;
  readonly behaviour?: Partial<Behaviour>;
  readonly settings?: Settings;
  readonly policy?: Policy;
  readonly consistency?: Consistency;
  readonly rateLimit?: RateLimit;
  /** A real tailnet whose devices, join keys and hosts of services are shown instead of simulated ones. */
  readonly behind?: TailnetBehind;
};

/** A real tailnet behind the simulator. */
export type TailnetBehind = Effects & {
  /** Brings devices, join keys and the hosts of services in the state up to date. */
  readonly refresh: (state: State) => Promise<void>;
  /** Names of routes that change what it cannot change; they are answered with 501. */
  readonly unsupported: readonly string[];
};

/** What a client authenticates with. */
export type ClientCredentials = { readonly id: string; readonly secret: string };

/** A simulated control API that listens; besides HTTP, tests see and change it here. */
export type ControlApi = {
  readonly url: string;
  readonly state: State;
  /** Makes an OAuth client. */
  addClient(scopes: readonly string[], tags?: readonly string[]): ClientCredentials;
  /** Makes a federated identity and returns its client ID. */
  addFederatedIdentity(identity: Omit<CredentialOptions & { keyType: 'federated' }, 'keyType'>): string;
  /** Accepts tokens that an issuer has signed with one of these keys. */
  trustIssuer(issuer: string, keys: JSONWebKeySet): void;
  /** Revokes a client, an identity or a join key. */
  revoke(id: string): void;
  /** Makes a device that did not join by a key of this API. */
  addDevice(device: DeviceOptions): Device;
  /** A device joins with the secret of a key; fails with the reason where it is not let in. */
  join(secret: string, device: DeviceOptions): Device;
  changeDevice(nodeId: string, changes: Partial<Device>): Device;
  removeDevice(nodeId: string): void;
  /** Makes a service that no client made. */
  addService(service: Partial<VipService> & { readonly name: string }): void;
  /** A device starts to serve a service. */
  advertise(service: string, nodeId: string): ServiceHost;
  withdraw(service: string, nodeId: string): void;
  /** Adds a fault; the returned function removes it. */
  fail(rule: FaultRule): () => void;
  /** Holds the next calls of a route until the gate is opened. */
  hold(route: string, calls: number): Gate;
  limitRate(limit: RateLimit | undefined): void;
  /** Changes how late writes become visible. */
  setConsistency(consistency: Consistency): void;
  presentCertificate(certificate: ServerCertificate): void;
  /** Every request since the start, in the order of their answers. */
  requests(): readonly LoggedRequest[];
  countByRoute(): Readonly<Record<string, number>>;
  /** Fails if devices, keys or services were left behind, or too many calls were made. */
  audit(options?: AuditOptions): void;
  close(): Promise<void>;
};

const NOTHING_BEHIND: TailnetBehind = {
  mintKey: ({ id, secret }) => Promise.resolve({ id, secret }),
  revokeKey: () => Promise.resolve(),
  remove: () => Promise.resolve(),
  expire: () => Promise.resolve(),
  setTags: () => Promise.resolve(),
  createService: () => Promise.resolve(undefined),
  removeService: () => Promise.resolve(),
  refresh: () => Promise.resolve(),
  unsupported: [],
};

/** Starts the simulator of a mesh control API. */
export async function startControlApi(options: ControlApiOptions = {}): Promise<ControlApi> {
  const { dialect = 'vendor', domain = 'example.ts.net', seed = 1, clock = systemClock } = options;
  const { behaviour = {}, settings = {}, policy, behind = NOTHING_BEHIND } = options;
  if (policy) expectPolicy(policy, { dialect });
  const state = createState({
    dialect,
    domain,
    seed,
    clock,
    behaviour,
    settings,
    ...(policy ? { policy } : {}),
  });
  const setConsistency = (consistency: Consistency) => {
    for (const map of [state.devices, state.keys, state.services, state.hosts]) map.consistency = consistency;
  };
  setConsistency(options.consistency ?? {});
  const limiter = new RateLimiter(clock, options.rateLimit);
  const issuers = new Map<string, JSONWebKeySet>();
  const [faults, gates] = [new FaultRules(state.random.fraction), new Gates()];
  const requests: LoggedRequest[] = [];
  const { host = '127.0.0.1', port = 0, certificate } = options;
  const server = await listen(
    {
      state,
      routes: createRoutes(behind),
      limiter,
      issuers,
      refresh: () => behind.refresh(state),
      unsupported: behind.unsupported,
      faults,
      gates,
      log: request => requests.push(request),
    },
    { host, port, ...(certificate ? { certificate } : {}) },
  );
  return {
    url: server.url,
    state,
    ...tailnetOf(state),
    trustIssuer: (issuer, keys) => void issuers.set(issuer, keys),
    fail: rule => faults.add(rule),
    hold: (route, calls) => gates.add(route, calls),
    limitRate: limit => {
      limiter.limit = limit;
    },
    setConsistency,
    presentCertificate: server.present,
    requests: () => [...requests],
    countByRoute: () => countByRoute(requests),
    audit: (auditOptions = {}) => {
      const leaks = findLeaks(state, requests, auditOptions);
      if (leaks.length > 0) throw new Error(`the audit of the control API failed:\n${leaks.join('\n')}`);
    },
    close: server.close,
  };
}

/** What tests see and change of the tailnet itself. */
function tailnetOf(
  state: State,
): Pick<
  ControlApi,
  | 'addClient'
  | 'addFederatedIdentity'
  | 'revoke'
  | 'addDevice'
  | 'join'
  | 'changeDevice'
  | 'removeDevice'
  | 'addService'
  | 'advertise'
  | 'withdraw'
> {
  return {
    addClient: (scopes, tags = ['tag:mesh']) => {
      const client = createCredential(state, { keyType: 'client', scopes, tags });
      return { id: client.id, secret: client.keyType === 'client' ? client.secret : '' };
    },
    addFederatedIdentity: identity => createCredential(state, { ...identity, keyType: 'federated' }).id,
    revoke: id => revokeKey(state, id),
    addDevice: device => addDevice(state, device),
    join: (secret, device) => joinWithKey(state, secret, device),
    changeDevice: (nodeId, changes) => changeDevice(state, nodeId, changes),
    removeDevice: nodeId => {
      const device = state.devices.current(nodeId);
      if (device) removeDevice(state, device);
    },
    addService: service =>
      state.services.put(service.name, { addrs: [], ports: [], tags: [], annotations: {}, ...service }),
    advertise: (service, nodeId) => advertise(state, service, nodeId),
    withdraw: (service, nodeId) => withdraw(state, service, nodeId),
  };
}
