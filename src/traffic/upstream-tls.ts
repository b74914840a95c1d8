import { createHash } from 'node:crypto';
import type { EndpointTls, MeshEndpoint } from '../api/generated/types.ts';
import type { TlsNeeds } from './envoy-cluster-settings.ts';
import type { Speech } from './rule.ts';

/** The most different settings that one cluster can have. */
export const MOST_TLS_SETTINGS = 64;

/** The most bytes of settings that one cluster can have: each set of them has its certificates for itself. */
export const MOST_TLS_BYTES = 256 * 1024;

/**
 * How TLS is spoken with an endpoint. Only where nothing is asked for but the name that the endpoint has in the tailnet
 * anyway, that name is taken from each endpoint: Envoy then names it to the proxy in place of the address, and the mesh
 * daemon would dial any other name.
 */
export function tlsOf({ meshFQDN, tls }: MeshEndpoint, domain: string, speech: Speech): TlsNeeds {
  const name = tls?.serverName ?? meshFQDN;
  const isItself = name === meshFQDN && name.endsWith(`.${domain}`);
  const alpn = alpnOf(speech);
  return {
    serverName: isItself && isPlain(tls) ? { is: 'per-endpoint' } : { is: 'fixed', name },
    ...(tls?.ca !== undefined && !tls.insecureSkipVerify && { ca: tls.ca }),
    ...(tls?.minVersion !== undefined && { minVersion: tls.minVersion }),
    insecureSkipVerify: tls?.insecureSkipVerify ?? false,
    ...(alpn !== undefined && { alpn }),
  };
}

function isPlain(tls: EndpointTls | undefined): boolean {
  return tls?.ca === undefined && tls?.minVersion === undefined && tls?.insecureSkipVerify !== true;
}

function alpnOf(speech: Speech): TlsNeeds['alpn'] {
  switch (speech) {
    case 'HTTP/1.1':
      return 'http/1.1';
    case 'HTTP/2':
      return 'h2';
    case 'bytes':
    case 'datagrams':
      return undefined;
  }
}

/** Settings as a text: equal texts mean equal settings. */
export function tlsText({ serverName, ca, minVersion, insecureSkipVerify, alpn }: TlsNeeds): string {
  const name = serverName.is === 'fixed' ? serverName.name : '*';
  return `${name} ${minVersion ?? '-'} ${insecureSkipVerify} ${alpn ?? '-'} ${ca ?? '-'}`;
}

/** The name of the socket of endpoints that take no TLS, where others of the cluster do. */
export const CLEAR_SOCKET = 'clear';

/** The name of the socket for settings, which depends on nothing else. */
export function socketName(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
