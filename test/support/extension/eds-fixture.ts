import { createEds } from '../../../src/extension/eds/server.ts';
import type { Eds, EdsOptions } from '../../../src/extension/eds/server.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { extensionMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import type { LogLine } from '../runtime.ts';
import { parseExposition, valueOf } from '../telemetry/exposition.ts';
import { VirtualClock } from '../virtual-clock.ts';
import { Envoy } from './envoy.ts';

/** A server of endpoints, with a clock that the test moves. */
export class EdsScene {
  readonly clock = new VirtualClock();
  readonly lines: LogLine[] = [];
  readonly eds: Eds;
  readonly #metrics = createRegistry({ metrics: extensionMetrics, version: 'test' });

  constructor(options: Pick<EdsOptions, 'assignments'> & Partial<EdsOptions>) {
    const write = (line: string) => void this.lines.push(JSON.parse(line) as LogLine);
    const telemetry = { log: createLog({ level: 'info', to: { write } }), metrics: this.#metrics };
    this.eds = createEds({ clock: this.clock, telemetry, ...options });
  }

  /** An Envoy that has opened a stream. */
  envoy(): Envoy {
    return new Envoy(this.eds.methods);
  }

  /** The value that a metric has now. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
    return valueOf(parseExposition(await this.#metrics.text()), `mesh_gateway_${name}`, labels);
  }
}
