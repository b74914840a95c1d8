/** Why a check failed: the endpoint answered, it did not, or the check did not get as far as the endpoint. */
type Reason = 'answered' | 'unanswered' | 'unreached';

const MAX_CHARACTERS = 256;

/** A check that failed, in a short text for people without secrets. */
export class CheckError extends Error {
  override readonly name = 'CheckError';
  readonly reason: Reason;
  /** The cause, for machines, with the settings of the check that matter. Without one it did not get as far as the endpoint. */
  readonly code: string;

  constructor(reason: Reason, text: string, code = 'UNREACHED') {
    super(text.slice(0, MAX_CHARACTERS));
    this.reason = reason;
    this.code = code;
  }
}

const CLOSED = 'connection closed';
const UNREACHABLE = 'host unreachable';

/** Errors of connections, which may also be those of the way to the endpoint. */
const UNANSWERED: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  ECONNABORTED: CLOSED,
  ERR_SOCKET_CLOSED: CLOSED,
  ERR_STREAM_PREMATURE_CLOSE: CLOSED,
  ETIMEDOUT: 'connection timeout',
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  EHOSTDOWN: UNREACHABLE,
  ENOTFOUND: 'no such name',
  EAI_AGAIN: 'names cannot be resolved',
  EACCES: 'connection not permitted',
  EPERM: 'connection not permitted',
};

/** Errors of this process or its machine, which are no result of the endpoint. */
const UNREACHED: Readonly<Record<string, string>> = {
  EMFILE: 'this process has too many open files',
  ENFILE: 'this machine has too many open files',
  EADDRNOTAVAIL: 'no local port is free',
};

const UNKNOWN_AUTHORITY = 'certificate is signed by an unknown authority';
const NO_VERSION = 'no TLS version in common';
const NOT_TLS = 'response is not TLS';
const BAD_REQUEST = 'a header or the path of the check has invalid characters';

/** Errors that only the endpoint, or the settings of the check, can cause. */
const ANSWERED: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'certificate expired',
  CERT_NOT_YET_VALID: 'certificate is not valid yet',
  CERT_REVOKED: 'certificate is revoked',
  CERT_UNTRUSTED: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  CERT_SIGNATURE_FAILURE: 'certificate has a wrong signature',
  INVALID_CA: 'certificate is signed by one that is not an authority',
  INVALID_PURPOSE: 'certificate is not for servers',
  ERR_SSL_WRONG_VERSION_NUMBER: NOT_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NOT_TLS,
  ERR_SSL_HTTP_REQUEST: NOT_TLS,
  ERR_SSL_UNSUPPORTED_PROTOCOL: NO_VERSION,
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: NO_VERSION,
  ERR_SSL_TLSV1_UNRECOGNIZED_NAME: 'server does not know the server name',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'server requires a client certificate',
  HPE_HEADER_OVERFLOW: 'response headers are too large',
  ERR_INVALID_CHAR: BAD_REQUEST,
  ERR_INVALID_HTTP_TOKEN: BAD_REQUEST,
  ERR_UNESCAPED_CHARACTERS: BAD_REQUEST,
};

/** Codes of one kind that have no text of their own. */
const FAMILIES: readonly (readonly [prefix: string, text: string])[] = [
  ['HPE_', 'response is not HTTP'],
  ['ERR_SSL_', 'TLS handshake failed'],
  ['ERR_TLS_', 'TLS handshake failed'],
];

/** Maps an error of Node to a text by its code; messages are left out, since they may quote headers. */
export function checkErrorOf(error: unknown, serverName = ''): CheckError {
  if (error instanceof CheckError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return new CheckError('answered', `certificate is not valid for ${serverName}`, `${code}_${serverName}`);
  const answered = ANSWERED[code];
  if (answered !== undefined) return new CheckError('answered', answered, causeOf(ANSWERED, code));
  const family = FAMILIES.find(([prefix]) => code.startsWith(prefix));
  if (family) return new CheckError('answered', family[1], family[0]);
  const unreached = UNREACHED[code];
  if (unreached !== undefined) return new CheckError('unreached', unreached);
  const text = UNANSWERED[code] ?? `connection failed${/^\w{1,60}$/.test(code) ? `: ${code}` : ''}`;
  return new CheckError('unanswered', text, causeOf(UNANSWERED, code));
}

/** Codes that have one text are one cause: the first of them. */
function causeOf(texts: Readonly<Record<string, string>>, code: string): string {
  const text = texts[code];
  return Object.keys(texts).find(each => text !== undefined && texts[each] === text) ?? code;
}

/** The errors of meshd and its network libraries for a failed dial, and the code that Node has for the same. */
const DIAL_ERRORS: readonly (readonly [pattern: RegExp, code: string])[] = [
  [/connection (was )?refused/i, 'ECONNREFUSED'],
  [/no such host|server misbehaving/i, 'ENOTFOUND'],
  [/time(d )?out|deadline exceeded/i, 'ETIMEDOUT'],
  [/no route to host|unreachable|no matching peer/i, 'EHOSTUNREACH'],
  [/reset by peer|connection (was )?reset|\bEOF\b/i, 'ECONNRESET'],
];

/** The error of a failed dial by the Tailscale-Connect-Error of a proxy, which may be any text. */
export function dialError(text: string | undefined): CheckError {
  const found = DIAL_ERRORS.find(([pattern]) => text !== undefined && pattern.test(text));
  if (found) return new CheckError('unanswered', UNANSWERED[found[1]] ?? '', found[1]);
  const printable = text === undefined ? '' : `: ${text.replaceAll(/[^\x21-\x7e]+/g, ' ').trim()}`;
  return new CheckError('unanswered', `the proxy could not connect${printable}`, 'NOT_DIALLED');
}

/** A time limit in a text. */
export function seconds(ms: number): string {
  return ms < 1000 ? `${ms}ms` : `${ms / 1000}s`;
}
