import { StateFolder } from './state-folder.ts';
import type { TailnetAddresses } from './tailnet.ts';

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

/** What a running lab is. */
export type Lab = {
  readonly tailnet: TailnetAddresses;
  /** The HTTP CONNECT and SOCKS5 proxy of the mesh node, as host:port. */
  readonly proxy: string;
  readonly remotes: readonly RemoteNode[];
};

/** The folder of a lab. */
export class LabFolder extends StateFolder<Lab> {}
