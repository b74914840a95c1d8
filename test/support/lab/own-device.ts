import { locateBinaries } from '../../../lab/parts/locate.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { startMeshNode } from '../../../lab/tailnet/mesh-node.ts';
import { removeNode } from '../../../lab/tailnet/tailnet.ts';
import type { TailnetAddresses } from '../../../lab/tailnet/tailnet.ts';
import { ownFolder } from './lab.ts';

/** A device with one service behind it. */
export type OwnDevice = {
  readonly meshIP: string;
  readonly meshFQDN: string;
  readonly end: () => Promise<void>;
};

/**
 * Starts a device for one service of this machine. One that forwards to several services refuses a few of thousands of new
 * connections, which a test would count: see docs/tailnets.md.
 */
export async function startOwnDevice(tailnet: TailnetAddresses, hostname: string): Promise<OwnDevice> {
  const own = ownFolder();
  const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const { id, fqdn, addresses } = await startMeshNode(starter, tailnet, { hostname, tags: ['tag:web'] });
  const end = async () => {
    await own.end();
    await removeNode(tailnet.admin, id);
  };
  return { meshIP: addresses[0] ?? '', meshFQDN: fqdn, end };
}
