import { createHash, X509Certificate } from 'node:crypto';
import type { EndpointTls, MeshEndpoint } from '../api/generated/types.ts';
import type { Problem } from '../api/problem.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';

/** The TLS that Envoy originates to an endpoint. */
export type UpstreamTls = {
  /** fixed: one name for all. per-endpoint: each endpoint's hostname is sent as SNI and must be in its certificate. */
  readonly serverName: { readonly is: 'fixed'; readonly name: string } | { readonly is: 'per-endpoint' };
  /** PEM; the system's roots without it. */
  readonly ca?: string;
  readonly minVersion?: '1.2' | '1.3';
  readonly insecureSkipVerify: boolean;
  /** The only ALPN protocol that is offered; none for TCP. */
  readonly alpn?: 'h2' | 'http/1.1';
};

/** The most different TLS settings in a cluster. */
export const MAX_TLS_SETTINGS = 64;

/** The most bytes of TLS settings in a cluster, their CA bundles included. */
export const MAX_TLS_BYTES = 256 * 1024;

type UpstreamTlsOptions = {
  /** spec.tailnet of the MeshEndpoints. */
  readonly domain: string;
  readonly protocol: UpstreamProtocol;
  /** PEM, of tls.ca or tls.caRef. */
  readonly ca: string | undefined;
};

/**
 * The TLS settings of an endpoint. `per-endpoint` is for endpoints that set nothing but meshFQDN as server name, because
 * Envoy then sends the hostname to the proxy in CONNECT, and meshd dials it: it must be a name in the tailnet.
 */
export function upstreamTlsOf(
  { meshFQDN, tls }: MeshEndpoint,
  { domain, protocol, ca }: UpstreamTlsOptions,
): UpstreamTls {
  const name = tls?.serverName ?? meshFQDN;
  const isMeshName = name === meshFQDN && isInTailnet(name, domain);
  const alpn = alpnOf(protocol);
  return {
    serverName: isMeshName && hasOnlyServerName(tls, ca) ? { is: 'per-endpoint' } : { is: 'fixed', name },
    ...(ca !== undefined && !tls?.insecureSkipVerify && { ca }),
    ...(tls?.minVersion !== undefined && { minVersion: tls.minVersion }),
    insecureSkipVerify: tls?.insecureSkipVerify ?? false,
    ...(alpn !== undefined && { alpn }),
  };
}

function isInTailnet(name: string, domain: string): boolean {
  return name.endsWith(`.${domain}`);
}

/**
 * Why meshFQDN cannot be the name of a device in the tailnet; undefined where it can. The endpoint is still used, by its
 * address. With externalTarget it is no device.
 */
export function meshNameProblem(
  { meshFQDN, externalTarget }: MeshEndpoint,
  domain: string,
): Problem<'NameNotInTailnet'> | undefined {
  if (externalTarget !== undefined || isInTailnet(meshFQDN, domain)) return undefined;
  const fix = 'write the name of the device, which `tailscale status` prints';
  return { reason: 'NameNotInTailnet', text: `meshFQDN is not inside the tailnet ${domain}`, fix };
}

function hasOnlyServerName(tls: EndpointTls | undefined, ca: string | undefined): boolean {
  return ca === undefined && tls?.minVersion === undefined && tls?.insecureSkipVerify !== true;
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

/** Equal for equal settings. */
export function tlsKey({ serverName, ca, minVersion, insecureSkipVerify, alpn }: UpstreamTls): string {
  const name = serverName.is === 'fixed' ? serverName.name : '*';
  return `${name} ${minVersion ?? '-'} ${insecureSkipVerify} ${alpn ?? '-'} ${ca ?? '-'}`;
}

/** The name of the transport socket of endpoints without TLS. */
export const CLEAR_SOCKET = 'clear';

/** The name of the transport socket for TLS settings: a hash of their key. */
export function socketName(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 16);
}

/** The certificates of a PEM text in one canonical form, or why it is invalid. */
export type CaBundle =
  | { readonly is: 'valid'; readonly pem: string }
  /** `why` continues a sentence after "cannot be read: ". */
  | { readonly is: 'invalid'; readonly why: string };

/** Reads the CA bundle in a PEM text. */
export type ReadCaBundle = (pem: string) => CaBundle;

const BEGIN = '-----BEGIN ';
const BLOCK = /-----BEGIN ([^\n-]*)-----[^-]*-----END \1-----/g;

/**
 * Reads the CA bundle in a PEM text; text around the certificates is ignored. Envoy refuses a whole cluster for one bundle
 * that it cannot read, and other blocks, such as revocation lists, would change what it trusts: both are invalid here.
 */
export function readCaBundle(pem: string): CaBundle {
  const blocks = [...pem.matchAll(BLOCK)];
  if (blocks.length === 0 || pem.split(BEGIN).length - 1 !== blocks.length) {
    return { is: 'invalid', why: 'a BEGIN line has no matching END line' };
  }
  const certificates: string[] = [];
  for (const [index, [block, label]] of blocks.entries()) {
    if (label !== 'CERTIFICATE') return { is: 'invalid', why: `block ${index + 1} is not a CERTIFICATE` };
    const certificate = canonicalCertificate(block);
    if (certificate === undefined) return { is: 'invalid', why: `certificate ${index + 1} is malformed` };
    certificates.push(certificate);
  }
  return { is: 'valid', pem: certificates.join('') };
}

function canonicalCertificate(block: string): string | undefined {
  try {
    return new X509Certificate(block).toString();
  } catch {
    return undefined;
  }
}

const MAX_CACHED = 256;

/** A `readCaBundle` with a least recently used cache, because parsing certificates is slow. */
export function cachedCaBundles(): ReadCaBundle {
  const cache = new Map<string, CaBundle>();
  return pem => {
    const bundle = cache.get(pem) ?? readCaBundle(pem);
    cache.delete(pem);
    cache.set(pem, bundle);
    const [oldest] = cache.keys();
    if (cache.size > MAX_CACHED && oldest !== undefined) cache.delete(oldest);
    return bundle;
  };
}
