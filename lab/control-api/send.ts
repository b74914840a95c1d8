import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from './answer.ts';
import { withHalfLists, withWrongTypes } from './faults.ts';
import type { Fault } from './faults.ts';

/** Sends an answer, with an optional fault. */
export async function send(
  response: ServerResponse,
  answer: Answer,
  fault: Fault | undefined,
): Promise<void> {
  const json = jsonOf(answer, fault);
  const whole = json ?? answer.text ?? '';
  const body = Buffer.from(fault?.is === 'truncate' ? whole.slice(0, Math.floor(whole.length / 2)) : whole);
  const contentType = json === undefined ? 'text/plain; charset=utf-8' : 'application/json';
  const headers = {
    ...(body.length > 0 ? { 'content-type': contentType } : {}),
    ...answer.headers,
    ...(fault?.is === 'content-type' ? { 'content-type': fault.value } : {}),
  };
  response.writeHead(answer.status, { ...headers, 'content-length': body.length });
  if (fault?.is === 'drip') await drip(response, body, fault);
  if (fault?.is === 'reset') {
    if (body.length > 0) {
      const half = body.subarray(0, Math.ceil(body.length / 2));
      await new Promise<void>(resolve => response.write(half, () => resolve()));
    }
    response.socket?.resetAndDestroy();
    return;
  }
  if (fault?.is === 'drip') response.end();
  else response.end(body);
}

function jsonOf({ json, encodedJson }: Answer, fault: Fault | undefined): string | undefined {
  const encoded = encodedJson ?? (json === undefined ? undefined : JSON.stringify(json));
  const change = fault && CHANGES[fault.is];
  return change && encoded !== undefined ? JSON.stringify(change(JSON.parse(encoded))) : encoded;
}

/** The faults that change the JSON. */
const CHANGES: Readonly<Partial<Record<Fault['is'], (json: unknown) => unknown>>> = {
  'wrong-types': withWrongTypes,
  'half-lists': withHalfLists,
};

async function drip(
  response: ServerResponse,
  body: Buffer,
  { bytes, everyMs }: Fault & { is: 'drip' },
): Promise<void> {
  for (let at = 0; at < body.length && !response.destroyed; at += bytes) {
    response.write(body.subarray(at, at + bytes));
    await sleep(everyMs);
  }
}
