import { StateFolder } from './process/state-folder.ts';
import type { TailnetAddresses } from './tailnet/tailnet.ts';

/** A device behind which there are services. */
export type RemoteNode = {
  readonly hostname: string;
  readonly fqdn: string;
  readonly address: string;
  /** Where its services are broken and mended. */
  readonly control: string;
  /** The port of each service, on the device's mesh address. */
  readonly ports: Readonly<Record<string, number>>;
  /** The certificates that its HTTPS and TLS services are signed with. */
  readonly caFile: string;
};

/** The listeners of the gateway, one of each kind that routes attach to. */
export type ListenerName = 'http' | 'tls' | 'tcp' | 'udp';

/** A real Envoy, configured by a real Envoy Gateway from the files of a folder. */
export type Gateway = {
  /** What routes name as their parent. */
  readonly name: string;
  readonly namespace: string;
  /** Where each listener is reached, as host:port. */
  readonly listeners: Readonly<Record<ListenerName, string>>;
  /** Where Envoy tells about itself. */
  readonly admin: string;
  /** The folder of the objects. */
  readonly resources: string;
  /** What Envoy Gateway says. */
  readonly log: string;
  /** The extension server that it asks, as host:port. */
  readonly extension?: string;
};

/** What a running lab is. */
export type Lab = {
  readonly tailnet: TailnetAddresses;
  /** The HTTP CONNECT and SOCKS5 proxy of the mesh node, as host:port. */
  readonly proxy: string;
  readonly remotes: readonly RemoteNode[];
  readonly gateway?: Gateway;
};

/** The folder of a lab. */
export class LabFolder extends StateFolder<Lab> {}
