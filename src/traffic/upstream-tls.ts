import { X509Certificate, createHash } from 'node:crypto';
import type { UpstreamProtocol } from './upstream-protocol.ts';
import type { EndpointTls, MeshEndpoint } from '../api/generated/types.ts';

/** The most different settings that one cluster can have. */
export const MAX_TLS_SETTINGS = 64;

/** The most bytes of settings that one cluster can have: each set of them has its certificates for itself. */
export const MAX_TLS_BYTES = 256 * 1024;

/**
 * How TLS is spoken with an endpoint. Only where nothing is asked for but the name that the endpoint has in the tailnet
 * anyway, that name is taken from each endpoint: Envoy then names it to the proxy in place of the address, and the mesh
 * daemon would dial any other name.
 */
export function upstreamTlsOf(
  { meshFQDN, tls }: MeshEndpoint,
  domain: string,
  protocol: UpstreamProtocol,
): UpstreamTls {
  const name = tls?.serverName ?? meshFQDN;
  const isItself = name === meshFQDN && name.endsWith(`.${domain}`);
  const alpn = alpnOf(protocol);
  return {
    serverName: isItself && hasOnlyServerName(tls) ? { is: 'per-endpoint' } : { is: 'fixed', name },
    ...(tls?.ca !== undefined && !tls.insecureSkipVerify && { ca: tls.ca }),
    ...(tls?.minVersion !== undefined && { minVersion: tls.minVersion }),
    insecureSkipVerify: tls?.insecureSkipVerify ?? false,
    ...(alpn !== undefined && { alpn }),
  };
}

function hasOnlyServerName(tls: EndpointTls | undefined): boolean {
  return tls?.ca === undefined && tls?.minVersion === undefined && tls?.insecureSkipVerify !== true;
}

function alpnOf(protocol: UpstreamProtocol): UpstreamTls['alpn'] {
  switch (protocol) {
    case 'HTTP/1.1':
      return 'http/1.1';
    case 'HTTP/2':
      return 'h2';
    case 'TCP':
    case 'UDP':
      return undefined;
  }
}

/** Settings as a text: equal texts mean equal settings. */
export function tlsKey({ serverName, ca, minVersion, insecureSkipVerify, alpn }: UpstreamTls): string {
  const name = serverName.is === 'fixed' ? serverName.name : '*';
  return `${name} ${minVersion ?? '-'} ${insecureSkipVerify} ${alpn ?? '-'} ${ca ?? '-'}`;
}

/** The name of the socket of endpoints that take no TLS, where others of the cluster do. */
export const CLEAR_SOCKET = 'clear';

/** The name of the socket for settings, which depends on nothing else. */
export function socketName(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

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

/** How TLS is spoken with some endpoints. */
export type UpstreamTls = {
  /** Fixed: one name for all. PerEndpoint: each endpoint's own hostname is sent and must be in its certificate. */
  readonly serverName: { readonly is: 'fixed'; readonly name: string } | { readonly is: 'per-endpoint' };
  /** PEM text; the system's roots without it. */
  readonly ca?: string;
  readonly minVersion?: '1.2' | '1.3';
  readonly insecureSkipVerify: boolean;
  /** The one protocol offered inside of TLS; none for raw bytes. */
  readonly alpn?: 'h2' | 'http/1.1';
};
