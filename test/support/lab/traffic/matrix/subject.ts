import type { ServiceMode, ServiceState } from '../../../../../lab/tailnet/backends.ts';
import type { Client, Exchange } from '../clients/client.ts';
import type { Carried } from './witness.ts';

/** The client and the service of a row. */
export type Subject = {
  readonly client: Client;
  /** The service behind it. */
  readonly service: {
    readonly state: () => Promise<ServiceState>;
    readonly set: (mode: ServiceMode) => Promise<void>;
  };
  /** The bytes that the tailnet has carried to the service so far. */
  readonly carried: () => Promise<Carried>;
  /** The address to which Envoy sends requests for the service. */
  readonly addresses: () => Promise<readonly string[]>;
  /** The address of the service on the mesh. */
  readonly meshAddress: string;
  /** Whether the service counts a connection as a request. */
  readonly countsConnections: boolean;
  /** Whether lost messages are sent again. */
  readonly repeats: boolean;
  /** The same service, where its certificate is not trusted. */
  readonly distrusted?: {
    readonly client: Client;
    /** How often Envoy has refused the certificate. */
    readonly refusals: () => Promise<number>;
  };
  /** Opened first. */
  readonly held: Exchange;
};
