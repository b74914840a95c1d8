import type { ServiceMode, ServiceState } from '../../../../../lab/tailnet/backends.ts';
import type { Client, Exchange } from '../clients/client.ts';
import type { Carried } from './witness.ts';

/** What a row of the matrix is proved with. */
export type Subject = {
  readonly client: Client;
  /** The service behind it. */
  readonly service: {
    readonly state: () => Promise<ServiceState>;
    readonly set: (mode: ServiceMode) => Promise<void>;
  };
  /** What the tailnet has carried to the service so far. */
  readonly carried: () => Promise<Carried>;
  /** Where Envoy sends what is for the service. */
  readonly addresses: () => Promise<readonly string[]>;
  /** Where the service is on the mesh. */
  readonly meshAddress: string;
  /** Whether a connection alone is a request to the service. */
  readonly countsConnections: boolean;
  /** Whether what gets lost is sent again. */
  readonly repeats: boolean;
  /** The same service, whose certificate is not trusted there. */
  readonly distrusted?: {
    readonly client: Client;
    /** How often Envoy has refused the certificate. */
    readonly refusals: () => Promise<number>;
  };
  /** Opened before all else. */
  readonly held: Exchange;
};
