import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A request and its answer, and the socket below them. */
export type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Socket | undefined;
};

/** The faults of an answer. */
export const FAULTS = [
  'reset',
  'early close',
  'silence',
  '500',
  '503',
  '429',
  '410',
  '401',
  '403',
  '404',
  'garbage',
  'truncated JSON',
  'slow drip',
] as const;

/** One of these. */
export type Fault = (typeof FAULTS)[number];

/** The interval between the pieces of a slow answer. */
const DRIP_MS = 20;

/** Sends JSON. */
export function sendJson({ response }: Exchange, value: unknown, status = 200, headers: Headers = {}): void {
  begin(response, status, headers);
  write(response, JSON.stringify(value));
  response.end();
}

type Headers = Readonly<Record<string, string>>;

/** Sends the head of a response whose body follows. */
export function begin(response: ServerResponse, status: number, headers: Headers = {}): void {
  response.statusCode = status;
  response.setHeader('content-type', 'application/json');
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.flushHeaders();
}

/** Sends a piece; without effect if the client has disconnected. */
export function write(response: ServerResponse, text: string): void {
  if (!response.writableEnded && !response.destroyed) response.write(text);
}

/** The Status that an API server answers with. */
export function statusOf(code: number, message = `the test answers ${code}`): object {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code };
}

/** Answers with a fault in the place of a JSON value. */
export function sendFault(exchange: Exchange, fault: Fault, value: unknown): void {
  const { response, socket } = exchange;
  const text = JSON.stringify(value);
  switch (fault) {
    case 'reset':
      socket?.resetAndDestroy();
      return;
    case 'early close':
      begin(response, 200);
      write(response, text.slice(0, text.length / 2));
      setTimeout(() => socket?.destroy(), 5);
      return;
    case 'silence':
      return;
    case '500':
    case '503':
    case '410':
    case '401':
    case '403':
    case '404':
      sendJson(exchange, statusOf(Number(fault)), Number(fault));
      return;
    case '429':
      sendJson(exchange, statusOf(429), 429, { 'retry-after': '1' });
      return;
    case 'garbage':
      begin(response, 200);
      write(response, '<html>one moment please</html>\n');
      response.end();
      return;
    case 'truncated JSON':
      begin(response, 200);
      write(response, text.slice(0, text.length / 2));
      response.end();
      return;
    case 'slow drip':
      begin(response, 200);
      {
        drip(response, text);
        return;
      }
  }
}

/** Sends one character at a time, without an end. */
export function drip(response: ServerResponse, text: string): void {
  let at = 0;
  const timer = setInterval(() => {
    write(response, text[at++ % (text.length - 1)] ?? ' ');
  }, DRIP_MS);
  response.once('close', () => clearInterval(timer));
}
