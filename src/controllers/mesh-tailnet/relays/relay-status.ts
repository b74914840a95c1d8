import { once } from 'node:events';
import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { isRecord, jsonObjectIn } from '../../../api/json.ts';
import { RELAY } from '../../../api/names.ts';
import type { Clock } from '../../../api/clock.ts';

/** What a relay reports about its ports. */
export type RelayStatus = {
  /** Of the targets that it serves. */
  readonly version: string;
  /** Of the VIP services that the pod serves, where it serves no others; relays of earlier versions do not tell. */
  readonly services?: string;
  /** Why it cannot listen on ports, such as EADDRINUSE. */
  readonly failed: ReadonlyMap<number, string>;
};

/** The status of a relay, or why it could not be read. */
export type RelayResponse = RelayStatus | { readonly error: string };

/** A mesh pod with a relay. */
export type RelayPod = { readonly uid: string; readonly name: string; readonly address: string };

/** What the relay of a pod responded. */
export type RelayReport = { readonly pod: RelayPod; readonly response: RelayResponse };

/** Sends a GET request; resolves with the body of a response with status 200, and rejects otherwise. */
export type HttpGet = (
  url: string,
  options: { readonly signal: AbortSignal; readonly maxBytes: number },
) => Promise<string>;

export type RelayStatusDeps = { readonly httpGet: HttpGet; readonly clock: Pick<Clock, 'after'> };

/** The relays of all pods are read in this time. */
const TIMEOUT_MS = 1000;

const MAX_BYTES = 65_536;

/** Reads the status of the relays of these pods, all at once, in one second. */
export async function readRelays(
  pods: readonly RelayPod[],
  signal: AbortSignal,
  { httpGet, clock }: RelayStatusDeps,
): Promise<readonly RelayReport[]> {
  const timeout = new AbortController();
  const cancel = clock.after(TIMEOUT_MS, () =>
    timeout.abort(new Error(`no response within ${TIMEOUT_MS} ms`)),
  );
  try {
    return await Promise.all(
      pods.map(async pod => {
        // One for each request: Node warns of a signal with many listeners.
        const options = { signal: AbortSignal.any([signal, timeout.signal]), maxBytes: MAX_BYTES };
        try {
          return { pod, response: parseRelayStatus(await httpGet(urlOf(pod.address), options)) };
        } catch (error) {
          return { pod, response: { error: error instanceof Error ? error.message : String(error) } };
        }
      }),
    );
  } finally {
    cancel();
  }
}

function urlOf(address: string): string {
  const host = address.includes(':') ? `[${address}]` : address;
  return `http://${host}:${RELAY.ports.http}/relay`;
}

/** Parses the status of a relay, which a compromised mesh pod may send; throws where it is not one. */
export function parseRelayStatus(text: string): RelayStatus {
  const { version, services, failed } = jsonObjectIn(text) ?? {};
  if (!isVersion(version) || !isRecord(failed)) throw malformed();
  if (services !== undefined && !isVersion(services)) throw malformed();
  const ports = new Map(Object.entries(failed).map(failureOf));
  return { version, ...(services !== undefined && { services }), failed: ports };
}

function isVersion(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{16}$/.test(value);
}

function failureOf([port, reason]: [string, unknown]): [number, string] {
  if (!/^[1-9]\d{0,4}$/.test(port)) throw malformed();
  // Reasons go into messages, so only codes are accepted.
  const isCode = typeof reason === 'string' && /^[A-Z0-9_]{1,32}$/.test(reason);
  return [Number(port), isCode ? reason : 'unknown error'];
}

function malformed(): Error {
  return new Error('the response is not the status of a relay');
}

/** Sends a GET request on a connection of its own, without proxies and redirects. */
export const httpGet: HttpGet = async (url, { signal, maxBytes }) => {
  const request = get(url, { agent: false, signal });
  // The same error ends what is awaited below.
  request.on('error', () => undefined);
  try {
    const [response] = (await once(request, 'response', { signal })) as [IncomingMessage];
    if (response.statusCode !== 200) throw new Error(`the response has status ${response.statusCode}`);
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new Error(`the response is longer than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    request.destroy();
  }
};
