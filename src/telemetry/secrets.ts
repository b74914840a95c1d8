/** What stands where a secret was. */
export const REDACTED = '[redacted]';

/** Names of fields that hold secrets, in small letters and without anything between words. */
const SECRET_NAME =
  /secret|token|passw(?:or)?d|passphrase|authorization|credential|cookie|(?:auth|api|access|private|shared|signing|encryption|session|host)key|^(?:keys?|pass|pwd)$/;

/** The last words of names of fields that only tell about a secret. */
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

/** Whether a field of this name holds a secret, whatever the secret looks like. */
export function isSecretName(name: string): boolean {
  if (!SECRET_NAME.test(name.toLowerCase().replace(/[^a-z0-9]/g, ''))) return false;
  const words = name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+/g);
  return !ABOUT_A_SECRET.has(words?.at(-1)?.toLowerCase() ?? '');
}

/** Something in quotes, also where they are escaped or the end is missing. */
const QUOTED = String.raw`\\+"[^"]*(?:"|$)|"(?:[^"\\]|\\.)*(?:"|\\?$)|'[^']*(?:'|$)`;

/** What follows a name: a separator, as in YAML, JSON, queries or headers. */
const IS = String.raw`\\*["']?\s*(?:[:=]|%3[AD])\s*`;

/**
 * What secrets look like inside of texts; what may have blanks in it comes first, and what follows a telling name comes
 * last. The group of a shape may stay. All hold at the end of a text that was cut, too.
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
    String.raw`((?:secret|token|passw(?:or)?d|passphrase|credentials?|(?:auth|api|access|private)[-_]?key)(?![\w-]{0,20}(?:name|ref|type|id|url)\b)[\w-]{0,20}${IS})(?:${QUOTED}|[^\s&]+)`,
    'gi',
  ),
];

/** So much of a text is shown, and so much of it is looked at, so that no text can hold up the process. */
const [LONGEST_SHOWN, LONGEST_READ] = [4096, 8192];

/** A text without anything that looks like a secret, and cut where it is long. */
export function withoutSecrets(text: string): string {
  const isLong = text.length > LONGEST_READ;
  let read = isLong ? text.slice(0, LONGEST_READ) : text;
  for (const shape of SHAPES) {
    read = read.replace(shape, (_all, kept: unknown) => `${typeof kept === 'string' ? kept : ''}${REDACTED}`);
  }
  // The last word may be half of something whose other half would have told what it is.
  if (isLong) read = read.replace(/\S+$/, '');
  if (!isLong && read.length <= LONGEST_SHOWN) return read;
  return `${read.slice(0, LONGEST_SHOWN)}[cut: ${text.length} characters]`;
}
