import { createMonitor } from './monitor.ts';
import type { MonitorDeps } from './monitor.ts';
import type { HealthMonitor } from './health.ts';
import { createProbe } from './probe/create-probe.ts';
import type { ProbeDeps } from './probe/create-probe.ts';

/** The health checks of a process. */
export type HealthChecks = { readonly health: HealthMonitor; readonly close: () => void };

/** Starts to check what the monitor is set to, through the members of pools or directly. */
export function startHealthChecks(deps: Omit<MonitorDeps, 'probe'> & ProbeDeps): HealthChecks {
  const { probe, close } = createProbe(deps);
  const health = createMonitor({ ...deps, probe });
  return {
    health,
    close: () => {
      health.close();
      close();
    },
  };
}
