import type { ResourceKind } from '../../../src/api/key.ts';
import { createMemory } from '../store/memory.ts';
import type { Memory } from '../store/memory.ts';
import type { AnyIndex } from '../../../src/store/resources.ts';
import type { Controller, ControllerOptions, RunningController } from '../../../src/runtime/controller.ts';
import { startController } from '../../../src/runtime/controller.ts';
import type { Telemetry } from '../../../src/runtime/observer.ts';
import { Tracking } from '../../../src/store/tracking.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { controllerMetrics, queueMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { parseExposition, valueOf } from '../telemetry/exposition.ts';
import { VirtualClock } from '../virtual-clock.ts';

/** A line of the log. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly level: string; readonly msg: string };

/** What controllers run on: resources in memory, and a clock that the test advances. */
export class Runtime {
  readonly clock = new VirtualClock();
  readonly lines: LogLine[] = [];
  readonly memory: Memory;
  readonly tracking: Tracking;
  readonly telemetry: Telemetry;
  readonly #registry = createRegistry({
    metrics: { ...controllerMetrics, ...queueMetrics },
    version: 'test',
    known: { controller: ['test'], name: ['test'] },
  });

  constructor(first: readonly object[] = [], indexes: readonly AnyIndex[] = []) {
    this.memory = createMemory(indexes, first);
    this.tracking = new Tracking(this.memory.read);
    const write = (line: string) => void this.lines.push(JSON.parse(line) as LogLine);
    const log = createLog({ level: 'info', to: { write } });
    this.telemetry = { log, metrics: this.#registry, activities: createActivities() };
  }

  start<K extends ResourceKind, M = undefined>(
    controller: Pick<Controller<K, M>, 'kind' | 'reconcile'> & Partial<Controller<K, M>>,
    settings: Partial<ControllerOptions> = {},
  ): RunningController {
    const { clock, telemetry } = this;
    return startController(
      { name: 'test', reads: [], ...controller },
      { tracking: this.tracking, clock, telemetry },
      { concurrency: 10, syncPeriodMs: 1e12, ...settings },
    );
  }

  /** The current value of a metric of the controller and queue `test`. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
    const families = parseExposition(await this.#registry.text());
    const whose = name.startsWith('workqueue') ? { name: 'test' } : { controller: 'test' };
    return valueOf(families, name, { ...whose, ...labels });
  }

  /** The activities of the controller `test`. */
  activities(): readonly string[] {
    const all = this.telemetry.activities.list().get('controller test') ?? [];
    return all.map(({ what, state, forMs }) =>
      forMs === undefined ? `${what} ${state}` : `${what} ${state} ${forMs}`,
    );
  }
}
