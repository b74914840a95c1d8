import type { Kinds } from '../../api/generated/types.ts';
import { defaultControlURL } from '../../api/names.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { tailnetsByDomain } from '../../store/traffic/resources.ts';
import { intervalMsOf, observeTailnet, unconnected } from './connection.ts';
import type { Connection, ConnectionDeps } from './connection.ts';
import { hasFinalizer } from './pool/mesh-pods.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** Everything that decides what is done about a MeshTailnet and its status, apart from its pool. */
export type Input = Connection & {
  readonly tailnet: MeshTailnet;
  /** The older MeshTailnet that has the same domain. */
  readonly olderName: string | undefined;
  readonly now: Date;
};

export type GatherDeps = ConnectionDeps & {
  readonly read: Pick<TrackedRead, 'exceptStatus'>;
  /** The time of day. */
  readonly now: () => Date;
};

/** Reads the connection of a MeshTailnet and its view of the tailnet, unless another one has its domain. */
export async function gather(
  tailnet: MeshTailnet,
  deps: GatherDeps,
  intervalMs = intervalMsOf(tailnet.spec),
): Promise<Input> {
  const { spec, metadata } = tailnet;
  const olderName = olderOf(tailnet, deps.read);
  const connection = isSuperseded({ tailnet, olderName })
    ? unconnected(spec, deps.ownNamespace)
    : await observeTailnet(
        spec,
        { name: metadata.name, intervalMs },
        { ...deps, controlURL: sharedURLFor(spec, deps) },
      );
  return { ...connection, tailnet, olderName, now: deps.now() };
}

/** The control API of a MeshTailnet that names none. Proxies that others run need none, so none is assumed for them. */
function sharedURLFor(
  { tailnet, pool }: MeshTailnet['spec'],
  { controlURL }: GatherDeps,
): string | undefined {
  return controlURL ?? (pool.mode === 'Managed' ? defaultControlURL(tailnet) : undefined);
}

/** Whether another MeshTailnet has the domain. A pool that is left of an earlier time is removed even then. */
export function isSuperseded({ tailnet, olderName }: Pick<Input, 'tailnet' | 'olderName'>): boolean {
  return olderName !== undefined && !hasFinalizer(tailnet);
}

/** The one that has the domain in its place, if there is one. */
function olderOf({ spec, metadata }: MeshTailnet, read: GatherDeps['read']): string | undefined {
  const oldest = oldestOf(read.exceptStatus.find(tailnetsByDomain, spec.tailnet));
  return oldest?.metadata.name === metadata.name ? undefined : oldest?.metadata.name;
}
