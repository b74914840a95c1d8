import { inSeconds } from '../../api/clock.ts';
import type { Clock } from '../../api/clock.ts';
import { durationMs } from '../../api/duration.ts';
import type { Kinds, ServiceCleanup } from '../../api/generated/types.ts';
import { FORCE_CLEANUP } from '../../api/names.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { isAllowed } from '../../traffic/backend-refs.ts';
import { tailnetsByDomain } from '../../store/traffic/resources.ts';
import type { TrackedRead } from '../../store/tracking.ts';

type MeshGateway = Kinds['MeshGateway'];
type MeshTailnet = Kinds['MeshTailnet'];

/** Removes stale registrations from the services of a tailnet, a bounded number at once. */
export type Sweep = (tailnet: MeshTailnet, options: SweepOptions) => Promise<Swept>;

/** For whom stale registrations are removed. */
type SweepOptions = {
  /** The MeshGateway, as in `default/edge`. */
  readonly object: string;
  /** After which time without a renewal an owner counts as stale; undefined for the default. */
  readonly staleMs: number | undefined;
  readonly signal: AbortSignal;
};

/** What was removed from the services of a tailnet. */
type Swept = {
  /** How many registrations. */
  readonly registrations: number;
  /** The services that have no other. */
  readonly services: readonly string[];
  readonly isComplete: boolean;
  /** Why something may be left. */
  readonly problem?: string;
};

/** Whether a user has asked for a cleanup. */
export function asksForCleanup({ metadata }: MeshGateway): boolean {
  return metadata.annotations?.[FORCE_CLEANUP] === 'true';
}

/** A cleanup, which may take several parts. */
export type Cleanup =
  | { readonly is: 'complete'; readonly result: ServiceCleanup }
  | { readonly is: 'incomplete'; readonly nextMs: number };

export type CleanupDeps = {
  readonly clock: Pick<Clock, 'now'>;
  /** The time of day. */
  readonly now: () => Date;
};

/** Between two parts of a cleanup, so that it takes no more than a part of the rate limit of the control API. */
const PART_MS = 30_000;

type Unfinished = { readonly swept: readonly Swept[]; readonly nextAt: number };

/** Sweeps the tailnets that the namespace of a MeshGateway may use, in as many parts as that takes. */
export function cleanupBy(sweep: Sweep, { clock, now }: CleanupDeps) {
  const unfinished = new Map<string, Unfinished>();
  return async (object: MeshGateway, read: TrackedRead, signal: AbortSignal): Promise<Cleanup> => {
    const { uid = '', namespace = '', name } = object.metadata;
    const before = unfinished.get(uid);
    const nextMs = (before?.nextAt ?? 0) - clock.now();
    if (nextMs > 0) return { is: 'incomplete', nextMs };
    const threshold = object.spec.serviceCoordination?.staleThreshold;
    const staleMs = threshold === undefined ? undefined : durationMs(threshold);
    const part: Swept[] = [];
    for (const tailnet of tailnetsFor(namespace, read))
      part.push(await sweep(tailnet, { object: `${namespace}/${name}`, staleMs, signal }));
    const swept = [...(before?.swept ?? []), ...part];
    if (part.every(({ isComplete }) => isComplete)) {
      unfinished.delete(uid);
      return { is: 'complete', result: resultOf(swept, now()) };
    }
    unfinished.set(uid, { swept, nextAt: clock.now() + PART_MS });
    return { is: 'incomplete', nextMs: PART_MS };
  };
}

function tailnetsFor(namespace: string, read: TrackedRead): readonly MeshTailnet[] {
  const resources = {
    namespace: (name: string) => read.exceptStatus.get({ kind: 'Namespace', namespace: '', name }),
  };
  return read
    .list('MeshTailnet')
    .filter(({ spec }) => isAllowed(resources, spec.allowedNamespaces, namespace))
    .filter(each => oldestOf(read.exceptStatus.find(tailnetsByDomain, each.spec.tailnet)) === each);
}

const MAX_MESSAGE_LENGTH = 1024;

function resultOf(all: readonly Swept[], now: Date): ServiceCleanup {
  const registrations = all.reduce((sum, each) => sum + each.registrations, 0);
  const services = all.flatMap(each => each.services);
  const removed =
    registrations === 0 ? 'no stale registration found' : `${registrations} stale registrations removed`;
  const deleted =
    services.length === 0
      ? []
      : [`deleted in about a minute, unless a device serves them: ${services.join(', ')}`];
  const problems = new Set(all.flatMap(({ problem }) => problem ?? []));
  const message = [removed, ...deleted, ...problems].join('; ');
  return {
    time: inSeconds(now),
    ...{ registrations, services: services.length },
    message: message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH - 3)}...` : message,
  };
}
