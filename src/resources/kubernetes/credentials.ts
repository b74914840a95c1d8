import type { Clock } from '../../api/clock.ts';
import { isEqual } from '../../api/equal.ts';
import type { Account, ClusterAccess, Standing } from './access.ts';
import { AccessError } from './access-error.ts';

/** The account that requests are sent from; the same value until it changes. All fail with AccessError. */
export interface AccountInUse {
  current(): Promise<Account>;
  /** The account after one was refused, or none of its connections came about. */
  after(refused: Account, standing: Standing): Promise<Account>;
}

/** What is read is trusted for so long. */
const KEPT_MS = 10_000;

/** Reads the account now and then, and at once when it is refused. What cannot be read any more stays as it was. */
export function accountInUse(access: ClusterAccess, clock: Clock): AccountInUse {
  let kept: { readonly account: Account; readonly until: number } | undefined;
  let reading: { readonly standing: Standing; readonly account: Promise<Account> } | undefined;

  const readNow = async (standing: Standing): Promise<Account> => {
    const { forMs = KEPT_MS, ...read } = await access.read(standing);
    const account = kept && isEqual(kept.account, read) ? kept.account : read;
    kept = { account, until: clock.now() + Math.min(KEPT_MS, forMs) };
    return account;
  };
  /** Those who come while it is read wait for the same. */
  const read = (standing: Standing): Promise<Account> => {
    if (reading && (standing === 'good' || reading.standing === 'refused')) return reading.account;
    const account = readNow(standing).finally(() => {
      if (reading?.account === account) reading = undefined;
    });
    reading = { standing, account };
    return account;
  };
  return {
    current: async () => {
      if (kept && clock.now() < kept.until) return kept.account;
      const before = kept?.account;
      if (!before) return await read('good').catch(asAccessError);
      return await read('good').catch(() => before);
    },
    after: async (refused, standing) => {
      if (kept && kept.account !== refused && clock.now() < kept.until) return kept.account;
      return await read(standing).catch(asAccessError);
    },
  };
}

function asAccessError(cause: unknown): never {
  if (cause instanceof AccessError) throw cause;
  throw new AccessError(cause instanceof Error ? cause.message : 'it cannot be said who we are');
}
