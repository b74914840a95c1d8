import { encodeHeaders } from './http2/hpack/encode.ts';
import type { SentHeaders } from './http2/hpack/encode.ts';
import type { RequestHead } from './http2/request-fields.ts';
import { GRPC_CODES } from './status.ts';
import type { GrpcStatus } from './status.ts';

const ANSWER_HEADERS: SentHeaders = { ':status': '200', 'content-type': 'application/grpc' };

/** The headers before messages, as they are sent. */
export const ANSWER = encodeHeaders(ANSWER_HEADERS);

/** More of a message would be refused by callers, who accept few headers. */
const LONGEST_MESSAGE = 1024;

/** The headers behind messages. */
export function trailersOf({ code, message }: GrpcStatus): SentHeaders {
  if (code === 'OK' && message === '') return { 'grpc-status': '0' };
  return { 'grpc-status': String(GRPC_CODES[code]), 'grpc-message': encodeMessage(message) };
}

/** The headers of a call that has no messages. */
export function trailersOnly(status: GrpcStatus, httpStatus = 200): SentHeaders {
  return { ...ANSWER_HEADERS, ':status': String(httpStatus), ...trailersOf(status) };
}

/** A message as a header may hold it: all but visible ASCII, and the percent sign, as %XX of UTF-8. */
export function encodeMessage(message: string): string {
  const bytes = Buffer.from(message.slice(0, LONGEST_MESSAGE));
  return Array.from(bytes, byte =>
    byte >= 0x20 && byte <= 0x7e && byte !== 0x25
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
  ).join('');
}

/** A request that is no call, and the status of HTTP that says so. */
export type Refusal = { readonly httpStatus: number; readonly status: GrpcStatus };

const GRPC_CONTENT = /^application\/grpc(?:$|[+;])/;

/** Why a request is not a call of gRPC; undefined where it is one. */
export function refusalOf(headers: Partial<RequestHead>): Refusal | undefined {
  if (headers[':method'] !== 'POST') {
    return { httpStatus: 405, status: { code: 'UNKNOWN', message: 'only POST is answered here' } };
  }
  if (!GRPC_CONTENT.test(headers['content-type'] ?? '')) {
    return {
      httpStatus: 415,
      status: { code: 'UNKNOWN', message: 'only application/grpc is answered here' },
    };
  }
  return undefined;
}
