import { callJson } from '../process/json-call.ts';

/** The services behind a remote node. */
export type ServiceName = 'http' | 'grpc' | 'grpcs' | 'https' | 'tls' | 'tcp' | 'udp';

/** How a service is: well, answering late, refusing, or gone. */
export type ServiceMode =
  { readonly mode: 'healthy' | 'failing' | 'dead' } | { readonly mode: 'slow'; readonly delayMs: number };

/** A service as its control endpoint tells it. */
export type ServiceState = ServiceMode & {
  readonly address: string;
  readonly requests: number;
  /** Requests, calls and connections that are under way. */
  readonly openRequests: number;
  readonly openConnections: number;
};

/** The state of all services of one process. */
export async function readServices(control: string): Promise<Readonly<Record<ServiceName, ServiceState>>> {
  const { services } = (await callJson('GET', `${control}/services`)) as {
    services: Readonly<Record<ServiceName, ServiceState>>;
  };
  return services;
}

/** Breaks or mends one service, at once. */
export async function setService(control: string, name: ServiceName, mode: ServiceMode): Promise<void> {
  await callJson('PUT', `${control}/services/${name}`, mode);
}
