import { StateFolder } from './process/state-folder.ts';
import type { TailnetAddresses } from './tailnet/tailnet.ts';

/** A device behind which there are services. */
export type RemoteNode = {
  readonly hostname: string;
  readonly fqdn: string;
  readonly address: string;
  /** The endpoint that sets the modes of its services. */
  readonly control: string;
  /** The port of each service, on the device's mesh address. */
  readonly ports: Readonly<Record<string, number>>;
  /** The CA certificates of its HTTPS and TLS services. */
  readonly caFile: string;
};

/** The listeners of the gateway, one for each kind of route. */
export type ListenerName = 'http' | 'tls' | 'tcp' | 'udp';

/** A real Envoy, configured by a real Envoy Gateway from the files of a folder. */
export type Gateway = {
  /** The parent of routes. */
  readonly name: string;
  readonly namespace: string;
  /** The address of each listener, as host:port. */
  readonly listeners: Readonly<Record<ListenerName, string>>;
  /** Envoy's admin endpoint. */
  readonly admin: string;
  /** The folder of the objects. */
  readonly resources: string;
  /** The log of Envoy Gateway. */
  readonly log: string;
  /** Its extension server, as host:port. */
  readonly extension?: string;
};

/** A running lab. */
export type Lab = {
  readonly tailnet: TailnetAddresses;
  /** The HTTP CONNECT and SOCKS5 proxy of the mesh node, as host:port. */
  readonly proxy: string;
  readonly remotes: readonly RemoteNode[];
  readonly gateway?: Gateway;
};

/** The folder of a lab. */
export class LabFolder extends StateFolder<Lab> {}
