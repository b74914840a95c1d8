import type { Speech } from './rule.ts';

/** How TLS is spoken with some endpoints. */
export type TlsNeeds = {
  /** Fixed: one name for all. PerEndpoint: each endpoint's own hostname is sent and must be in its certificate. */
  readonly serverName: { readonly is: 'fixed'; readonly name: string } | { readonly is: 'per-endpoint' };
  /** PEM text; the system's roots without it. */
  readonly ca?: string;
  readonly minVersion?: '1.2' | '1.3';
  readonly insecureSkipVerify: boolean;
  /** The one protocol offered inside of TLS; none for raw bytes. */
  readonly alpn?: 'h2' | 'http/1.1';
};

/** What a connection is wrapped in, inside of the tunnel. */
export type SocketNeeds =
  | { readonly is: 'clear' }
  /** Nothing is trusted, so nothing passes: the default where each endpoint names the socket that it takes. */
  | { readonly is: 'closed' }
  | { readonly is: 'tls'; readonly tls: TlsNeeds };

/** One of several sockets in a cluster: endpoints are given it by its name. */
export type SocketMatch = {
  readonly name: string;
  readonly socket: Exclude<SocketNeeds, { readonly is: 'closed' }>;
};

/** Envoy's own checks, where all checked endpoints agree in them. HTTP is spoken in the version of the cluster. */
export type CheckNeeds = {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly healthyThreshold: number;
  readonly unhealthyThreshold: number;
} & (
  | {
      readonly is: 'HTTP';
      readonly path: string;
      readonly expectedStatus: number;
      /** Sorted by name. */
      readonly headers: readonly (readonly [name: string, value: string])[];
    }
  | { readonly is: 'TCP' }
  | { readonly is: 'GRPC'; readonly service?: string }
);

/** What a cluster must have so that its endpoints can be reached, whatever endpoints there are at the moment. */
export type ClusterNeeds = {
  readonly cluster: string;
  /** Where Envoy gets the endpoints: from us, or, in a rule that mixes ours with others, from Envoy Gateway. */
  readonly endpointsFrom: 'us' | 'envoy-gateway';
  readonly speech: Speech;
  /** Of all connections that no match is for; datagrams have none. */
  readonly socket?: SocketNeeds;
  /** At most 64 of TLS, and `clear` for endpoints that take no TLS; in the order of their names. */
  readonly matches: readonly SocketMatch[];
  readonly check?: CheckNeeds;
};
