import { inspect } from 'node:util';
import { onTestFinished } from 'vitest';
import type { RestConfig, RestConfigSource } from '../../../src/kubernetes/auth/rest-config.ts';
import { KubeError } from '../../../src/kubernetes/transport/transport.ts';
import { openTransport } from '../../../src/kubernetes/transport/open-transport.ts';
import type { TransportOptions } from '../../../src/kubernetes/transport/open-transport.ts';
import type { KubeTransport } from '../../../src/kubernetes/transport/transport.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { AUTHORITY } from './wire-certificates.ts';

/** Secrets that may never occur in an error. */
export const TOKEN = 'hidden-credential-of-the-test';

/** The same, in what is sent. */
export const SENT = 'hidden-content-of-the-test';

/** A client with a token that trusts the first authority. */
function accountOf(server: string): RestConfig {
  return { server, tls: { ca: AUTHORITY.ca }, headers: { authorization: `Bearer ${TOKEN}` } };
}

/** A configuration that never changes. */
function fixedAccess(account: RestConfig): RestConfigSource {
  return { load: () => Promise.resolve(account) };
}

/** A transport that is closed with the test. */
export function wireTransport(server: string, more: Partial<TransportOptions> = {}): KubeTransport {
  const transport = openTransport({
    configSource: fixedAccess(accountOf(server)),
    clock: systemClock,
    now: () => new Date(),
    timeoutMs: 60_000,
    ...more,
  });
  onTestFinished(() => transport.close());
  return transport;
}

/** The error of a promise, which must be a KubeError without a secret. */
export async function kubeErrorOf(promise: Promise<unknown>): Promise<KubeError> {
  const error: unknown = await promise.then(
    value => new Error(`it did not fail but gave ${inspect(value)}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof KubeError)) throw error;
  const shown = inspect(error, { depth: 10, showHidden: true });
  if (shown.includes(TOKEN) || shown.includes(SENT)) throw new Error(`an error contains a secret: ${shown}`);
  return error;
}

/** All values of an iterable. */
export async function allOf(values: AsyncIterable<unknown>): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  for await (const value of values) all.push(value);
  return all;
}
