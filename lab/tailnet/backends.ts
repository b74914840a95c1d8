import { requestJson } from '../process/request-json.ts';

/** The services behind a remote node. */
export type ServiceName = 'http' | 'grpc' | 'grpcs' | 'https' | 'tls' | 'tcp' | 'udp';

/** The mode of a service: healthy, slow, failing, or not listening. */
export type ServiceMode =
  { readonly mode: 'healthy' | 'failing' | 'dead' } | { readonly mode: 'slow'; readonly delayMs: number };

/** A service as its control endpoint reports it. */
export type ServiceState = ServiceMode & {
  readonly address: string;
  readonly requests: number;
  /** Requests, calls and connections in progress. */
  readonly openRequests: number;
  readonly openConnections: number;
};

/** The state of all services of one process. */
export async function readServices(control: string): Promise<Readonly<Record<ServiceName, ServiceState>>> {
  const { services } = (await requestJson('GET', `${control}/services`)) as {
    services: Readonly<Record<ServiceName, ServiceState>>;
  };
  return services;
}

/** Sets the mode of a service. */
export async function setService(control: string, name: ServiceName, mode: ServiceMode): Promise<void> {
  await requestJson('PUT', `${control}/services/${name}`, mode);
}
