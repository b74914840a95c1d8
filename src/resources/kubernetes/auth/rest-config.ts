import { readFile } from 'node:fs/promises';
import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '../../../api/clock.ts';
import { isEqual } from '../../../api/json.ts';

/** How a server proves its identity, and a client its own. */
export type TlsSettings = Pick<SecureContextOptions, 'ca' | 'cert' | 'key'> & {
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
};

/** Where an API server is and as whom requests are sent, as of now. */
export type Account = {
  /** Without a slash at its end: https://10.0.0.1:443, with a path behind it where one is needed. */
  readonly server: string;
  readonly tls: TlsSettings;
  /** Headers of each request. */
  readonly headers: Readonly<Record<string, string>>;
};

/** Whether what was found before is still good, or an API server has answered 401. */
type Standing = 'good' | 'refused';

/** Finds the account. All that may change is read each time. */
export interface ClusterAccess {
  read(standing: Standing): Promise<Account>;
}

/** There are no credentials, or none that can be used. The message holds no secrets. */
export class AccessError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'AccessError';
  }
}

/** Fails with AccessError. */
export async function readSecretFile(file: string): Promise<string> {
  try {
    return await readFile(file, 'latin1');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new AccessError(`${file} cannot be read (${code})`);
  }
}

/** The value of an authorization header; Node would show one that is none in its error. */
export function checkedHeader(value: string): string {
  if (!/^[\x20-\x7e]+$/.test(value.trim()))
    throw new AccessError('the credentials are not valid in a header');
  return value.trim();
}

/** The account that requests are sent from; the same value until it changes. All fail with AccessError. */
export interface AccountInUse {
  current(): Promise<Account>;
  /** The account after one was refused, or could not be connected with. */
  after(failed: Account, standing: Standing): Promise<Account>;
}

const KEPT_MS = 10_000;

/** Reads the account every 10 s, and at once when it is refused. While it cannot be read it stays as it was. */
export function accountInUse(access: ClusterAccess, clock: Clock): AccountInUse {
  let kept: { readonly account: Account; readonly until: number } | undefined;
  let reading: { readonly standing: Standing; readonly account: Promise<Account> } | undefined;

  const readNow = async (standing: Standing): Promise<Account> => {
    const read = await access.read(standing);
    const account = kept && isEqual(kept.account, read) ? kept.account : read;
    kept = { account, until: clock.now() + KEPT_MS };
    return account;
  };
  /** Those who come while it is read wait for the same. */
  const read = (standing: Standing): Promise<Account> => {
    if (reading && (standing === 'good' || reading.standing === 'refused')) return reading.account;
    const account = readNow(standing)
      .catch(asAccessError)
      .finally(() => {
        if (reading?.account === account) reading = undefined;
      });
    reading = { standing, account };
    return account;
  };
  return {
    current: async () => {
      if (kept && clock.now() < kept.until) return kept.account;
      const before = kept?.account;
      return before ? await read('good').catch(() => before) : await read('good');
    },
    after: async (failed, standing) => {
      if (kept && kept.account !== failed && clock.now() < kept.until) return kept.account;
      return await read(standing);
    },
  };
}

function asAccessError(cause: unknown): never {
  if (cause instanceof AccessError) throw cause;
  throw new AccessError(cause instanceof Error ? cause.message : 'the credentials cannot be read');
}
