import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { CHOSEN } from './load.ts';

/** A slow response: the endpoint that sends it, and its body once it is complete. */
export type LongAnswer = { readonly endpoint: string; readonly whole: Promise<string> };

/** Requests lines, of which the service sends ten each second. */
export async function longAnswer(listener: string, host: string, lines: number): Promise<LongAnswer> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(`http://${listener}/lines/${lines}?everyMs=100`, { agent: false, headers: { host } })
      .once('response', resolve)
      .once('error', reject)
      .end();
  });
  const whole = text(answer);
  // The promise that waits for it is rejected.
  whole.catch(() => undefined);
  return { endpoint: String(answer.headers[CHOSEN]), whole };
}
