import { X509Certificate } from 'node:crypto';

/** What a PEM text of authorities is good for: the certificates in it, in one form for all ways to write them, or nothing. */
export type CaBundle =
  | { readonly is: 'valid'; readonly pem: string }
  /** `why` goes on after "cannot be read: ". */
  | { readonly is: 'invalid'; readonly why: string };

/** Reads a PEM text of authorities. */
export type ReadCaBundle = (pem: string) => CaBundle;

const BEGIN = '-----BEGIN ';
const BLOCK = /-----BEGIN ([^\n-]*)-----[^-]*-----END \1-----/g;

/**
 * Reads a PEM text of authorities; text around the certificates is passed over. Envoy refuses a cluster as a whole for one
 * that it cannot read, and what it would take from other blocks, such as revocations, is not ours to drop silently.
 */
export function readCaBundle(pem: string): CaBundle {
  const blocks = [...pem.matchAll(BLOCK)];
  if (blocks.length === 0 || pem.split(BEGIN).length - 1 !== blocks.length) {
    return { is: 'invalid', why: 'a BEGIN line has no END line that goes with it' };
  }
  const certificates: string[] = [];
  for (const [at, [block, label]] of blocks.entries()) {
    if (label !== 'CERTIFICATE') return { is: 'invalid', why: `block ${at + 1} is no CERTIFICATE` };
    const certificate = certificateIn(block);
    if (certificate === undefined) return { is: 'invalid', why: `certificate ${at + 1} is malformed` };
    certificates.push(certificate);
  }
  return { is: 'valid', pem: certificates.join('') };
}

function certificateIn(block: string): string | undefined {
  try {
    return new X509Certificate(block).toString();
  } catch {
    return undefined;
  }
}

/** So many texts are remembered, of which none is longer than a field of an endpoint can be. */
const MAX_CACHED = 256;

/** Makes a function that reads each of the texts that come again and again once: it takes long. */
export function cachedCaBundles(): ReadCaBundle {
  const known = new Map<string, CaBundle>();
  return pem => {
    const trust = known.get(pem) ?? readCaBundle(pem);
    known.delete(pem);
    known.set(pem, trust);
    const [oldest] = known.keys();
    if (known.size > MAX_CACHED && oldest !== undefined) known.delete(oldest);
    return trust;
  };
}
