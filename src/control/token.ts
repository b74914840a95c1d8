import type { controlMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/metric-recorder.ts';
import { ControlError } from './control.ts';
import type { Credentials } from './control.ts';

/** A token as the API grants it. */
export type GrantedToken = {
  readonly value: string;
  readonly lifetimeMs: number;
  readonly scopes: readonly string[];
};

export type TokenDeps = {
  /** Exchanges credentials for a token; fails with ControlError. */
  readonly exchange: (credentials: Credentials) => Promise<GrantedToken>;
  /** The time of day. */
  readonly now: () => Date;
  readonly random: () => number;
  readonly record?: Pick<Recorder<typeof controlMetrics>, 'tokenRenewals'>;
};

type Token = GrantedToken & { readonly renewAt: Date; readonly expiresAt: Date };

/** A token is renewed this early, and by up to as much again at random. */
const EARLY_MS = 60_000;

/** The token of a tailnet: renewed before it expires, and by one request at a time for all callers. */
export class TokenSource {
  readonly #deps: TokenDeps;
  #credentials: Credentials | undefined;
  #token: Token | undefined;
  #renewing: Promise<Token> | undefined;

  constructor(deps: TokenDeps) {
    this.#deps = deps;
  }

  /** The token in use; undefined before the first. */
  current(): { readonly expiresAt: Date; readonly scopes: readonly string[] } | undefined {
    return this.#token;
  }

  /** Uses credentials from now on. Until they have worked once, the token of those before stays in use. */
  async use(credentials: Credentials): Promise<void> {
    if (this.#credentials && isSame(this.#credentials, credentials)) return;
    this.#token = await this.#exchange(credentials);
    this.#credentials = credentials;
  }

  /** Returns a token that is valid as far as is known. */
  async get(): Promise<string> {
    const token = this.#token;
    const now = this.#deps.now();
    if (token && now < token.renewAt) return token.value;
    try {
      return (await this.#renew()).value;
    } catch (error) {
      const isRefused = error instanceof ControlError && error.reason === 'CredentialsInvalid';
      if (token && now < token.expiresAt && !isRefused) return token.value;
      throw error;
    }
  }

  /** Returns another token than one that was answered with 401. */
  async after401(value: string): Promise<string> {
    if (this.#token && this.#token.value !== value) return this.#token.value;
    return (await this.#renew()).value;
  }

  #renew(): Promise<Token> {
    const credentials = this.#credentials;
    if (!credentials) throw new ControlError('CredentialsInvalid', 'there are no credentials');
    this.#renewing ??= this.#exchange(credentials)
      .then(token => {
        // Others may have been accepted while these were renewed.
        if (this.#credentials === credentials) this.#token = token;
        return token;
      })
      .finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  async #exchange(credentials: Credentials): Promise<Token> {
    const { exchange, now, random, record } = this.#deps;
    const sentAt = now().getTime();
    try {
      const granted = await exchange(credentials);
      record?.tokenRenewals({ result: 'success' });
      const earlyMs = Math.min(EARLY_MS * (1 + random()), granted.lifetimeMs / 2);
      const expiresAt = sentAt + granted.lifetimeMs;
      return { ...granted, renewAt: new Date(expiresAt - earlyMs), expiresAt: new Date(expiresAt) };
    } catch (error) {
      record?.tokenRenewals({ result: 'failure' });
      throw error;
    }
  }
}

/** Federated identities are compared without their tokens, which differ each time. */
export function isSame(one: Credentials, other: Credentials): boolean {
  const secretOf = (credentials: Credentials) =>
    credentials.kind === 'oauth' ? credentials.clientSecret : credentials.audience;
  return one.kind === other.kind && one.clientId === other.clientId && secretOf(one) === secretOf(other);
}
