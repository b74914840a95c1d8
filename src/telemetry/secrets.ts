/** The replacement of a secret. */
export const REDACTED = '[redacted]';

/** Names of fields that hold secrets, in lower case and without separators. */
const SECRET_NAME =
  /secret|token|passw(?:or)?d|passphrase|authorization|credential|cookie|(?:auth|api|access|private|shared|signing|encryption|session|host)key|^(?:keys?|pass|pwd)$/;

/** The last words of names of fields that only describe a secret. */
const ABOUT_A_SECRET = new Set(
  [
    'name',
    'names',
    'namespace',
    'ref',
    'refs',
    'kind',
    'type',
    'id',
    'url',
    'endpoint',
    'at',
    'ms',
    'count',
  ].concat(['version', 'path', 'status', 'reason']),
);

/** Whether a field of this name holds a secret. */
export function isSecretName(name: string): boolean {
  if (!SECRET_NAME.test(name.toLowerCase().replace(/[^a-z0-9]/g, ''))) return false;
  const words = name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+/g);
  return !ABOUT_A_SECRET.has(words?.at(-1)?.toLowerCase() ?? '');
}

/** A quoted text, also with escaped quotes or without its end. */
const QUOTED = String.raw`\\+"[^"]*(?:"|$)|"(?:[^"\\]|\\.)*(?:"|\\?$)|'[^']*(?:'|$)`;

/** The separator after a name in YAML, JSON, queries or headers. */
const IS = String.raw`\\*["']?\s*(?:[:=]|%3[AD])\s*`;

/** Not the path of a request before a message about it: POST /api/v2/oauth/token: 401. */
const NO_PATH = String.raw`(?<!\b(?:GET|POST|PUT|PATCH|DELETE) /[\w./%~-]*:\s*)`;

/**
 * Patterns of secrets in texts; auth_keys is the name of a scope. First those that may contain blanks, last those that follow the name of a secret. The group
 * of a pattern is kept. All also match at the end of a truncated text.
 */
const SHAPES: readonly RegExp[] = [
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/gi,
  // The same in base64, as in the data of a Secret.
  /LS0tLS1CRUdJTi[\w+/=\r\n\\]*/gi,
  new RegExp(String.raw`((?:authorization|cookie)${IS})(?:${QUOTED}|[^\r\n]+)`, 'gi'),
  /((?:Bearer|Basic)(?:\s|%20|\+)+)[^\s<>,;]+/gi,
  /(?:ts|hs)key-[\w-]+/gi,
  /privkey:\w+/gi,
  /eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?/g,
  /(:\/\/)(?:[^\s/?#]*|[^\s/:@]*:\S*)(?=@)/g,
  new RegExp(
    String.raw`((?:secret|token|passw(?:or)?d|passphrase|credentials?|(?!auth_keys\b)(?:auth|api|access|private)[-_]?key)(?![\w-]{0,20}(?:name|ref|type|id|url|found|missing|object)\b)[\w-]{0,20}${IS}${NO_PATH})(?:${QUOTED}|[^\s&]+)`,
    'gi',
  ),
];

/** The limits of what is written and of what is searched, so that no text can block the process. */
const [MAX_SHOWN_LENGTH, MAX_READ_LENGTH] = [4096, 8192];

/** A text with its secrets redacted, truncated if it is long. */
export function withoutSecrets(text: string): string {
  const isLong = text.length > MAX_READ_LENGTH;
  let read = isLong ? text.slice(0, MAX_READ_LENGTH) : text;
  for (const shape of SHAPES) {
    read = read.replace(shape, (_all, kept: unknown) => `${typeof kept === 'string' ? kept : ''}${REDACTED}`);
  }
  // The last word may be a truncated secret that no pattern matches.
  if (isLong) read = read.replace(/\S+$/, '');
  if (!isLong && read.length <= MAX_SHOWN_LENGTH) return read;
  return `${read.slice(0, MAX_SHOWN_LENGTH)}[cut: ${text.length} characters]`;
}
