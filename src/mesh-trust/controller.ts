import type { Access } from '../api/access.ts';
import type { Clock } from '../api/clock.ts';
import { GROUP } from '../api/generated/kinds.ts';
import type { Kinds } from '../api/generated/types.ts';
import { isRecord } from '../api/json.ts';
import type { Ref } from '../api/key.ts';
import { MANAGED_BY, TRUST } from '../api/names.ts';
import { caRefsOf, caRefText, formatTrust, parseTrust } from '../api/trust.ts';
import type { CaRef, Trust, TrustedCa } from '../api/trust.ts';
import { findWithCaRef } from '../resources/indexes.ts';
import type { OwnNamespace } from '../resources/own-namespace.ts';
import type { ReadReferenced } from '../resources/referenced.ts';
import type { ReadResources } from '../resources/resources.ts';
import type { Controller } from '../runtime/controller.ts';
import { whenGenerationChanges } from '../runtime/trigger.ts';
import type { Log } from '../telemetry/log.ts';
import { trustAccess } from '../traffic/access.ts';
import { caInConfigMap } from '../traffic/trusted-ca.ts';
import type { TrafficResources } from '../traffic/traffic-resources.ts';
import { isAsPlanned, planTrust } from './plan.ts';

/** What the controller works with. */
export type TrustDeps = {
  /** Of a store with the `sharedIndexes`. */
  readonly read: ReadResources;
  readonly referenced: ReadReferenced;
  /** Undefined where there is no cluster, and ConfigMaps are read themselves. */
  readonly workloads: OwnNamespace | undefined;
  readonly traffic: Pick<TrafficResources, 'caBundle'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Pick<Log, 'warn'>;
};

/** A reference stays published for this time after the last MeshEndpoints with it. */
const KEPT_MS = 60_000;

/** One ConfigMap that cannot be read delays no other, as a backoff of all of them would. */
const RETRY_MS = 10_000;

const MAX_CONCURRENT = 16;

/**
 * What the controller may do in a cluster: read the ConfigMaps that tls.caRef names, in any namespace, and write the ConfigMap
 * `mesh-trust` of its own. RBAC cannot limit `create` to a name.
 */
export const access: Access = {
  cluster: [
    { apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['list', 'watch'] },
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] },
  ],
  own: [trustAccess, { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'patch'] }],
};

/** Publishes the certificates of all ConfigMaps that tls.caRef names in one ConfigMap, from which extension servers read them. */
export function trustController(deps: TrustDeps): Controller<'ConfigMap'> {
  const { read, workloads, clock, log } = deps;
  const unreferencedSince = new Map<string, number>();
  const trust: Ref<'ConfigMap'> = {
    kind: 'ConfigMap',
    namespace: workloads?.namespace ?? '',
    name: TRUST.configMap,
  };
  return {
    name: 'mesh-trust',
    kind: 'ConfigMap',
    triggers: [
      whenGenerationChanges(
        'MeshEndpoints',
        (object: Kinds['MeshEndpoints']) => caRefsOf(object).map(caRefText),
        () => [trust],
      ),
    ],
    reconcile: async ref => {
      if (!workloads || ref.name !== trust.name) return { requeue: 'on-change' };
      const refs = distinct(findWithCaRef(read).flatMap(caRefsOf));
      const stored = await workloads.get('ConfigMap', TRUST.configMap);
      if (!stored && refs.length === 0) return { requeue: 'on-change' };
      const data = isRecord(stored?.['data']) ? stored['data'] : {};
      const published = parseTrust(data as Readonly<Record<string, string>>);
      const { found, failures } = await readAll(refs, deps);
      noteUnreferenced(unreferencedSince, { published, refs, now: clock.now() });
      const unreferenced = new Set(unreferencedSince.keys());
      const planned = planTrust({ refs, found, published, unreferenced });
      if (!stored || !isAsPlanned(data, planned)) await publish(planned, workloads);
      if (failures.length > 0) {
        log.warn('ConfigMaps of tls.caRef cannot be read', { count: failures.length, error: failures[0] });
        return { requeue: 'after', ms: RETRY_MS };
      }
      return unreferenced.size > 0 ? { requeue: 'after', ms: KEPT_MS } : { requeue: 'on-change' };
    },
  };
}

function distinct(refs: readonly CaRef[]): readonly CaRef[] {
  return [...new Map(refs.map(ref => [caRefText(ref), ref])).values()];
}

async function publish(trust: Trust, workloads: OwnNamespace): Promise<void> {
  const metadata = { name: TRUST.configMap, labels: MANAGED_BY };
  await workloads.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: formatTrust(trust) });
}

type Now = { readonly published: Trust; readonly refs: readonly CaRef[]; readonly now: number };

/** Keeps since when published references have been unreferenced, for those that may still be used. */
function noteUnreferenced(since: Map<string, number>, { published, refs, now }: Now): void {
  const referenced = new Set(refs.map(caRefText));
  for (const text of published.keys()) if (!since.has(text)) since.set(text, now);
  for (const [text, at] of since) {
    if (referenced.has(text) || !published.has(text) || now - at >= KEPT_MS) since.delete(text);
  }
}

type Read = { readonly found: Trust; readonly failures: readonly unknown[] };

/** Reads each ConfigMap once. */
async function readAll(refs: readonly CaRef[], deps: TrustDeps): Promise<Read> {
  const byConfigMap = new Map<string, CaRef[]>();
  for (const ref of refs) {
    const key = `${ref.namespace}/${ref.name}`;
    byConfigMap.set(key, [...(byConfigMap.get(key) ?? []), ref]);
  }
  const found = new Map<string, TrustedCa>();
  const failures: unknown[] = [];
  const waiting = [...byConfigMap.values()];
  const work = async () => {
    for (let group = waiting.pop(); group; group = waiting.pop()) {
      await readConfigMap(group, found, deps).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, work));
  return { found, failures };
}

/** Reads the keys of one ConfigMap. */
async function readConfigMap(
  refs: readonly CaRef[],
  found: Map<string, TrustedCa>,
  { referenced, traffic }: TrustDeps,
): Promise<void> {
  const [{ namespace, name } = { namespace: '', name: '' }] = refs;
  const configMap = await referenced.configMap(namespace, name);
  for (const ref of refs) {
    found.set(
      caRefText(ref),
      caInConfigMap(configMap, ref, pem => traffic.caBundle(pem)),
    );
  }
}
