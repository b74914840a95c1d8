import { inSeconds } from '../../api/clock.ts';
import type { Clock } from '../../api/clock.ts';
import { durationMs } from '../../api/duration.ts';
import type { Kinds, ServiceCleanup } from '../../api/generated/types.ts';
import { keyOf } from '../../api/key.ts';
import type { Key, Ref } from '../../api/key.ts';
import { FORCE_CLEANUP } from '../../api/names.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
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
type Cleanup = {
  /** What it has removed so far, also before this process started. */
  readonly result: ServiceCleanup;
  readonly isComplete: boolean;
  /** When its next part begins, by the clock. */
  readonly nextAt: number;
};

export interface Cleanups {
  /** Sweeps the tailnets that the namespace of a MeshGateway may use, if it is time; once that is complete, never again. */
  advance(object: MeshGateway, read: TrackedRead, signal: AbortSignal): Promise<Cleanup>;
  /** The next call for the MeshGateway begins another cleanup. */
  forget(ref: Ref): void;
}

export type CleanupDeps = {
  readonly clock: Pick<Clock, 'now'>;
  /** The time of day. */
  readonly now: () => Date;
};

/** Between two parts of a cleanup, so that it takes no more than a part of the rate limit of the control API. */
const PART_MS = 30_000;

type Progress = Cleanup & {
  readonly uid: string;
  /** What a process that has ended has removed. */
  readonly before: ServiceCleanup | undefined;
  readonly swept: readonly Swept[];
};

export function cleanupsBy(sweep: Sweep, { clock, now }: CleanupDeps): Cleanups {
  const all = new Map<Key, Progress>();
  return {
    advance: async (object, read, signal) => {
      const { uid = '', namespace = '', name } = object.metadata;
      const key = keyOf(refTo(object));
      const known = all.get(key)?.uid === uid ? all.get(key) : undefined;
      if (known && (known.isComplete || known.nextAt > clock.now())) return known;
      const last = object.status?.lastCleanup;
      const before = known ? known.before : last?.inProgress ? last : undefined;
      const threshold = object.spec.serviceCoordination?.staleThreshold;
      const staleMs = threshold === undefined ? undefined : durationMs(threshold);
      const part: Swept[] = [];
      for (const tailnet of tailnetsFor(namespace, read))
        part.push(await sweep(tailnet, { object: `${namespace}/${name}`, staleMs, signal }));
      const swept = [...(known?.swept ?? []), ...part];
      const progress = {
        ...{ uid, before, swept, result: resultOf(before, swept, now()) },
        isComplete: part.every(({ isComplete }) => isComplete),
        nextAt: clock.now() + PART_MS,
      };
      all.set(key, progress);
      return progress;
    },
    forget: ref => void all.delete(keyOf(ref)),
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

/** Of this process and of those before it, which may have ended after they had written their result. */
function resultOf(before: ServiceCleanup | undefined, swept: readonly Swept[], now: Date): ServiceCleanup {
  const problems = new Set(swept.flatMap(({ problem }) => problem ?? []));
  const removed = swept.reduce((sum, each) => sum + each.registrations, 0);
  const names = swept.flatMap(({ services }) => services);
  if (before && removed === 0 && names.length === 0 && problems.size === 0) return before;
  const registrations = (before?.registrations ?? 0) + removed;
  const services = (before?.services ?? 0) + names.length;
  const message = [
    registrations === 0 ? 'no stale registration found' : `${registrations} stale registrations removed`,
    ...(services === 0 ? [] : [deletedText(names, services)]),
    ...problems,
  ].join('; ');
  return {
    time: inSeconds(now),
    ...{ registrations, services, inProgress: true },
    message: message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH - 3)}...` : message,
  };
}

function deletedText(names: readonly string[], total: number): string {
  const others = total - names.length;
  const listed = others > 0 ? [...names, names.length > 0 ? `${others} more` : `${others} services`] : names;
  return `deleted in about a minute, unless a device serves them: ${listed.join(', ')}`;
}
