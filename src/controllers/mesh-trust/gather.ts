import type { Clock } from '../../api/clock.ts';
import { REFERENCE_READS } from '../../api/shares.ts';
import { caRefText } from '../../api/trust.ts';
import type { Trust, TrustedCa } from '../../api/trust.ts';
import type { ReadReferenced } from '../../store/referenced.ts';
import { caInConfigMap } from '../../traffic/trusted-ca.ts';
import type { ReadCaBundle } from '../../traffic/upstream-tls.ts';
import type { CaRefs, ReadBudget, ReadSchedule } from './read-schedule.ts';

type Read = { readonly found: Trust; readonly failures: readonly unknown[] };

export type GatherDeps = {
  readonly referenced: ReadReferenced;
  readonly caBundle: ReadCaBundle;
  readonly clock: Pick<Clock, 'now'>;
};

type ReadOptions = GatherDeps & {
  readonly schedule: ReadSchedule;
  readonly budget: ReadBudget;
  readonly signal: AbortSignal;
};

/** Reads ConfigMaps, each with the references to its keys; what is beyond the budget stays due. */
export async function readAll(due: readonly CaRefs[], options: ReadOptions): Promise<Read> {
  const { schedule, budget, clock, signal } = options;
  const found = new Map<string, TrustedCa>();
  const failures: unknown[] = [];
  const waiting = [...due];
  const work = async () => {
    for (let refs = waiting.shift(); refs && !signal.aborted; refs = waiting.shift()) {
      if (!budget.hasRoom(refs[0].namespace)) continue;
      try {
        if (await readConfigMap(refs, found, options)) schedule.hasRead(refs, clock.now());
      } catch (error) {
        schedule.hasFailed(refs, clock.now());
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: REFERENCE_READS }, work));
  return { found, failures };
}

/** Reads the keys of one ConfigMap; returns whether there was still room in the budget. */
async function readConfigMap(
  refs: CaRefs,
  found: Map<string, TrustedCa>,
  { referenced, caBundle, budget }: ReadOptions,
): Promise<boolean> {
  const [{ namespace, name }] = refs;
  const configMap = await referenced.configMap(namespace, name);
  if (!budget.hasRoom(namespace)) return false;
  budget.countConfigMap(namespace, configMap?.data ?? {});
  for (const ref of refs) {
    const ca = caInConfigMap(configMap, ref, caBundle);
    budget.countKey(namespace, configMap?.data[ref.key], ca);
    found.set(caRefText(ref), ca);
  }
  return true;
}
