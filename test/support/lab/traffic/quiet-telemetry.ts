import { startTelemetry } from '../../../../src/process/telemetry.ts';
import type { ProcessTelemetry } from '../../../../src/process/telemetry.ts';

/** The telemetry of a part that runs in this process: it logs only errors, and its ports are arbitrary. */
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
