import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { Dialect } from '../../../lab/control-api/state.ts';
import { ControlError } from '../../../src/control/control.ts';
import type { ControlApi } from '../../../src/control/control.ts';
import { inTime } from './client.ts';
import type { Client } from './client.ts';

/** The name of a call of the client. */
export type CallName = keyof ControlApi | 'token' | 'token exchange';

/** A call of the client, with an object that it acts on. */
export type TestedCall = {
  readonly name: CallName;
  /** The route in the simulator; headscale has no services. */
  readonly route: string;
  /** Sent again after a transient failure: GET and DELETE, but the probe, the list of services and their deletion. */
  readonly isRetried: boolean;
  readonly dialects: readonly Dialect[];
  /** Makes the object; the function sends the call, any number of times. */
  readonly prepare: (client: Client) => Promise<() => Promise<unknown>>;
};

const BOTH: readonly Dialect[] = ['vendor', 'headscale'];
const VENDOR: readonly Dialect[] = ['vendor'];

const KEY = {
  description: 'mesh-gateway 0a1b2c3d example 0',
  tags: ['tag:mesh'],
  expirySeconds: 3600,
  ephemeral: false,
  preauthorized: true,
};

function tested(
  name: CallName,
  route: string,
  isRetried: boolean,
  prepare: TestedCall['prepare'],
  dialects = BOTH,
): TestedCall {
  return { name, route, isRetried, prepare, dialects };
}

/** All scopes that calls need. */
export const CALL_SCOPES: readonly string[] = ['devices:core', 'auth_keys', 'services'];

/** How long a call may take: the time within which it starts its last try, and that of the try. */
export const CALL_BOUND_MS = 20_000 + 15_000;

/** How a call ends, and after which time, on the clock of the client. */
export async function outcomeOf({ clock }: Client, send: () => Promise<unknown>, stepMs: number) {
  const startedAt = clock.now();
  const settled = send().then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof ControlError) return error;
      throw error;
    },
  );
  const error = await inTime(clock, settled, stepMs);
  return { error, tookMs: clock.now() - startedAt };
}

/** Every call of the client. */
export const CALLS: readonly TestedCall[] = [
  tested('token', 'token', false, ({ api, tokens }) => {
    const { id, secret } = api.addClient(CALL_SCOPES);
    return ready(() => tokens.use({ kind: 'oauth', clientId: id, clientSecret: secret }));
  }),
  tested('token exchange', 'token-exchange', false, prepareExchange, ['vendor']),
  tested('probe', 'probe', false, ({ control }) => ready(() => control.probe())),
  tested('devices', 'devices.list', true, ({ control }) => ready(() => control.devices())),
  tested('device', 'device.get', true, ({ api, control }) => {
    const { nodeId } = api.addDevice({ hostname: 'web-1' });
    return ready(() => control.device(nodeId));
  }),
  tested('deleteDevice', 'device.delete', true, ({ api, control }) => {
    const { nodeId } = api.addDevice({ hostname: 'web-2' });
    return ready(() => control.deleteDevice(nodeId));
  }),
  tested('createKey', 'keys.create', false, ({ control }) =>
    ready(async () => {
      await control.revokeKey(await control.createKey(KEY));
    }),
  ),
  tested('keys', 'keys.list', true, ({ control }) => ready(() => control.keys())),
  tested('revokeKey', 'keys.delete', true, async ({ control }) => {
    const key = await control.createKey(KEY);
    return () => control.revokeKey(key);
  }),
  tested('hasServices', 'services.list', false, ({ control }) => ready(() => control.hasServices())),
  tested(
    'service',
    'services.get',
    true,
    client => {
      addService(client);
      return ready(() => client.control.service(SERVICE.name));
    },
    VENDOR,
  ),
  tested(
    'putService',
    'services.put',
    false,
    client => {
      addService(client);
      return ready(() => client.control.putService(SERVICE.name, SERVICE));
    },
    VENDOR,
  ),
  tested(
    'deleteService',
    'services.delete',
    false,
    client => {
      addService(client);
      return ready(() => client.control.deleteService(SERVICE.name));
    },
    VENDOR,
  ),
];

const SERVICE = { name: 'svc:web', addrs: ['100.96.0.1', 'fd7a:115c:a1e0:ff::1'], ports: ['tcp:443'] };

function addService({ api }: Client): void {
  api.addService(SERVICE);
}

function ready(send: () => Promise<unknown>): Promise<() => Promise<unknown>> {
  return Promise.resolve(send);
}

async function prepareExchange({ api, tokens }: Client): Promise<() => Promise<unknown>> {
  const [issuer, subject] = ['https://kubernetes.default.svc', 'system:serviceaccount:mesh-system:operator'];
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  api.trustIssuer(issuer, { keys: [await exportJWK(publicKey)] });
  const tags = ['tag:mesh'];
  const clientId = api.addFederatedIdentity({ scopes: CALL_SCOPES, tags, issuer, subject, audience: 'mesh' });
  const idToken = () =>
    new SignJWT({ iss: issuer, sub: subject, aud: 'mesh', exp: api.state.clock.now() / 1000 + 600 })
      .setProtectedHeader({ alg: 'ES256' })
      .sign(privateKey);
  return () => tokens.use({ kind: 'federated', clientId, audience: 'mesh', idToken });
}
