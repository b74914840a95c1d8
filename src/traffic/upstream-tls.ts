import { createHash } from 'node:crypto';
import type { EndpointTls, MeshEndpoint } from '../api/generated/types.ts';
import type { UpstreamTls } from './envoy-cluster-settings.ts';
import type { UpstreamProtocol } from './rule.ts';

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
