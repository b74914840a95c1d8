import { inSeconds } from '../../api/clock.ts';
import type { Clock } from '../../api/clock.ts';
import { durationMs } from '../../api/duration.ts';
import type { Kinds, ServiceCleanup } from '../../api/generated/types.ts';
import { FORCE_CLEANUP } from '../../api/names.ts';
import { oldestOf, placeOf } from '../../api/objects/oldest.ts';
import { cutText } from '../../api/text.ts';
import { isAllowed } from '../../traffic/permissions.ts';
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
  /** The services that earlier parts have tried: each is tried once. */
  readonly tried: ReadonlySet<string>;
  readonly signal: AbortSignal;
};

/** What was removed from the services of a tailnet. */
type Swept = {
  /** How many registrations. */
  readonly registrations: number;
  /** The services that have no other. */
  readonly services: readonly string[];
  /** The services that were tried, whatever came of it. */
  readonly tried: readonly string[];
  /** Those of them that could not be written. */
  readonly failed: readonly Failed[];
  /** Whether no service is left to try. */
  readonly isComplete: boolean;
  /** Why no more services could be tried for now. */
  readonly problem?: string;
};

type Failed = { readonly service: string; readonly error: Error & { readonly reason: string } };

/** Whether a user has asked for a cleanup. */
export function asksForCleanup({ metadata }: MeshGateway): boolean {
  return metadata.annotations?.[FORCE_CLEANUP] === 'true';
}

export type CleanupDeps = {
  readonly clock: Pick<Clock, 'now'>;
  /** The time of day. */
  readonly now: () => Date;
};

/** Between two parts of a cleanup, so that it takes no more than a part of the rate limit of the control API. */
const PART_MS = 30_000;

/**
 * Between two parts in one tailnet, for whichever MeshGateway, at least, and as long as the first of them took where that is longer:
 * so cleanups leave about half of its rate limit to others.
 */
const TAILNET_MS = 15_000;

/** A cleanup ends after this many parts in a row in which it could try nothing. */
const MAX_IDLE_PARTS = 3;

/** What was done in a tailnet, by its name. */
type SweptByTailnet = ReadonlyMap<string, Swept>;

/** A cleanup, which may take several parts. */
export type Cleanup = {
  /** Of the MeshGateway. */
  readonly uid: string;
  /** What it has removed so far, also before this process started. */
  readonly result: ServiceCleanup;
  readonly isComplete: boolean;
  /** When its next part begins, by the clock. */
  readonly nextAt: number;
  /** What a process that has ended has removed. */
  readonly before: ServiceCleanup | undefined;
  readonly swept: SweptByTailnet;
  readonly idleParts: number;
};

/** What a part of a cleanup goes on from. */
type PartOptions = {
  /** What was done of it before. */
  readonly known: Cleanup | undefined;
  /** Those that the namespace of the MeshGateway may use. */
  readonly tailnets: readonly MeshTailnet[];
  readonly signal: AbortSignal;
};

/** Returns the function that sweeps the tailnets of a MeshGateway, if it is time; once that is complete, never again. */
export function cleanupsBy(sweep: Sweep, { clock, now }: CleanupDeps) {
  /** By the name of the tailnet. */
  const pausedUntil = new Map<string, number>();
  const sweepInTurn: Sweep = async (tailnet, options) => {
    const { name } = tailnet.metadata;
    if ((pausedUntil.get(name) ?? 0) > clock.now()) return WAITING;
    const startedAt = clock.now();
    pausedUntil.set(name, Infinity);
    try {
      return await sweep(tailnet, options);
    } finally {
      const tookMs = clock.now() - startedAt;
      pausedUntil.set(name, clock.now() + Math.max(TAILNET_MS, tookMs));
    }
  };
  return async (object: MeshGateway, { tailnets, signal, ...last }: PartOptions): Promise<Cleanup> => {
    const { uid = '' } = object.metadata;
    const known = last.known?.uid === uid ? last.known : undefined;
    if (known && (known.isComplete || known.nextAt > clock.now())) return known;
    const { lastCleanup } = object.status ?? {};
    const before = known ? known.before : lastCleanup?.inProgress ? lastCleanup : undefined;
    const threshold = object.spec.serviceCoordination?.staleThreshold;
    const staleMs = threshold === undefined ? undefined : durationMs(threshold);
    const swept = new Map<string, Swept>();
    const waiting: string[] = [];
    let isIdle = true;
    for (const tailnet of tailnets) {
      const earlier = known?.swept.get(tailnet.metadata.name);
      const options = { object: placeOf(object), staleMs, tried: new Set(earlier?.tried), signal };
      const part = earlier?.isComplete ? DONE : await sweepInTurn(tailnet, options);
      if (part === WAITING) waiting.push(tailnet.metadata.name);
      isIdle &&= part.tried.length === 0;
      swept.set(tailnet.metadata.name, earlier ? sumOf(earlier, part) : part);
    }
    const idleParts = isIdle ? (known?.idleParts ?? 0) + (waiting.length > 0 ? 0 : 1) : 0;
    const isDone = [...swept.values()].every(({ isComplete }) => isComplete);
    return {
      uid,
      before,
      swept,
      idleParts,
      result: resultOf(before, swept, now()),
      isComplete: isDone || idleParts === MAX_IDLE_PARTS,
      nextAt: Math.min(clock.now() + PART_MS, ...waiting.map(each => pausedUntil.get(each) ?? 0)),
    };
  };
}

const DONE: Swept = { registrations: 0, services: [], tried: [], failed: [], isComplete: true };

/** A tailnet in which another part has just ended, or has not ended yet. */
const WAITING: Swept = { ...DONE, isComplete: false, problem: 'another cleanup comes first' };

/** The MeshTailnets that a namespace may use. */
export function tailnetsFor(namespace: string, read: TrackedRead): readonly MeshTailnet[] {
  const resources = {
    namespace: (name: string) => read.exceptStatus.get({ kind: 'Namespace', namespace: '', name }),
  };
  return read
    .list('MeshTailnet')
    .filter(({ spec }) => isAllowed(resources, spec.allowedNamespaces, namespace))
    .filter(each => oldestOf(read.exceptStatus.find(tailnetsByDomain, each.spec.tailnet)) === each);
}

/** What two parts did in a tailnet; whether anything is left is what the later one found. */
function sumOf(earlier: Swept, later: Swept): Swept {
  return {
    ...later,
    registrations: earlier.registrations + later.registrations,
    services: [...earlier.services, ...later.services],
    tried: [...earlier.tried, ...later.tried],
    failed: [...earlier.failed, ...later.failed],
  };
}

const MAX_MESSAGE_LENGTH = 1024;

/** Of this process and of those before it, which may have ended after they had written their result. */
function resultOf(before: ServiceCleanup | undefined, swept: SweptByTailnet, now: Date): ServiceCleanup {
  const problems = [...swept].flatMap(([tailnet, each]) => problemsOf(tailnet, each));
  const removed = [...swept.values()].reduce((sum, each) => sum + each.registrations, 0);
  const names = [...swept.values()].flatMap(({ services }) => services);
  if (before && removed === 0 && names.length === 0 && problems.length === 0) return before;
  const registrations = (before?.registrations ?? 0) + removed;
  const services = (before?.services ?? 0) + names.length;
  // What has a limit is before what has none.
  const message = [
    registrations > 0
      ? `${registrations} stale registrations removed`
      : `no stale registration ${problems.length > 0 ? 'removed' : 'found'}`,
    ...problems,
    ...(services === 0 ? [] : [deletedText(names, services)]),
  ].join('; ');
  return {
    time: inSeconds(now),
    registrations,
    services,
    inProgress: true,
    message: cutText(message, MAX_MESSAGE_LENGTH, '...'),
  };
}

/** Why services of a tailnet are left, with one error of each reason. */
function problemsOf(tailnet: string, { failed, problem }: Swept): readonly string[] {
  const errors = new Map(failed.map(({ error }) => [error.reason, error.message]));
  const byReason = [...errors].map(([reason, message]) => {
    const names = failed.filter(({ error }) => error.reason === reason).map(({ service }) => service);
    const text = `${listed(names.slice(0, MAX_NAMED), names.length)} cannot be written: ${message}`;
    return cutText(text, MAX_PROBLEM_LENGTH, '...');
  });
  return problem === undefined
    ? byReason
    : [
        ...byReason,
        cutText(`MeshTailnet ${tailnet}: not all services were tried: ${problem}`, MAX_PROBLEM_LENGTH, '...'),
      ];
}

/** So that a few of them leave space for the others. */
const [MAX_NAMED, MAX_PROBLEM_LENGTH] = [3, 300];

function deletedText(names: readonly string[], total: number): string {
  return `deleted in about a minute, unless a device serves them: ${listed(names, total)}`;
}

function listed(names: readonly string[], total: number): string {
  const others = total - names.length;
  if (others === 0) return names.join(', ');
  return names.length === 0 ? `${others} services` : `${names.join(', ')} and ${others} more`;
}
