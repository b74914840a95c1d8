import { startTelemetry } from '../../../../src/process/telemetry.ts';
import type { ProcessTelemetry } from '../../../../src/process/telemetry.ts';

/** The telemetry of a part that runs in this process: it says nothing but errors, and nobody has to ask it. */
export function quietTelemetry(...controllers: readonly string[]): Promise<ProcessTelemetry> {
  const loopback = { host: '127.0.0.1', port: 0 };
  return startTelemetry({
    logLevel: 'error',
    metricsAddress: loopback,
    healthAddress: loopback,
    pprof: 'off',
    version: 'test',
    controllers,
  });
}
