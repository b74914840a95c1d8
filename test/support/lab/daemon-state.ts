import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Daemon } from '../../../lab/tailnet/mesh-node.ts';
import type { Starter } from '../../../lab/process/starter.ts';

const run = promisify(execFile);

/** The state of a daemon: Running where it works as a device, and its addresses. */
export type DaemonState = { readonly state: string; readonly addresses: readonly string[] };

/** Reads the state of a daemon. */
export async function daemonState(
  { pathOf }: Pick<Starter, 'pathOf'>,
  { socket }: Daemon,
): Promise<DaemonState> {
  const { stdout } = await run(pathOf('tailscale'), [`--socket=${socket}`, 'status', '--json']);
  const { BackendState, TailscaleIPs } = JSON.parse(stdout) as {
    readonly BackendState: string;
    readonly TailscaleIPs: readonly string[] | null;
  };
  return { state: BackendState, addresses: TailscaleIPs ?? [] };
}
