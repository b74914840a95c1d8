import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { canonicalIP } from '../api/ip.ts';
import { isRecord } from '../api/json.ts';

/** What a tailscaled serves on its tailnet: of VIP services, the address to which it forwards each TCP port. */
export type ServeConfig = {
  readonly Services?: Readonly<Record<string, ServiceConfig>>;
};

type ServiceConfig = { readonly TCP: Readonly<Record<string, { readonly TCPForward: string }>> };

/** The stored configuration, which others may have written. */
type StoredConfig = { readonly config: unknown; readonly etag: string };

/** The part of the LocalAPI of a tailscaled that VIP services and the front need; its calls fail where it does not respond, or refuses. */
export interface LocalApi {
  readConfig(): Promise<StoredConfig>;
  /** Replaces the whole configuration, if it still is the one that was read. */
  writeConfig(config: ServeConfig, etag: string): Promise<void>;
  /** The names of the VIP services that the device advertises. */
  readAdvertised(): Promise<readonly string[]>;
  writeAdvertised(names: readonly string[]): Promise<void>;
  /** The addresses of the device, and its name; none before it has joined a tailnet. */
  readOwnHosts(): Promise<readonly string[]>;
  close(): void;
}

const TIMEOUT_MS = 5000;
const MAX_BYTES = 4 * 1024 * 1024;

/** The only Host that the LocalAPI of a tailscaled accepts. */
export const LOCAL_API_HOST = 'local-tailscaled.sock';

type Call = {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

type Response = { readonly status: number; readonly etag: string; readonly text: string };

/** Creates a client of the LocalAPI on a unix socket, whose tailscaled must run as the same user. */
export function localApiOn(socketPath: string): LocalApi {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1 });
  const send = async (call: Call): Promise<Response> => {
    const response = await exchange(call, { socketPath, agent });
    const { status, text } = response;
    if (status < 200 || status > 299)
      throw new Error(`${call.method} ${call.path}: ${status} ${text.trim().slice(0, 200)}`);
    return response;
  };
  return {
    readConfig: async () => {
      const { text, etag } = await send({ method: 'GET', path: 'serve-config' });
      return { config: parseJson(text), etag };
    },
    writeConfig: async (body, etag) => {
      const headers: Record<string, string> = etag === '' ? {} : { 'if-match': etag };
      await send({ method: 'POST', path: 'serve-config', body, headers });
    },
    readAdvertised: async () => advertisedIn((await send({ method: 'GET', path: 'prefs' })).text),
    writeAdvertised: async names => {
      const body = { AdvertiseServicesSet: true, AdvertiseServices: names };
      await send({ method: 'PATCH', path: 'prefs', body });
    },
    readOwnHosts: async () => ownHostsIn((await send({ method: 'GET', path: 'status?peers=false' })).text),
    close: () => agent.destroy(),
  };
}

async function exchange(
  { method, path, body, headers }: Call,
  connection: { readonly socketPath: string; readonly agent: Agent },
): Promise<Response> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const all = { host: LOCAL_API_HOST, ...headers };
  const outgoing = request({ ...connection, method, path: `/localapi/v0/${path}`, headers: all, signal });
  // The same error ends what is awaited below.
  outgoing.on('error', () => undefined);
  try {
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    const [incoming] = (await once(outgoing, 'response', { signal })) as [IncomingMessage];
    const { statusCode: status = 0, headers: received } = incoming;
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
      chunks.push(chunk);
    }
    return { status, etag: received.etag ?? '', text: Buffer.concat(chunks).toString() };
  } catch (error) {
    outgoing.destroy();
    const why = signal.aborted ? `no response within ${TIMEOUT_MS} ms` : (error as Error).message;
    throw new Error(`${method} ${path}: ${why}`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('the response is not JSON');
  }
}

function advertisedIn(text: string): readonly string[] {
  const prefs = parseJson(text);
  if (!isRecord(prefs)) throw new Error('the response has no preferences');
  const names: unknown = prefs['AdvertiseServices'] ?? [];
  if (!Array.isArray(names)) throw new Error('AdvertiseServices is not a list');
  return names.filter((name): name is string => typeof name === 'string');
}

function ownHostsIn(text: string): readonly string[] {
  const status = parseJson(text);
  const self = isRecord(status) && isRecord(status['Self']) ? status['Self'] : {};
  const addresses: unknown = self['TailscaleIPs'] ?? [];
  if (!Array.isArray(addresses)) throw new Error('TailscaleIPs is not a list');
  const name = typeof self['DNSName'] === 'string' ? self['DNSName'].toLowerCase().replace(/\.$/, '') : '';
  return [...addresses.map(each => canonicalIP(String(each))), name].filter(host => host !== '');
}
