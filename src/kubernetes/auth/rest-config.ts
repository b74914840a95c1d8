import { readFile } from 'node:fs/promises';
import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '../../api/clock.ts';
import { isEqual } from '../../api/json.ts';

/** How the server is verified, and the client certificate. */
export type TlsSettings = Pick<SecureContextOptions, 'ca' | 'cert' | 'key'> & {
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
};

/** The address of an API server and the current credentials. */
export type RestConfig = {
  /** Without a trailing slash: https://10.0.0.1:443, perhaps with a path. */
  readonly server: string;
  readonly tls: TlsSettings;
  readonly headers: Readonly<Record<string, string>>;
};

/** `refresh`: the configuration may have changed. `unauthorized`: an API server answered 401. */
type LoadReason = 'refresh' | 'unauthorized';

/** Loads a RestConfig from files or programs, without caching. */
export interface RestConfigSource {
  load(reason: LoadReason): Promise<RestConfig>;
}

/** There are no usable credentials. The message holds no secrets. */
export class CredentialsError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CredentialsError';
  }
}

/** Fails with CredentialsError. */
export async function readSecretFile(file: string): Promise<string> {
  try {
    return await readFile(file, 'latin1');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new CredentialsError(`${file} cannot be read (${code})`);
  }
}

/** A trimmed header value. Node's own error for an invalid one would show it. */
export function checkedHeader(value: string): string {
  if (!/^[\x20-\x7e]+$/.test(value.trim()))
    throw new CredentialsError('the credentials are not valid in a header');
  return value.trim();
}

/** The configuration for requests, the same value until it changes. All fail with CredentialsError. */
export interface RestConfigCache {
  current(): Promise<RestConfig>;
  /** Loads the configuration again after a request with `failed` failed, unless that has happened already. */
  reload(failed: RestConfig, reason: LoadReason): Promise<RestConfig>;
}

const REFRESH_MS = 10_000;

/** Loads the configuration every 10 s, and at once after a 401. While loading fails, the last one is used. */
export function cacheRestConfig(source: RestConfigSource, clock: Clock): RestConfigCache {
  let cached: { readonly config: RestConfig; readonly until: number } | undefined;
  let loading: { readonly reason: LoadReason; readonly config: Promise<RestConfig> } | undefined;

  const loadNow = async (reason: LoadReason): Promise<RestConfig> => {
    const loaded = await source.load(reason);
    const config = cached && isEqual(cached.config, loaded) ? cached.config : loaded;
    cached = { config, until: clock.now() + REFRESH_MS };
    return config;
  };
  /** Concurrent callers share one load. */
  const load = (reason: LoadReason): Promise<RestConfig> => {
    if (loading && (reason === 'refresh' || loading.reason === 'unauthorized')) return loading.config;
    const config = loadNow(reason)
      .catch(throwCredentialsError)
      .finally(() => {
        if (loading?.config === config) loading = undefined;
      });
    loading = { reason, config };
    return config;
  };
  return {
    current: async () => {
      if (cached && clock.now() < cached.until) return cached.config;
      const before = cached?.config;
      return before ? await load('refresh').catch(() => before) : await load('refresh');
    },
    reload: async (failed, reason) => {
      if (cached && cached.config !== failed && clock.now() < cached.until) return cached.config;
      return await load(reason);
    },
  };
}

function throwCredentialsError(cause: unknown): never {
  if (cause instanceof CredentialsError) throw cause;
  throw new CredentialsError(cause instanceof Error ? cause.message : 'the credentials cannot be read');
}
