import type { Unused } from './rule.ts';

/** What Envoy is told of an endpoint's health. */
export type HealthVerdict = 'UNKNOWN' | 'HEALTHY' | 'UNHEALTHY' | 'DRAINING';

/** An address and port that Envoy can connect to: never a name. */
export type SocketAddress = { readonly address: string; readonly port: number };

/** One endpoint as Envoy is told of it. */
export type AssignedEndpoint = SocketAddress & {
  /** The proxy through which it is reached; none where Envoy is on the mesh itself. */
  readonly proxy?: SocketAddress;
  /** Set only where the certificate must carry it; Envoy then names it to the proxy in place of the address. */
  readonly hostname?: string;
  readonly weight: number;
  readonly health: HealthVerdict;
  /** The Host of Envoy's own checks. */
  readonly checkHost: string;
  /** Left out of Envoy's own checks. */
  readonly isUnchecked: boolean;
  /** The name of the socket that its connections use, where the cluster has several. */
  readonly socketMatch?: string;
};

/** Endpoints of one backend and priority. */
export type AssignedLocality = {
  /** The position of the backend among the references of the rule. */
  readonly backend: number;
  /** The weight of the backend: never 0. */
  readonly weight: number;
  /** 0 is used first; without gaps. */
  readonly priority: number;
  readonly endpoints: readonly AssignedEndpoint[];
};

/** Where the traffic of a cluster goes at this moment, for one Gateway. */
export type Assignment = { readonly cluster: string; readonly localities: readonly AssignedLocality[] };

/** An assignment, and which backends are left out of it for lack of a way to them. */
export type Assigned = { readonly assignment: Assignment; readonly unused: readonly Unused[] };
