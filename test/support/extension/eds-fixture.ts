import { createEds } from '../../../src/extension/eds/server.ts';
import type { Eds, EdsDeps, EdsOptions } from '../../../src/extension/eds/server.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { extensionMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import type { LogLine } from '../runtime/runtime.ts';
import { parseExposition, valueOf } from '../telemetry/exposition.ts';
import { VirtualClock } from '../virtual-clock.ts';
import { Envoy } from './envoy.ts';

/** An EDS server with a clock that the test advances. */
export class EdsFixture {
  readonly clock = new VirtualClock();
  readonly lines: LogLine[] = [];
  readonly eds: Eds;
  readonly #metrics = createRegistry({ metrics: extensionMetrics, version: 'test' });

  constructor(deps: Pick<EdsDeps, 'snapshots'> & Partial<EdsDeps>, options: EdsOptions = {}) {
    const write = (line: string) => void this.lines.push(JSON.parse(line) as LogLine);
    const telemetry = { log: createLog({ level: 'info', to: { write } }), metrics: this.#metrics };
    this.eds = createEds({ clock: this.clock, telemetry, ...deps }, options);
  }

  /** An Envoy with an open stream. */
  envoy(): Envoy {
    return new Envoy(this.eds.methods);
  }

  /** The current value of a metric. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
    return valueOf(parseExposition(await this.#metrics.text()), `mesh_gateway_${name}`, labels);
  }
}
