import type { Clock } from '../../../api/clock.ts';
import type { Tailnets } from '../../../control/control.ts';
import type { ConfirmMembers } from '../../../health/check.ts';
import type { Published } from '../../../runtime/published.ts';
import type { ReadResources } from '../../../store/resources.ts';

export type LostDevicesDeps = {
  readonly read: Pick<ReadResources, 'get'>;
  readonly tailnets: Pick<Tailnets, 'lastView' | 'confirm'>;
  /** The names of mesh pods whose device may no longer exist, by MeshTailnet. */
  readonly withoutDevice: Pick<Published<readonly string[]>, 'of' | 'publish'>;
  readonly clock: Pick<Clock, 'now'>;
};

/** Endpoints of a tailnet that all fail for long are no reason to request devices more often than lists do. */
const INTERVAL_MS = 30_000;

/** Requests the devices of the mesh pods of a tailnet, and publishes the pods that have none any more. */
export function lostDevices(deps: LostDevicesDeps): ConfirmMembers {
  const last = new Map<string, { readonly at: number; readonly ended: Promise<void> }>();
  return tailnet => {
    const now = deps.clock.now();
    const before = last.get(tailnet);
    if (before && now - before.at < INTERVAL_MS) return before.ended;
    const ended = publishLost(tailnet, deps);
    last.set(tailnet, { at: now, ended });
    return ended;
  };
}

async function publishLost(
  tailnet: string,
  { read, tailnets, withoutDevice }: LostDevicesDeps,
): Promise<void> {
  const { members = [] } =
    read.get({ kind: 'MeshTailnet', namespace: '', name: tailnet })?.status?.pool ?? {};
  const devicesOf = ({ hostname }: (typeof members)[number]) => {
    const { devices = [] } = tailnets.lastView(tailnet) ?? {};
    return devices.filter(device => device.hostname === hostname && !device.isExternal);
  };
  const listed = members.filter(member => devicesOf(member).length > 0);
  await tailnets.confirm(
    tailnet,
    listed.flatMap(member => devicesOf(member).map(({ id }) => id)),
  );
  const lost = listed.flatMap(member => (devicesOf(member).length === 0 ? [member.pod] : []));
  if (lost.length > 0) withoutDevice.publish(tailnet, [...(withoutDevice.of(tailnet) ?? []), ...lost]);
}
