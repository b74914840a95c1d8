import type { Access } from '../../api/access.ts';
import { isRecord } from '../../api/json.ts';
import type { Ref, ResourceKind } from '../../api/key.ts';
import { MANAGED_BY, TRUST } from '../../api/names.ts';
import { caRefIn, caRefsOf, caRefText, formatTrust, parseTrust } from '../../api/trust.ts';
import type { CaRef, Trust } from '../../api/trust.ts';
import { findWithCaRef } from '../../store/indexes.ts';
import type { OwnNamespace, Workload } from '../../store/own-namespace.ts';
import type { ApplyObjects } from '../../store/resources.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { Outcome } from '../../runtime/queue/queue.ts';
import type { Log } from '../../telemetry/log.ts';
import { readAll } from './gather.ts';
import type { GatherDeps } from './gather.ts';
import { isAsPlanned, planTrust } from './plan.ts';
import type { Input } from './plan.ts';
import { ReadBudget, ReadSchedule, RETRY_MS } from './read-schedule.ts';

/** What the controller works with. */
export type TrustDeps = GatherDeps & {
  readonly ownNamespace: OwnNamespace;
  /** How often a ConfigMap is read. */
  readonly syncPeriodMs: number;
  readonly log: Pick<Log, 'warn'>;
};

/** A reference stays published for this time after the last MeshEndpoints with it. */
const KEPT_MS = 60_000;

/** Between two runs: so reads are limited, and extension servers get at most one change a second. */
const PAUSE_MS = 1000;

/**
 * What the controller may do in a cluster, beside watching what it reads: get the ConfigMaps that tls.caRef names, in any
 * namespace, and write the ConfigMap `mesh-trust` of its own. RBAC cannot limit `create` to a name.
 */
export const access: Access = {
  cluster: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }],
  own: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'patch'] }],
};

/** The kinds that the controller reads. */
export const reads: readonly ResourceKind[] = ['ConfigMap', 'MeshEndpoints'];

/** Publishes the certificates of all ConfigMaps that tls.caRef names in one ConfigMap, from which extension servers read them. */
export function trustController(deps: TrustDeps): Controller<'ConfigMap'> {
  const { ownNamespace, clock, log } = deps;
  const unreferencedSince = new Map<string, number>();
  const schedule = new ReadSchedule(deps.syncPeriodMs / 2);
  let lastPlanned: Trust | undefined;
  const trust: Ref<'ConfigMap'> = {
    kind: 'ConfigMap',
    namespace: ownNamespace.namespace,
    name: TRUST.configMap,
  };
  /** From what this process has planned last, whatever others make of the ConfigMap, and even if it could not be written. */
  const publishedIn = (data: Readonly<Record<string, unknown>>): Trust =>
    lastPlanned ?? parseTrust(data as Readonly<Record<string, string>>);
  const plan = (gathered: Omit<Input, 'unreferenced'>): Trust => {
    noteUnreferenced(unreferencedSince, { ...gathered, now: clock.now() });
    lastPlanned = planTrust({ ...gathered, unreferenced: new Set(unreferencedSince.keys()) });
    return lastPlanned;
  };
  /** Reads what is due, and publishes what has changed. */
  const run = async (read: TrackedRead, signal: AbortSignal): Promise<Outcome> => {
    const refs = distinct(findWithCaRef(read.exceptStatus).flatMap(caRefsOf));
    const stored = await ownNamespace.get('ConfigMap', TRUST.configMap);
    if (!stored && refs.length === 0) return { requeue: 'on-change' };
    const data = isRecord(stored?.['data']) ? stored['data'] : {};
    const published = publishedIn(data);
    const due = schedule.due(refs, clock.now());
    const budget = new ReadBudget(published);
    const { found, failures } = await readAll(due, { ...deps, schedule, budget, signal });
    const planned = plan({ refs, found, published });
    const isPublished = stored !== undefined && isAsPlanned(data, planned);
    if (!isPublished) await publish(planned, ownNamespace);
    if (failures.length > 0) {
      log.warn('ConfigMaps of tls.caRef cannot be read', { count: failures.length, error: failures[0] });
    }
    if (schedule.due(refs, clock.now()).length > 0) return { requeue: 'after', ms: PAUSE_MS };
    if (failures.length > 0) return { requeue: 'after', ms: RETRY_MS };
    return unreferencedSince.size > 0 ? { requeue: 'after', ms: KEPT_MS } : { requeue: 'on-change' };
  };
  return {
    name: 'mesh-trust',
    kind: 'ConfigMap',
    reads,
    keys: () => [trust],
    minIntervalMs: PAUSE_MS,
    reconcile: async (ref, read, { signal }) =>
      ref.name === trust.name ? await run(read, signal) : { requeue: 'on-change' },
  };
}

function distinct(refs: readonly CaRef[]): readonly CaRef[] {
  return [...new Map(refs.map(ref => [caRefText(ref), ref])).values()];
}

async function publish(trust: Trust, ownNamespace: ApplyObjects<Workload>): Promise<void> {
  const metadata = { name: TRUST.configMap, labels: MANAGED_BY };
  await ownNamespace.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: formatTrust(trust) });
}

type Now = { readonly published: Trust; readonly refs: readonly CaRef[]; readonly now: number };

/** Keeps since when published references have been unreferenced, for those that may still be used. */
function noteUnreferenced(since: Map<string, number>, { published, refs, now }: Now): void {
  const referenced = new Set(refs.map(caRefText));
  for (const text of published.keys()) {
    if (!since.has(text) && caRefIn(text).name !== '') since.set(text, now);
  }
  for (const [text, at] of since) {
    if (referenced.has(text) || !published.has(text) || now - at >= KEPT_MS) since.delete(text);
  }
}
